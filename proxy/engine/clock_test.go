package engine_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

const year = 365 * 24 * time.Hour

// stepWall is a moment as it would be had somebody set the clock on the wall meanwhile, by whole seconds. The monotonic reading
// that goes with it, which is what all arithmetic uses, stays as it is.
func stepWall(t *testing.T, moment time.Time, by time.Duration) time.Time {
	t.Helper()
	stepped := moment
	// The layout of time.Time: of its first word, the topmost bit says that there is a monotonic reading, the next 33 are seconds
	// of the wall clock, and the other 30 are nanoseconds.
	wall := (*uint64)(unsafe.Pointer(&stepped))
	*wall += uint64(int64(by/time.Second)) << 30
	if stepped.Sub(moment) != 0 || stepped.Round(0).Sub(moment.Round(0)) != by {
		t.Skip("times are laid out otherwise here")
	}
	return stepped
}

// clockSession is a session whose times have a monotonic reading, as those of the shell have.
func clockSession(t *testing.T, settings string) *world {
	t.Helper()
	w := session(t, settings)
	w.now = time.Now()
	w.step(engine.Event{Kind: engine.Tick})
	w.start = w.now
	return w
}

// TestTheClockOnTheWallDecidesNothing: it is set by a year either way, and every wait is as long as it was to be.
func TestTheClockOnTheWallDecidesNothing(t *testing.T) {
	for _, by := range []time.Duration{year, -year} {
		t.Run(by.String(), func(t *testing.T) {
			w := clockSession(t, "call_timeout: 5\ntotal_timeout: 20\nretry: {max_retries: 1, base_delay: 1, jitter: false}\n"+
				"circuit_breaker: {failure_threshold: 2, cooldown_seconds: 10}\ncache: {default_ttl: 30}\nidempotency_ttl: 40\n"+
				"tools: {plain: {rate_limit: {calls: 1, per: 20}}}")
			set := func() { w.now = stepWall(t, w.now, by) }

			w.call("1", "read", `{"a":1}`)
			w.text(w.attempt(), "cached")
			w.wantText("1", "cached")
			w.call("2", "write", `{"kept":1}`, `"_meta":{"idempotencyKey":"k"}`)
			w.text(w.attempt(), "kept")
			w.wantText("2", "kept")
			w.call("3", "plain", `{}`)
			w.text(w.attempt(), "in time")
			w.wantText("3", "in time")
			w.call("4", "read", `{"a":2}`) // after the writes, which have emptied the cache
			w.text(w.attempt(), "cached")
			w.wantText("4", "cached")
			set()
			w.advance(19 * time.Second)
			w.call("5", "plain", `{"a":2}`)
			w.wantError("5", -31003)
			w.call("6", "read", `{"a":2}`)
			w.wantText("6", "cached")
			w.call("7", "write", `{"kept":1}`, `"_meta":{"idempotencyKey":"k"}`)
			w.wantText("7", "kept")
			w.quiet()
			w.advance(2 * time.Second)
			w.call("8", "plain", `{"a":3}`)
			w.text(w.attempt(), "the next one")
			w.wantText("8", "the next one")
			w.advance(20 * time.Second)
			w.call("9", "read", `{"a":2}`)
			w.attempt() // what was cached and kept has expired, not sooner and not later
			w.call("10", "write", `{"kept":1}`, `"_meta":{"idempotencyKey":"k"}`)
			w.text(w.attempt(), "once more")
			w.wantText("10", "once more")

			set()
			w.advance(4 * time.Second)
			w.silent()
			w.advance(time.Second) // the attempt times out
			w.request("notifications/cancelled")
			set()
			w.advance(999 * time.Millisecond)
			w.quiet()
			w.advance(time.Millisecond) // the back-off is over
			w.attempt()
			set()
			w.advance(5 * time.Second)
			w.request("notifications/cancelled")
			w.wantError("9", -31001)

			set()
			w.advance(9 * time.Second)
			w.call("11", "idem", `{}`)
			w.wantError("11", -31002)
			w.advance(time.Second) // the cooldown is over
			w.call("12", "idem", `{}`)
			w.text(w.attempt(), "a probe")
			w.wantText("12", "a probe")
		})
	}
}

// TestTimeMayLeap, as it does where a machine sleeps: what is due is due at once, and the session goes on. It may even run back,
// which no clock that we use does: then waits begin anew, and nothing is lost.
func TestTimeMayLeap(t *testing.T) {
	for _, by := range []time.Duration{year, -year} {
		t.Run(by.String(), func(t *testing.T) {
			w := session(t, "call_timeout: 5\ntotal_timeout: 20\nretry: {max_retries: 0}\ncache: {default_ttl: 30}\nrate_limit: {calls: 100, per: 1}\n"+
				"retry_budget: {ratio: 0.2, per_second: 0.5, burst: 20}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 10}")
			w.call("1", "read", `{}`)
			open := w.attempt()
			w.call("2", "idem", `{}`)
			w.refuse(w.attempt(), -32603) // the breaker opens
			w.wantError("2", -32603)
			w.now = w.now.Add(by)
			for range 100 {
				w.step(engine.Event{Kind: engine.Tick})
			}
			if by > 0 {
				w.wantError("1", -31001)
				w.request("notifications/cancelled")
			} else {
				w.text(open, "answered")
				w.wantText("1", "answered")
				w.now = w.now.Add(year) // and the clock is set right
				w.advance(10 * time.Second)
			}
			for n := range 5 {
				id := fmt.Sprint(10 + n)
				w.call(id, "idem", fmt.Sprintf(`{"n":%d}`, n))
				if at, ok := w.e.NextWake(); !ok || at.Sub(w.now) > 5*time.Second {
					t.Errorf("the engine wants to be woken in %v", at.Sub(w.now))
				}
				w.text(w.attempt(), id)
				w.wantText(id, id)
				w.advance(time.Second)
			}
			w.silent()
			w.quiet()
		})
	}
}
