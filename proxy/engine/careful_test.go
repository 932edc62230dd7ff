package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestAHintDoesNotMakeAnUnsafeToolRunAgain(t *testing.T) {
	hinted := func(w *world, code string) {
		a := w.attempt()
		w.say(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"error":{"code":` + code + `,"message":"charged, then busy","data":{"retryAfter":0.1}}}`)
		w.advance(time.Second)
	}
	for _, code := range []string{"500", "-32603", "-32000", "1"} {
		w := session(t, fast)
		w.call("1", "write", `{}`)
		hinted(w, code)
		w.quiet()
		w.call("2", "read", `{}`)
		hinted(w, code)
		w.attempt() // a read may
	}
}

func TestAnAnswerThatCannotBeUsedIsRememberedUnderItsKey(t *testing.T) {
	key := `"_meta":{"idempotencyKey":"k"}`
	for name, answer := range map[string]func(w *world, id string){
		"too large": func(w *world, id string) {
			head := []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[`)
			w.step(engine.Event{Kind: engine.ServerTooBig, Gen: w.gen, Frame: head, Tail: []byte(`]}}`), Size: 1 << 30})
		},
		"malformed": func(w *world, id string) {
			w.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{},"error":{}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := session(t, fast)
			w.call("1", "write", `{}`, key)
			answer(w, idOf(w.attempt()))
			m := w.answer("1")
			if _, failed := m["error"]; !failed {
				t.Fatalf("the client got %v", m)
			}
			w.call("2", "write", `{}`, key)
			w.quiet()
			if data := w.wantError("2", engine.CodeOutcomeUnknown); data["mayHaveExecuted"] != "yes" {
				t.Errorf("data is %v", data)
			}
		})
	}
}

func TestAMalformedAnswerEndsItsRequestAtOnceAndIsNotRetried(t *testing.T) {
	for _, rest := range []string{`"result":{},"error":{"code":1,"message":""}`, `"x":1`} {
		w := session(t, fast)
		w.call("1", "plain", `{}`)
		w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,` + rest + `}`)
		if data := w.wantError("1", engine.CodeInvalidResult); data["kind"] != "malformed" || data["mayHaveExecuted"] != "yes" {
			t.Errorf("data is %v", data)
		}
		w.advance(time.Minute)
		w.quiet()
		w.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
		w.say(`{"jsonrpc":"2.0","id":` + idOf(w.request("prompts/list")) + `,` + rest + `}`)
		w.wantError("2", engine.CodeInvalidResult)
	}
}

func TestAHungServerIsEndedOnceItsProbeHasTimedOutInSilence(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 5}")
	for _, id := range []string{"1", "2"} {
		w.call(id, "read", `{"n":`+id+`}`)
		w.attempt()
		w.advance(2 * time.Second)
		w.request("notifications/cancelled")
		w.wantError(id, engine.CodeTimeout)
	}
	w.advance(5 * time.Second)
	w.call("3", "read", `{"n":3}`)
	w.attempt()
	w.advance(2 * time.Second)
	w.wantError("3", engine.CodeTimeout)
	if w.stops != 1 {
		t.Fatalf("the server was stopped %d times, want once", w.stops)
	}
	w.server, w.tags = nil, nil
	w.die()
	w.call("4", "read", `{"n":4}`) // at once: the trial of the breaker is what begins the new life
	w.call("5", "read", `{"n":5}`)
	w.wantError("5", engine.CodeCircuitOpen) // and it is one trial
	w.revive()
	w.text(w.attempt(), "well again")
	w.wantText("4", "well again")
}

func TestTheCallThatFindsAServerHungIsRetriedInTheNewLife(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 1, base_delay: 0.5, jitter: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 5}")
	w.call("1", "read", `{"n":1}`)
	w.advance(5 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.advance(5 * time.Second)
	w.server, w.tags = nil, nil
	w.call("2", "read", `{"n":2}`)
	w.attempt()
	w.advance(2 * time.Second)
	w.request("notifications/cancelled")
	w.quiet()
	w.die()
	w.advance(500 * time.Millisecond)
	w.revive()
	w.text(w.attempt(), "well again")
	w.wantText("2", "well again")
}

func TestASlowServerThatStillSpeaksIsNotEnded(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 5}")
	w.call("1", "read", `{"n":1}`)
	w.attempt()
	w.advance(2 * time.Second)
	w.advance(5 * time.Second)
	w.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}`)
	w.call("2", "read", `{"n":2}`)
	w.advance(2 * time.Second)
	if w.stops != 0 {
		t.Error("the server was stopped")
	}
}

func TestATimeoutNamesTheSettingThatEndedIt(t *testing.T) {
	for settings, want := range map[string]string{
		"retry: {max_retries: 0}\ncall_timeout: 2":                                             "timed out after 2000ms",
		"call_timeout: 5\ntotal_timeout: 6\nmax_call_time: 3":                                  "timed out after 3000ms",
		"retry: {max_retries: 1, base_delay: 2, jitter: 0}\ncall_timeout: 3\ntotal_timeout: 7": "timed out after 7000ms",
	} {
		w := session(t, settings)
		w.call("1", "read", `{}`)
		w.advance(20 * time.Second)
		m := w.answer("1")["error"].(map[string]any)["message"].(string)
		setting := map[string]string{"2000ms": "call_timeout", "3000ms": "max_call_time", "7000ms": "total_timeout"}[want[len("timed out after "):]]
		if !strings.Contains(m, want) || !strings.Contains(m, "with "+setting) {
			t.Errorf("with %q the message is %q", settings, m)
		}
	}
}

func TestAWaitForTheNextLifeSaysHowTheLastOneEnded(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ntotal_timeout: 3\ncall_timeout: 1\ncircuit_breaker: {failure_threshold: 100}")
	w.die()
	for lives := w.starts; w.starts < 7; {
		w.call("1", "read", `{}`)
		w.advance(time.Second)
		if w.starts > lives {
			lives = w.starts
			w.die()
		}
	}
	w.call("2", "read", `{}`)
	w.advance(3 * time.Second)
	w.client = w.client[len(w.client)-1:]
	m := w.answer("2")["error"].(map[string]any)
	if text := m["message"].(string); !strings.Contains(text, "exit status 3") || m["data"].(map[string]any)["retryAfterMs"] == nil {
		t.Errorf("the error is %v", m)
	}
}

func TestAResultWhoseSchemaIsNotKnownYetIsNotCachedUnderEnforce(t *testing.T) {
	w := newWorld(t, "validate_results: enforce\ncache: {tools: {read: 60}}")
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "nobody knows whether this is good")
	w.wantText("1", "nobody knows whether this is good")
	w.call("2", "read", `{}`)
	w.attempt()
}
