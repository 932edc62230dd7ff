package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// callN plays a call of plain with arguments that no other has.
func (w *world) callN(n int) {
	w.call(fmt.Sprint(n), "plain", fmt.Sprintf(`{"n":%d}`, n))
}

// wantAttempts takes the next frames that went to the server, which must be these calls of callN and all there are.
func (w *world) wantAttempts(ns ...int) (attempts []map[string]any) {
	w.t.Helper()
	for _, n := range ns {
		a := w.attempt()
		args := a["params"].(map[string]any)["arguments"].(map[string]any)
		if fmt.Sprint(args["n"]) != fmt.Sprint(n) {
			w.t.Fatalf("call %v went to the server; want %d", args["n"], n)
		}
		attempts = append(attempts, a)
	}
	w.quiet()
	return attempts
}

func TestWhoWaitsForAPlaceGetsItInOrder(t *testing.T) {
	w := session(t, "max_concurrency: 2\nretry: {max_retries: 0}")
	for n := range 6 {
		w.callN(n)
	}
	at := w.wantAttempts(0, 1)
	w.text(at[1], "ok")
	w.wantText("1", "ok")
	at = append(at, w.wantAttempts(2)...)
	w.refuse(at[2], -32602) // a failure gives its place back too
	w.wantError("2", -32602)
	at = append(at, w.wantAttempts(3)...)
	w.text(at[0], "ok")
	w.text(at[3], "ok")
	w.wantAttempts(4, 5)
}

func TestWhoIsCancelledLeavesTheLineForAPlace(t *testing.T) {
	w := session(t, "max_concurrency: 1\nretry: {max_retries: 0}")
	for n := range 4 {
		w.callN(n)
	}
	at := w.wantAttempts(0)
	w.cancel("1")
	w.text(at[0], "ok")
	w.wantAttempts(2)
	w.cancel("2") // at the server: it frees its place
	w.request("notifications/cancelled")
	w.wantAttempts(3)
}

// A retry takes a place anew, behind those who waited before it.
func TestEachAttemptTakesAPlace(t *testing.T) {
	w := session(t, "max_concurrency: 1\nretry: {max_retries: 1, base_delay: 0, jitter: 0}")
	w.callN(0)
	w.callN(1)
	w.refuse(w.wantAttempts(0)[0], -32000)
	w.text(w.wantAttempts(1)[0], "ok")
	w.wantText("1", "ok")
	w.text(w.wantAttempts(0)[0], "ok")
	w.wantText("0", "ok")
}

func TestACallThatTimedOutGivesItsPlaceBack(t *testing.T) {
	for _, tool := range []string{"plain", "write"} { // the answer to the second is waited for all the same
		w := session(t, "max_concurrency: 1\ncall_timeout: 1\ntotal_timeout: 5\nretry: {max_retries: 0}")
		w.call("0", tool, `{"n":0}`)
		w.attempt()
		w.callN(1)
		w.quiet()
		w.advance(time.Second)
		w.wantError("0", engine.CodeTimeout)
		if tool == "plain" {
			w.request("notifications/cancelled")
		}
		w.wantAttempts(1)
	}
}

func TestAServerThatEndsGivesAllPlacesBack(t *testing.T) {
	w := session(t, "max_concurrency: 2\nretry: {max_retries: 0}")
	for n := range 3 {
		w.callN(n)
	}
	w.wantAttempts(0, 1)
	w.die()
	w.wantError("0", engine.CodeUnavailable)
	w.wantError("1", engine.CodeUnavailable)
	w.revive()
	w.wantAttempts(2)
}

// A call waits for a place until there is no time left for an attempt, and is then refused with the time to wait.
func TestACallForWhichThereIsNoPlaceInTimeIsRefused(t *testing.T) {
	w := session(t, "max_concurrency: 1\ncall_timeout: 4\ntotal_timeout: 5\nretry: {max_retries: 0}")
	w.callN(0)
	w.wantAttempts(0)
	w.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`) // its clock stands still
	w.client = nil
	w.callN(1)
	w.advance(4599 * time.Millisecond)
	w.silent()
	w.advance(time.Millisecond)
	data := w.wantError("1", engine.CodeRateLimited)
	if data["retryAfterMs"] == nil || data["endedBy"] != "max_concurrency" || data["mayHaveExecuted"] != "no" {
		t.Errorf("the data is %v", data)
	}
	w.quiet()
	if has := w.e.Inspect(); has.Lined != 0 || has.Placed != 1 {
		t.Errorf("the engine holds %+v", has)
	}
}

// What needs no attempt needs no place.
func TestAKeptResultNeedsNoPlace(t *testing.T) {
	w := session(t, "max_concurrency: 1\ncache: {tools: {read: 60}}")
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "kept")
	w.wantText("1", "kept")
	w.call("2", "read", `{"n":2}`)
	w.attempt()
	w.call("3", "read", `{}`)
	w.wantText("3", "kept")
	w.call("4", "read", `{"n":2}`) // it joins
	w.quiet()
}

func TestABreakerThatOpensRefusesThoseWhoWaitForAPlace(t *testing.T) {
	w := session(t, "max_concurrency: 1\nretry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 60}")
	for n := range 3 {
		w.callN(n)
	}
	w.refuse(w.wantAttempts(0)[0], -32000)
	w.wantError("0", -32000)
	w.wantError("1", engine.CodeCircuitOpen)
	w.wantError("2", engine.CodeCircuitOpen)
	w.quiet()
}
