package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// A call is cancelled in whatever state it is: it is never answered, the server hears of it if it has to, and nothing is left.
func TestACancelledCallIsNeverAnswered(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings string
		reach    func(*world) // to the state, with the call under id 1
		told     bool         // the server is told
	}{
		{"at the server", "", func(w *world) { w.call("1", "read", `{}`); w.attempt() }, true},
		{"in back-off", fast, func(w *world) { w.call("1", "read", `{}`); w.refuse(w.attempt(), -32000) }, false},
		{"waiting for a rate token", "rate_limit: {calls: 1, per: 10, max_wait: 20}", func(w *world) {
			w.call("0", "read", `{"n":0}`)
			w.text(w.attempt(), "ok")
			w.wantText("0", "ok")
			w.call("1", "read", `{}`)
			w.quiet()
		}, false},
		{"waiting for the server to come back", fast, func(w *world) {
			w.die()
			w.manual = true
			w.call("1", "read", `{}`)
			w.quiet()
		}, false},
		{"waiting for the server's back-off", fast, func(w *world) {
			w.manual = true
			w.die()
			w.call("1", "read", `{}`)
			w.die()
			w.quiet()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := session(t, tt.settings)
			tt.reach(w)
			w.cancel("1")
			if tt.told {
				w.request("notifications/cancelled")
			}
			w.quiet()
			w.cancel("1") // again
			w.up()
			w.advance(time.Hour)
			w.silent()
			for len(w.server) > 0 {
				if m := decode(t, w.server[0]); m["method"] == "tools/call" {
					t.Errorf("the server got %v", m)
				}
				w.server = w.server[1:]
			}
			if at, ok := w.e.NextWake(); ok {
				t.Errorf("a timer is left: %v from now", at.Sub(w.now))
			}
		})
	}
}

func TestB40ACancelIsNotHeldUpByWhatItCancels(t *testing.T) {
	w := session(t, "")
	w.call("101", "plain", `{"n":1}`)
	w.call("102", "plain", `{"n":2}`)
	a := w.attempt()
	w.attempt()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":101}}`)
	w.wantToServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":` + idOf(a) + `}}`)
}

func TestB39LateAnswersToACancelledCallAreDropped(t *testing.T) {
	w := session(t, "")
	w.call("3", "plain", `{}`)
	a := w.attempt()
	w.cancel("3")
	w.refuse(a, -32603)
	w.text(a, "again")
	w.silent()
}

func TestACallThatWaitsForAnOverdueAnswerCanBeCancelled(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	a := w.attempt()
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.call("2", "write", `{}`)
	w.cancel("2")
	w.text(a, "late")
	w.silent()
	w.call("3", "write", `{}`)
	w.quiet()
	w.wantText("3", "late")
}

func TestCancelOfRequestsThatPass(t *testing.T) {
	w := session(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	list := w.request("resources/list")
	w.cancel("1")
	if got := w.request("notifications/cancelled")["params"].(map[string]any)["requestId"]; got != list["id"] {
		t.Errorf("request %v was cancelled, want %v", got, list["id"])
	}
	w.reply(list, `{}`)
	w.silent()
	w.cancel("1")
	w.cancel("99")
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	w.quiet()
}

func TestAQueuedRequestThatIsCancelledIsNotSent(t *testing.T) {
	w := coldWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.send(`{"jsonrpc":"2.0","id":2,"method":"resources/list"}`)
	w.cancel("0") // initialize must not be cancelled
	w.cancel("1")
	w.up()
	w.request("initialize")
	w.request("resources/list")
	w.quiet()
	w.silent()
}

func TestTerminateAnswersEverythingAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings string
		reach    func(*world)
		executed string
	}{
		{"at the server", "", func(w *world) { w.call("1", "read", `{}`) }, "unknown"},
		{"in back-off", fast, func(w *world) { w.call("1", "read", `{}`); w.refuse(w.attempt(), -32000) }, "yes"},
		{"in back-off after a timeout", fast + "call_timeout: 1", func(w *world) {
			w.call("1", "read", `{}`)
			w.advance(time.Second)
		}, "unknown"},
		{"waiting for a rate token", "rate_limit: {calls: 1, per: 10, max_wait: 20}", func(w *world) {
			w.call("0", "read", `{"n":0}`)
			w.text(w.attempt(), "ok")
			w.client = nil
			w.call("1", "read", `{}`)
		}, "no"},
		{"waiting for the server", "", func(w *world) {
			w.manual = true
			w.die()
			w.call("1", "read", `{}`)
		}, "no"},
		{"joined to an overdue answer", "call_timeout: 2\nretry: {max_retries: 0}", func(w *world) {
			w.call("0", "write", `{}`)
			w.advance(2 * time.Second)
			w.client = nil
			w.call("1", "write", `{}`)
		}, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := session(t, tt.settings)
			tt.reach(w)
			w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
			w.silent()
			w.step(engine.Event{Kind: engine.Terminate})
			if data := w.wantError("1", engine.CodeShutdown); data["mayHaveExecuted"] != tt.executed {
				t.Errorf("data is %v, want mayHaveExecuted %s", data, tt.executed)
			}
			w.wantError("2", engine.CodeShutdown)
			w.silent()
			if !w.done {
				t.Error("the session did not end")
			}
		})
	}
}

