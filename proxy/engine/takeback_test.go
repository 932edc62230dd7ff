package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// queueing is a session whose host has a queue to the server. The test says what was written of it.
func queueing(t *testing.T, settings string) *world {
	t.Helper()
	server, compiled, err := load(settings)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.e = engine.New(engine.Config{Server: server, Policy: compiled, Seed: 1, LogLevel: engine.LevelDebug, TakesBack: true})
	w.now = w.start
	w.step(engine.Event{Kind: engine.Tick})
	w.handshake()
	return w
}

// until moves the clock to the next take-back and returns it.
func (w *world) until(d time.Duration) (back engine.Action) {
	w.t.Helper()
	w.now = w.now.Add(d)
	return w.takesBack(engine.Event{Kind: engine.Tick})
}

// takesBack plays an event that must make the engine take one frame back.
func (w *world) takesBack(ev engine.Event) (back engine.Action) {
	w.t.Helper()
	actions := w.e.Step(w.now, ev)
	for _, a := range actions {
		if a.Kind == engine.TakeBack && back.Tag == 0 {
			back = a
			back.Data = [][]byte{join(a.Data)}
		}
	}
	w.take(actions)
	if back.Tag == 0 {
		w.t.Fatal("nothing is taken back")
	}
	return back
}

// tookBack answers a take-back.
func (w *world) tookBack(a engine.Action, taken bool) {
	w.step(engine.Event{Kind: engine.TakenBack, Gen: a.Gen, Tag: a.Tag, Taken: taken})
}

func TestACallThatTimesOutUnwrittenWasNotExecutedAndNeverIs(t *testing.T) {
	w := queueing(t, "call_timeout: 2\ntotal_timeout: 2.1\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	w.attempt()
	back := w.until(2 * time.Second)
	if back.Tag != w.lastTag || len(back.Data[0]) > 0 {
		t.Errorf("the engine takes back %d with %s", back.Tag, back.Data)
	}
	w.silent()
	w.tookBack(back, true)
	if data := w.wantError("1", engine.CodeTimeout); data["mayHaveExecuted"] != "no" || data["delivery"] != "not_sent" {
		t.Errorf("data is %v", data)
	}
	w.quiet()
	w.call("2", "write", `{}`) // a repeat waits for nothing
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
}

func TestACallThatTimesOutUnwrittenIsSentAgainThoughItIsUnsafe(t *testing.T) {
	w := queueing(t, "call_timeout: 2\ntotal_timeout: 20\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	first := w.attempt()
	w.tookBack(w.until(2*time.Second), true)
	w.silent()
	second := w.attempt()
	if idOf(first) == idOf(second) {
		t.Error("an id of ours was used twice")
	}
	w.text(second, "ok")
	w.wantText("1", "ok")
}

func TestACallThatTimesOutUnderWayMayHaveBeenExecuted(t *testing.T) {
	for _, answers := range []bool{true, false} { // a host that does not answer must not hang the call
		w := queueing(t, "call_timeout: 2\ntotal_timeout: 20\nretry: {max_retries: 0}")
		w.call("1", "write", `{}`)
		w.attempt()
		back := w.until(2 * time.Second)
		if answers {
			w.tookBack(back, false)
		} else {
			w.advance(time.Second)
		}
		if data := w.wantError("1", engine.CodeTimeout); data["mayHaveExecuted"] != "unknown" || data["delivery"] != "unknown" {
			t.Errorf("data is %v", data)
		}
		w.tookBack(back, true) // too late
		w.quiet()
	}
}

func TestAnAnswerThatCrossesATakeBackStands(t *testing.T) {
	w := queueing(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	a := w.attempt()
	back := w.until(2 * time.Second)
	w.text(a, "just so")
	w.wantText("1", "just so")
	w.tookBack(back, false)
	w.silent()
}

func TestACancellationDropsTheRequestOrFollowsIt(t *testing.T) {
	for _, call := range []bool{true, false} {
		w := queueing(t, "")
		if call {
			w.call("1", "write", `{}`)
		} else {
			w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`)
		}
		ours := decode(t, w.server[len(w.server)-1])
		w.server, w.tags = nil, nil
		back := w.takesBack(engine.Event{Kind: engine.FromClient, Frame: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}`)})
		w.quiet() // it is the host that writes it, if need be
		if want := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + idOf(ours) + `,"reason":"x"}}`; string(back.Data[0]) != want {
			t.Errorf("the server is told %s, want %s", back.Data[0], want)
		}
		w.tookBack(back, true)
		w.silent()
		if has := w.e.Inspect(); has.Pending+has.InFlight+has.Timers > 0 {
			t.Errorf("the engine still holds %+v", has)
		}
	}
}

func TestARetryThatWaitsUnwrittenIsTakenBackWhenTheFirstAttemptIsAnswered(t *testing.T) {
	w := queueing(t, "call_timeout: 2\ntotal_timeout: 20\nretry: {max_retries: 1, base_delay: 0.5, jitter: 0}")
	w.call("1", "idem", `{}`)
	first := w.attempt()
	w.tookBack(w.until(2*time.Second), false)
	w.request("notifications/cancelled")
	w.advance(500 * time.Millisecond)
	second := w.attempt()
	back := w.takesBack(engine.Event{Kind: engine.FromServer, Gen: w.gen, Frame: []byte(`{"jsonrpc":"2.0","id":` + idOf(first) + `,"result":{"content":[{"type":"text","text":"late"}]}}`)})
	w.wantText("1", "late")
	if want := second["id"]; decode(t, string(back.Data[0]))["params"].(map[string]any)["requestId"] != want {
		t.Errorf("the server is told %s", back.Data[0])
	}
}
