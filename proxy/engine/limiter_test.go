package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestEachAttemptSpendsARateToken(t *testing.T) {
	w := session(t, "rate_limit: {calls: 3, per: 3600}\nretry: {max_retries: 2, base_delay: 0, jitter: 0}")
	w.callN(0)
	for range 3 {
		w.refuse(w.wantAttempts(0)[0], -32000)
	}
	w.wantError("0", -32000)
	w.callN(1)
	data := w.wantError("1", engine.CodeRateLimited)
	if got := fmt.Sprint(data["retryAfterMs"]); got != "1200000" || data["mayHaveExecuted"] != "no" {
		t.Errorf("the data is %v", data)
	}
	w.call("2", "read", `{}`) // another tool, another bucket
	w.attempt()
	w.quiet()
}

// A retry for which there is no token ends the loop: the caller gets the last real outcome.
func TestARetryWithoutARateTokenEndsTheLoop(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 3600}\nretry: {max_retries: 2, base_delay: 0, jitter: 0}")
	w.callN(0)
	w.refuse(w.wantAttempts(0)[0], -32000)
	w.wantError("0", -32000)
}

func TestCallsWaitForRateTokensInOrder(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 1, burst: 1, max_wait: 3}")
	for n := range 5 {
		w.callN(n)
	}
	w.wantAttempts(0)
	data := w.wantError("4", engine.CodeRateLimited) // it would have to wait for longer than 3 s
	if got := fmt.Sprint(data["retryAfterMs"]); got != "4000" {
		t.Errorf("the data is %v", data)
	}
	for n := 1; n < 4; n++ {
		w.advance(999 * time.Millisecond)
		w.quiet()
		w.advance(time.Millisecond)
		w.wantAttempts(n)
	}
	w.silent()
}

// Whoever leaves the line lets those behind move up, and one who comes then does not overtake them.
func TestWhoIsCancelledLeavesTheLineForARateToken(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 1, burst: 1, max_wait: 3}")
	for n := range 4 {
		w.callN(n)
	}
	w.wantAttempts(0)
	w.cancel("1")
	w.cancel("2")
	w.callN(5)
	w.advance(time.Second)
	w.wantAttempts(3)
	w.advance(time.Second)
	w.wantAttempts(5)
	w.advance(4 * time.Second)
	w.quiet()
}

func TestAWaitForARateTokenThatDoesNotFitIsNotBegun(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 10, max_wait: 60}\ncall_timeout: 3\ntotal_timeout: 10\nretry: {max_retries: 0}")
	w.callN(0)
	w.wantAttempts(0)
	w.callN(1) // its token would come at its very deadline
	w.wantError("1", engine.CodeRateLimited)
}

func TestARateLimitKeyNamesTheBucket(t *testing.T) {
	w := session(t, "policy: [{rate_limit_key: string(args.n % 2)}]\ntools: {read: {rate_limit: {calls: 1, per: 60}}, pl*: {rate_limit: {calls: 2, per: 60}}}")
	for n := range 4 {
		w.callN(n)
	}
	w.wantAttempts(0, 1, 2, 3)
	w.callN(4)
	w.wantError("4", engine.CodeRateLimited)
	w.call("5", "read", `{"n":6}`) // the same key under another limit
	w.attempt()
	w.call("6", "read", `{"n":8}`)
	w.wantError("6", engine.CodeRateLimited)
}

// While the server is not up, no token is spent: what waits for it keeps the limit when it goes out.
func TestRateTokensAreSpentWhenTheServerIsUp(t *testing.T) {
	w := coldWorld(t, "rate_limit: {calls: 2, per: 1, max_wait: 10}")
	w.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`)
	w.callN(0)
	w.advance(5 * time.Second)
	for n := 1; n < 5; n++ {
		w.callN(n)
	}
	w.up()
	init := w.request("initialize")
	w.advance(5 * time.Second)
	w.quiet()
	w.reply(init, `{}`)
	w.wantAttempts(0, 1)
	w.advance(500 * time.Millisecond)
	w.wantAttempts(2)
	w.advance(time.Second)
	w.wantAttempts(3, 4)
}
