package schema

import (
	"fmt"
	"testing"
	"time"
)

// What an expression may come to is bounded as the literal is that stands in its place.
func TestDurationBoundsAreThoseOfTheSchema(t *testing.T) {
	loads := func(decision Decision, d time.Duration) bool {
		text := fmt.Sprintf("servers:\n  s:\n    command: x\n    policy:\n      - %s: %.0fs\n", decision, d.Seconds())
		_, findings := Load("f.yaml", []byte(text), nil)
		return !findings.HasErrors()
	}
	for _, d := range []Decision{CallTimeout, TotalTimeout, RetryDelay, CacheTTL, IdempotencyTTL, StaleIfError} {
		zero, most := DurationBounds(d)
		if loads(d, 0) != zero {
			t.Errorf("%s: 0 is fine: %t", d, zero)
		}
		if !loads(d, most) || loads(d, most+time.Second) {
			t.Errorf("%s: the longest is not %s", d, most)
		}
	}
}
