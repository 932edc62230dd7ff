package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestB38NotificationsBeforeTheHandshakeIsAnswered(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	init := w.request("initialize")
	early := []string{
		`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
	}
	for _, frame := range early {
		w.say(frame)
		w.wantToClient(frame)
	}
	w.reply(init, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	w.answer("1")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.die()
	w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	init = w.request("initialize")
	for _, frame := range early {
		w.say(frame)
		w.wantToClient(frame)
	}
	w.reply(init, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	w.request("notifications/initialized")
	w.reply(w.request("ping"), `{}`)
	w.answer("2")
	w.silent()
}

func TestB52WhatComesBeforeTheServerIsUpIsSentInOrder(t *testing.T) {
	w := coldWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	w.call("3", "read", `{}`)
	w.advance(3 * time.Second)
	w.quiet()
	w.up()
	init := w.request("initialize")
	w.request("notifications/initialized")
	list := w.request("tools/list")
	w.quiet() // a call waits for the answer to the greeting
	w.reply(init, `{}`)
	w.answer("1")
	w.text(w.attempt(), "ok")
	w.wantText("3", "ok")
	w.reply(list, tools)
	w.answer("2")
}

func TestB67ANewLifeIsToldWhatTheSessionHadAgreedOn(t *testing.T) {
	w := session(t, fast)
	w.send(`{"jsonrpc":"2.0","id":10,"method":"logging/setLevel","params":{"level":"debug","_meta":{"progressToken":3}}}`)
	w.reply(w.request("logging/setLevel"), `{}`)
	for i, uri := range []string{"file:///b", "file:///a", "file:///c"} {
		w.send(`{"jsonrpc":"2.0","id":` + strconv.Itoa(i) + `,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`)
		w.reply(w.request("resources/subscribe"), `{}`)
	}
	w.send(`{"jsonrpc":"2.0","id":11,"method":"resources/unsubscribe","params":{"uri":"file:///c"}}`)
	w.reply(w.request("resources/unsubscribe"), `{}`)
	w.send(`{"jsonrpc":"2.0","id":12,"method":"resources/subscribe","params":{"uri":"file:///refused"}}`)
	w.refuse(w.request("resources/subscribe"), -32602)
	w.client = nil

	w.die()
	w.call("1", "read", `{}`)
	init := w.request("initialize")
	if params := init["params"].(map[string]any); params["protocolVersion"] != "2025-06-18" || params["clientInfo"] == nil {
		t.Errorf("the new life was greeted with %v", params)
	}
	w.quiet() // nothing before it has answered
	w.reply(init, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}}`)
	w.request("notifications/initialized")
	level := w.request("logging/setLevel")
	if got := level["params"].(map[string]any); got["level"] != "debug" || len(got) != 1 {
		t.Errorf("the log level was set by %v", got)
	}
	for _, uri := range []string{"file:///a", "file:///b"} {
		if got := w.request("resources/subscribe")["params"].(map[string]any)["uri"]; got != uri {
			t.Errorf("%v was subscribed to, want %s", got, uri)
		}
	}
	w.reply(level, `{}`)
	w.reply(w.request("tools/list"), tools)
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.silent() // the client learns nothing of all that
}

func TestTheClientIsToldOfOtherToolsAfterARestartIfTheServerDeclaredThat(t *testing.T) {
	const other = `{"tools":[{"name":"other"}]}`
	for _, declared := range []string{"true", "false"} {
		w := session(t, fast)
		w.die()
		w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":`+declared+`}}}`)
		w.request("notifications/initialized")
		list := w.request("tools/list")
		w.reply(w.request("ping"), `{}`)
		w.answer("1")
		w.reply(list, other)
		if declared == "true" {
			w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
		w.silent()
	}
}

func TestTheHandshakeIsConfirmedOnceThoughTheClientConfirmsDuringARestart(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	w.answer("1")
	w.die()
	w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	init := w.request("initialize")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.quiet()
	w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	w.reply(init, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
	w.request("notifications/initialized")
	w.request("ping")
	w.request("notifications/roots/list_changed")
	w.quiet()
}

func TestB50AServerThatCannotBeStartedIsNamedAtOnce(t *testing.T) {
	w := coldWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	detail := `exec: "npx": not found in PATH=/usr/bin`
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: detail})
	if len(w.client) != 1 || !strings.Contains(w.client[0], `not found in PATH=/usr/bin`) {
		t.Errorf("the client got %s", w.client)
	}
	w.wantError("1", engine.CodeUnavailable)
	w.advance(time.Hour)
	if w.starts != 1 {
		t.Errorf("the server was started %d times, want once", w.starts)
	}
}

func TestB49ACrashLoopIsBoundedAndEveryRequestAnswered(t *testing.T) {
	for _, tt := range []struct {
		name string
		live func(*world) // a life, as far as it gets
	}{
		{"exits at once", func(w *world) { w.up(); w.die() }},
		{"cannot be started", func(w *world) {
			w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: "no"})
		}},
		{"answers initialize and dies", func(w *world) {
			w.up()
			for i := range w.server {
				if m := decode(w.t, w.server[i]); m["method"] == "initialize" {
					w.server = nil
					w.reply(m, `{"protocolVersion":"2025-06-18","capabilities":{}}`)
					break
				}
			}
			w.advance(200 * time.Millisecond)
			w.die()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := session(t, fast+"total_timeout: 8\ncall_timeout: 2")
			w.manual = true
			w.die()
			seen := w.gen
			answers := 0
			for i := range 20 {
				w.call(strconv.Itoa(i), "read", `{"n":`+strconv.Itoa(i)+`}`)
				for range 25 {
					for seen != w.gen {
						seen = w.gen
						tt.live(w)
					}
					w.advance(10 * time.Millisecond)
				}
				w.server = nil
				answers += len(w.client)
				w.client = nil
			}
			if w.starts > 8 {
				t.Errorf("the server was started %d times in 5 s", w.starts)
			}
			for range 60 {
				for seen != w.gen {
					seen = w.gen
					tt.live(w)
				}
				w.advance(time.Second)
				answers += len(w.client)
				w.client = nil
			}
			if answers != 20 {
				t.Errorf("%d answers for 20 calls", answers)
			}
			if w.starts > 14 {
				t.Errorf("the server was started %d times in 65 s", w.starts)
			}
		})
	}
}

