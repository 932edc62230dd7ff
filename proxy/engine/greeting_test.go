package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

const (
	hello   = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	welcome = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`
)

func TestStartUpIsNoPartOfACallsTimeout(t *testing.T) {
	w := coldWorld(t, "call_timeout: 2\ntotal_timeout: 20\nstartup_timeout: 30\nretry: {max_retries: 0}")
	w.send(hello)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.call("1", "read", `{}`)
	w.advance(3 * time.Second)
	w.up()
	init := w.request("initialize")
	w.request("notifications/initialized")
	w.advance(7 * time.Second)
	w.quiet()
	w.silent()
	w.reply(init, welcome)
	w.answer(`"init"`)
	w.attempt()
	w.advance(1900 * time.Millisecond)
	w.silent()
	w.advance(100 * time.Millisecond)
	w.wantError("1", engine.CodeTimeout)
}

func TestStartUpCountsAgainstTheTimeOfTheWholeCall(t *testing.T) {
	w := newWorld(t, "call_timeout: 2\ntotal_timeout: 5\nstartup_timeout: 30")
	w.send(hello)
	init := w.request("initialize")
	w.call("1", "write", `{}`)
	w.advance(5 * time.Second)
	if data := w.wantError("1", engine.CodeUnavailable); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
	w.reply(init, welcome)
	w.answer(`"init"`)
	w.quiet()
}

func TestACallWaitsForAServerThatRefusesItsGreeting(t *testing.T) {
	w := newWorld(t, "")
	w.send(hello)
	init := w.request("initialize")
	w.call("1", "read", `{}`)
	w.quiet()
	w.refuse(init, -32602)
	w.answer(`"init"`)
	w.refuse(w.attempt(), -32600)
	w.wantError("1", -32600)
}

func TestARepeatedGreetingHoldsCallsUntilTheLastIsAnswered(t *testing.T) {
	w := session(t, "startup_timeout: 5")
	w.send(hello)
	w.send(strings.Replace(hello, "init", "again", 1))
	first, second := w.request("initialize"), w.request("initialize")
	w.call("1", "read", `{}`)
	w.reply(first, welcome)
	w.answer(`"init"`)
	w.quiet()
	w.reply(second, welcome)
	w.answer(`"again"`)
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.advance(time.Minute)
	if w.stops != 0 {
		t.Error("the server was stopped")
	}
}

// Whoever goes on after a failed start without a new initialize means the old one still.
func TestALifeAfterAFailedStartIsGreetedWithTheClientsOwnWords(t *testing.T) {
	w := coldWorld(t, "startup_timeout: 3")
	w.send(hello)
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: "not found"})
	w.wantError(`"init"`, engine.CodeUnavailable)
	w.call("1", "read", `{}`)
	w.up()
	init := w.request("initialize")
	if params := init["params"].(map[string]any); params["protocolVersion"] != "2025-06-18" || params["clientInfo"] == nil {
		t.Errorf("the new life was greeted with %v", params)
	}
	w.quiet()
	w.reply(init, welcome)
	w.request("notifications/initialized")
	w.request("tools/list")
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.quiet() // it was told
	w.silent()
}

func TestACallThatCameWithAGreetingThatFailedGoesToTheNextLife(t *testing.T) {
	w := coldWorld(t, "startup_timeout: 3\nretry: {max_retries: 0}")
	w.send(hello)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.call("1", "write", `{}`)
	w.up()
	w.request("initialize")
	w.request("notifications/initialized")
	w.advance(3 * time.Second)
	w.wantError(`"init"`, engine.CodeUnavailable)
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "killed"})
	w.up()
	w.reply(w.request("initialize"), welcome)
	w.request("notifications/initialized")
	w.request("tools/list")
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.silent()
}

func TestALifeThatRefusesTheGreetingOfAFailedStartIsNotUsed(t *testing.T) {
	w := coldWorld(t, "retry: {max_retries: 0}")
	w.send(hello)
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: "not found"})
	w.wantError(`"init"`, engine.CodeUnavailable)
	w.call("1", "read", `{}`)
	for range 3 {
		w.up()
		w.refuse(w.request("initialize"), -32602)
		w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "killed"})
		w.advance(10 * time.Second)
	}
	w.quiet()
	if data := w.wantError("1", engine.CodeUnavailable); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
}

func TestAClientThatGreetsAnewAfterAFailedStartIsServedByThatGreeting(t *testing.T) {
	w := coldWorld(t, "")
	w.send(hello)
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: "not found"})
	w.wantError(`"init"`, engine.CodeUnavailable)
	w.send(strings.Replace(hello, "init", "again", 1))
	w.up()
	w.reply(w.request("initialize"), welcome)
	w.answer(`"again"`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.quiet()
}

func TestAClientWhoseGreetingWasRefusedMayGoOnInAnotherEra(t *testing.T) {
	w := newWorld(t, fast)
	w.send(hello)
	w.refuse(w.request("initialize"), -32601)
	w.answer(`"init"`)
	w.call("1", "read", `{}`, `"_meta":{`+modernMeta+`}`)
	w.request("tools/list")
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.die()
	w.call("2", "read", `{}`, `"_meta":{`+modernMeta+`}`)
	w.request("tools/list")
	w.text(w.attempt(), "ok") // the new life is not greeted with what the first has refused
	w.wantText("2", "ok")
}

func TestASecondGreetingThatIsRefusedLeavesTheFirstInForce(t *testing.T) {
	w := session(t, fast)
	w.send(`{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"a:b"}}`)
	w.reply(w.request("resources/subscribe"), `{}`)
	w.answer("5")
	for id := range 2 {
		w.send(strings.Replace(hello, `"init"`, `"again"`, 1))
		w.refuse(w.request("initialize"), -32600)
		w.wantError(`"again"`, -32600)
		w.call(fmt.Sprint(id), "read", `{"a":1}`)
		w.text(w.attempt(), "ok")
		w.wantText(fmt.Sprint(id), "ok")
	}
	w.die()
	w.call("9", "read", `{}`)
	init := w.request("initialize")
	w.quiet()
	w.reply(init, welcome)
	w.request("notifications/initialized")
	w.request("resources/subscribe")
	w.reply(w.request("tools/list"), tools)
	w.text(w.attempt(), "ok")
	w.wantText("9", "ok")
}

func TestTheClientOfTheEraThatCountsIsWhatExpressionsSee(t *testing.T) {
	w := newWorld(t, "policy: [{when: 'client.protocol != \"2026-07-28\" || client.name == \"test\"', deny: '\"stale: \" + client.protocol + \" \" + client.name'}]")
	w.send(hello)
	w.refuse(w.request("initialize"), -32601)
	w.answer(`"init"`)
	w.call("1", "read", `{}`, `"_meta":{`+modernMeta+`}`)
	w.request("tools/list")
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
}

func TestASecondGreetingThatIsNeverAnsweredDoesNotEndAServerThatServes(t *testing.T) {
	w := session(t, "startup_timeout: 5\ncall_timeout: 20\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	running := w.attempt()
	w.send(strings.Replace(hello, `"init"`, `"again"`, 1))
	w.request("initialize")
	w.call("2", "read", `{}`)
	w.quiet()
	w.advance(5 * time.Second)
	w.wantError(`"again"`, engine.CodeUnavailable)
	w.text(w.attempt(), "two")
	w.wantText("2", "two")
	w.text(running, "one")
	w.wantText("1", "one")
	w.die()
	w.call("3", "read", `{"n":3}`)
	w.revive()
	w.text(w.attempt(), "three")
	w.wantText("3", "three")
}