func TestTerminateBeforeAnythingHappened(t *testing.T) {
	w := coldWorld(t, "")
	w.step(engine.Event{Kind: engine.Terminate})
	if !w.done {
		t.Error("the session did not end")
	}
}

func TestB55AfterTheClientsEOFWhatIsInFlightFinishes(t *testing.T) {
	w := session(t, fast+"call_timeout: 5")
	w.call("1", "read", `{"n":1}`)
	w.call("2", "read", `{"n":2}`)
	w.call("3", "write", `{"n":3}`)
	w.send(`{"jsonrpc":"2.0","id":4,"method":"resources/list"}`)
	a, b := w.attempt(), w.attempt()
	w.attempt()
	list := w.request("resources/list")
	w.step(engine.Event{Kind: engine.ClientEOF})
	w.refuse(b, -32000)
	w.text(a, "one")
	w.wantText("1", "one")
	w.say(`{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}`) // nobody can be asked
	if got := decode(t, w.server[0]); got["error"] == nil {
		t.Errorf("the server got %v", got)
	}
	w.server = nil
	w.reply(list, `{}`)
	w.answer("4")
	w.advance(time.Second)
	w.text(w.attempt(), "two")
	w.wantText("2", "two")
	if w.done {
		t.Fatal("the session ended with a call in flight")
	}
	w.advance(5 * time.Second)
	w.wantError("3", engine.CodeTimeout)
	if !w.done {
		t.Error("the session did not end")
	}
}

func TestAfterEOFARequestWithoutDeadlineIsGivenUp(t *testing.T) {
	w := session(t, "")
	w.send(`{"jsonrpc":"2.0","id":4,"method":"tasks/result"}`)
	w.step(engine.Event{Kind: engine.ClientEOF})
	w.advance(time.Minute)
	w.wantError("4", engine.CodeShutdown)
	if !w.done {
		t.Error("the session did not end")
	}
}

func TestEOFWhileTheServerIsAwaited(t *testing.T) {
	w := coldWorld(t, "startup_timeout: 30")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	w.step(engine.Event{Kind: engine.ClientEOF})
	w.advance(9 * time.Second)
	w.up()
	w.reply(w.request("initialize"), `{}`)
	w.answer("1")
	if !w.done {
		t.Error("the session did not end")
	}
}

// An attempt that was answered by an error may have taken effect, whatever becomes of the next.
func TestAnAnsweredAttemptIsNotForgottenWhenTheNextIsNotSent(t *testing.T) {
	w := session(t, fast)
	w.call("1", "plain", `{}`)
	w.refuse(w.attempt(), -32603)
	w.advance(time.Second)
	w.attempt()
	w.manual = true
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Unsent: []int64{w.lastTag}})
	w.step(engine.Event{Kind: engine.Terminate})
	if data := w.wantError("1", engine.CodeShutdown); data["mayHaveExecuted"] != "yes" {
		t.Errorf("data is %v", data)
	}
}