func TestNeverTwoLivesAtOnce(t *testing.T) {
	w := session(t, "startup_timeout: 3\nretry: {max_retries: 0}\ntotal_timeout: 30\ncall_timeout: 10")
	w.die()
	w.call("1", "read", `{}`)
	first := w.gen
	w.request("initialize") // which it never answers
	w.advance(4 * time.Second)
	if w.stops != 1 || w.gen != first {
		t.Fatalf("%d stops, life %d; want life %d stopped and no other begun", w.stops, w.gen, first)
	}
	w.silent()
	w.step(engine.Event{Kind: engine.ServerDown, Gen: first, Detail: "killed"})
	if w.gen != first+1 {
		t.Fatalf("no new life after the old one's end")
	}
	w.revive()
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
}

func TestTheFirstLifeMustAnswerInitializeInTime(t *testing.T) {
	for _, early := range []bool{true, false} {
		w := coldWorld(t, "startup_timeout: 3")
		if !early {
			w.up()
		}
		w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		if early {
			w.up()
		}
		w.advance(4 * time.Second)
		w.wantError("1", engine.CodeUnavailable)
		if w.stops != 1 {
			t.Errorf("the server was stopped %d times, want once", w.stops)
		}
	}
	w := coldWorld(t, "startup_timeout: 3") // and must be up in time
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	w.advance(4 * time.Second)
	w.wantError("1", engine.CodeUnavailable)

	w = newWorld(t, "startup_timeout: 3") // an answer over the limit is an answer
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	init := w.request("initialize")
	w.step(engine.Event{Kind: engine.ServerTooBig, Gen: w.gen, Frame: []byte(`{"jsonrpc":"2.0","id":` + idOf(init) + `,"result":{`), Tail: []byte(`}`)})
	w.wantError("1", engine.CodeTooLarge)
	w.advance(time.Hour)
	if w.stops != 0 {
		t.Error("the server was stopped")
	}
}

func TestRestartNever(t *testing.T) {
	w := session(t, fast+"restart: never")
	w.call("1", "read", `{"n":1}`)
	w.attempt()
	w.die()
	w.advance(time.Minute)
	if data := w.wantError("1", engine.CodeUnavailable); data["mayHaveExecuted"] != "unknown" {
		t.Errorf("data is %v", data)
	}
	w.call("2", "read", `{"n":2}`)
	if data := w.wantError("2", engine.CodeUnavailable); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	w.wantError("3", engine.CodeUnavailable)
	if w.starts != 1 {
		t.Errorf("the server was started %d times, want once", w.starts)
	}
}

func TestB46RequestsThatPassAreAnsweredWhenTheServerDies(t *testing.T) {
	w := session(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/get"}`)
	w.die()
	if data := w.wantError("1", engine.CodeUnavailable); data["kind"] != "exit" {
		t.Errorf("data is %v", data)
	}
}

func TestWhatWasNeverWrittenIsSentAgain(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 9}")
	w.call("1", "write", `{}`)
	for range 2 {
		w.attempt()
		tag := w.lastTag
		w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "signal: killed", Unsent: []int64{tag}})
		w.advance(time.Second)
		w.revive()
	}
	w.attempt()
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "signal: killed", Unsent: []int64{w.lastTag}})
	if data := w.wantError("1", engine.CodeUnavailable); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
}

func TestACallThatWaitedForWhatWasNeverWrittenIsAnswered(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncall_timeout: 2")
	w.call("1", "write", `{}`)
	w.attempt()
	tag := w.lastTag
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.call("2", "write", `{}`)
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "signal: killed", Unsent: []int64{tag}})
	if data := w.wantError("2", engine.CodeUnavailable); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
}

func TestAnAnswerOfAnEarlierLifeIsIgnored(t *testing.T) {
	w := session(t, fast)
	w.call("1", "read", `{}`)
	a := w.attempt()
	old := w.gen
	w.die()
	w.advance(time.Second)
	w.revive()
	w.step(engine.Event{Kind: engine.FromServer, Gen: old, Frame: []byte(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"result":{}}`)})
	w.silent()
	b := w.attempt()
	if idOf(a) == idOf(b) {
		t.Error("an id of ours was used twice")
	}
	w.text(b, "ok")
	w.wantText("1", "ok")
}

func TestAnAnswerToARequestThatWasNotSentYetIsIgnored(t *testing.T) {
	w := session(t, "")
	w.die()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	init := w.request("initialize")
	for i := range 20 {
		if id := strconv.Itoa(i); id != idOf(init) {
			w.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		}
	}
	w.silent()
	w.reply(init, `{"capabilities":{}}`)
	w.request("notifications/initialized")
	w.request("tools/list")
	w.reply(w.request("ping"), `{}`)
	w.answer("1")
}
