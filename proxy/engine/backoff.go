package engine

import (
	"math"
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// minAttempt is the least time an attempt is worth starting with: max(250 ms, 10 % of call_timeout).
func minAttempt(callTimeout time.Duration) time.Duration {
	return min(callTimeout, max(250*time.Millisecond, callTimeout/10))
}

// backoff is the wait before the n-th retry (from 1): exponential, linear or constant from Base, spread by ±Jitter, never
// above Max. random is uniform in [0, 1).
func backoff(p policy.Backoff, n int, random float64) time.Duration {
	wait := float64(p.Base)
	switch p.Kind {
	case "linear":
		wait *= float64(n)
	case "constant":
	default:
		wait = math.Ldexp(wait, n-1)
	}
	wait = min(wait, float64(p.Max))
	wait *= 1 + p.Jitter*(2*random-1)
	return time.Duration(max(0, min(wait, float64(p.Max))))
}

// toldDelay is the wait that a server's own hint asks for, spread upwards by up to a quarter so that clients that were told
// the same do not come back together.
func toldDelay(hint time.Duration, random float64) time.Duration {
	return hint + time.Duration(float64(hint)*0.25*random)
}
