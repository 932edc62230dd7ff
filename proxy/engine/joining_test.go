package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// A call that has joined another waits until its own deadline, wherever the operation stands when the time of the first is up: the first
// alone has its answer then, and the second gets what still comes.
func TestACallThatJoinedWaitsUntilItsOwnDeadline(t *testing.T) {
	type request = map[string]any
	for _, tt := range []struct {
		name     string
		settings string
		before   func(*world) (other request)       // call 1 is made
		joined   func(w *world, other request)      // three seconds later, call 2 has joined
		code     int                                // that call 1 gets, of its five seconds
		after    func(*world, request) (at request) // what has call 2 at the server in the end
	}{
		{
			"at the server", "max_concurrency: 1",
			func(w *world) request {
				w.call("0", "idem", `{}`)
				w.call("1", "read", `{}`)
				return w.attempt()
			},
			func(w *world, other request) {
				w.text(other, "ok")
				w.wantText("0", "ok")
				w.attempt()
			},
			engine.CodeTimeout,
			func(w *world, _ request) request { return request{"id": w.lastTag} },
		},
		{
			"before a retry", "retry: {max_retries: 1, base_delay: 3, max_delay: 3, jitter: 0}",
			func(w *world) request {
				w.call("1", "read", `{}`)
				return w.attempt()
			},
			func(w *world, other request) { w.refuse(other, -32000) },
			-32000,
			func(w *world, _ request) request { return w.attempt() },
		},
		{
			"waiting for a place", "max_concurrency: 1\npolicy: [{when: 'tool.name == \"idem\"', call_timeout: 20, total_timeout: 20}]",
			func(w *world) request {
				w.call("0", "idem", `{}`)
				w.call("1", "read", `{}`)
				return w.attempt()
			},
			func(*world, request) {},
			engine.CodeRateLimited,
			func(w *world, other request) request {
				w.text(other, "ok")
				w.wantText("0", "ok")
				return w.attempt()
			},
		},
		{
			"waiting for a rate token", "rate_limit: {calls: 1, per: 5, max_wait: 20}\nretry: {max_retries: 1, base_delay: 0, jitter: 0}",
			func(w *world) request {
				w.call("1", "read", `{}`)
				return w.attempt()
			},
			func(w *world, other request) { w.refuse(other, -32000) },
			-32000,
			func(w *world, _ request) request { return w.attempt() },
		},
		{
			"waiting for the server", "retry: {max_retries: 0}",
			func(w *world) request {
				w.manual = true
				w.die()
				w.call("1", "read", `{}`)
				return nil
			},
			func(*world, request) {},
			engine.CodeUnavailable,
			func(w *world, _ request) request {
				w.up()
				w.revive()
				return w.attempt()
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := session(t, "call_timeout: 4\ntotal_timeout: 5\n"+tt.settings)
			other := tt.before(w)
			w.advance(3 * time.Second)
			w.call("2", "read", `{}`)
			tt.joined(w, other)
			w.advance(2 * time.Second)
			w.wantError("1", tt.code)
			w.silent()
			w.advance(time.Second)
			w.text(tt.after(w, other), "late")
			w.wantText("2", "late")
			w.quiet()
		})
	}
}

// Each is told how long it has waited itself, and no attempt outlasts the last of them.
func TestTheLastDeadlineOfThoseThatJoinedEndsTheAttempt(t *testing.T) {
	w := session(t, "call_timeout: 4\ntotal_timeout: 5\nmax_concurrency: 1")
	w.call("0", "idem", `{}`)
	other := w.attempt()
	for _, id := range []string{"1", "2", "3"} {
		w.call(id, "read", `{}`)
		w.advance(500 * time.Millisecond)
	}
	w.advance(time.Second)
	w.text(other, "ok")
	w.wantText("0", "ok")
	w.attempt()
	w.advance(2 * time.Second)
	for _, id := range []string{"1", "2", "3"} {
		w.quiet()
		w.advance(500 * time.Millisecond)
		text := w.answer(id)["error"].(map[string]any)["message"].(string)
		if !strings.Contains(text, "timed out after 5000ms") {
			t.Errorf("call %s is told %q", id, text)
		}
		w.silent()
	}
	w.request("notifications/cancelled")
	w.quiet()
	w.advance(time.Hour)
	w.silent()
	if has := w.e.Inspect(); has.Calls+has.Pending+has.InFlight+has.Timers > 0 {
		t.Errorf("the engine still holds %+v", has)
	}
}

// Which calls are the same is told by their arguments as JSON values: not by how they are written, and not by what they have in
// common, such as the same words in other places.
func TestCallsJoinThoseWithEqualArgumentsOnly(t *testing.T) {
	orders := [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	arguments := [3]string{`{"n":1,"path":["a","b","c"]}`, `{"n":1,"path":["b","a","c"]}`, `{"n":1,"path":["c","b","a"]}`}
	spelled := [3]string{`{"path":["a", "b", "\u0063"],"n":1.0}`, `{"n":10e-1,"path":["b","a","c"]}`, `{ "path":[ "c","b","a" ] ,"n":1 }`}
	for _, order := range orders {
		w := session(t, "call_timeout: 20")
		var attempts [3]map[string]any
		for i, args := range arguments {
			w.call("1"+strconv.Itoa(i), "write", args)
			attempts[i] = w.attempt()
		}
		for _, i := range order {
			w.call("2"+strconv.Itoa(i), "write", spelled[i])
			w.quiet()
			w.text(attempts[i], "done "+strconv.Itoa(i))
			w.wantText("1"+strconv.Itoa(i), "done "+strconv.Itoa(i))
			w.wantText("2"+strconv.Itoa(i), "done "+strconv.Itoa(i))
			w.call("3"+strconv.Itoa(i), "write", spelled[i]) // nothing is in flight any more that it could join
			again := w.attempt()
			w.text(again, "anew")
			w.wantText("3"+strconv.Itoa(i), "anew")
		}
	}
}

// The requests of a client that has several open under one id are told apart by their order: the latest is cancelled.
func TestACancellationConcernsTheLatestOfSeveralUnderOneID(t *testing.T) {
	w := session(t, "")
	w.call("7", "write", `{"n":1}`)
	first := w.attempt()
	w.call("7", "write", `{"n":2}`)
	w.attempt()
	w.call("7", "write", `{"n":3}`)
	third := w.attempt()
	w.cancel("7")
	w.text(third, "of nobody")
	w.text(first, "of the first")
	w.wantText("7", "of the first")
	w.cancel("7")
	w.silent()
}

// A host that was held up brings time forward by much at once: what carries an attempt on may then have run out together with the
// patience of those that joined. Each is answered all the same.
func TestDeadlinesThatAreDueTogetherEnd(t *testing.T) {
	w := session(t, "call_timeout: 4\ntotal_timeout: 5\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`, `"_meta":{"progressToken":"p"}`)
	attempt := w.attempt()
	w.advance(500 * time.Millisecond)
	w.call("2", "read", `{}`)
	w.call("3", "read", `{}`)
	w.advance(2 * time.Second)
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%v,"progress":1}}`, attempt["id"]))
	w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`)
	w.now = w.now.Add(time.Minute)
	w.step(engine.Event{Kind: engine.Tick})
	for _, id := range []string{"1", "2", "3"} {
		w.wantError(id, engine.CodeTimeout)
	}
}
