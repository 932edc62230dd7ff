package policy

import "time"

// patience is the total timeout of a call of which the file says neither how long an attempt takes nor how many there
// may be: clients give up at 60 s.
const patience = 55 * time.Second

// timing says where the times of a call come from.
type timing struct {
	totalStated   bool // total_timeout
	callStated    bool // call_timeout
	retriesStated bool // max_retries, or any parameter of the back-off
}

// note records that the rule decided the question. What the built-in policy says does not count as stated.
func (t *timing) note(ask int, r *rule) {
	if r.builtin {
		return
	}
	switch ask {
	case askTotalTimeout:
		t.totalStated = true
	case askCallTimeout:
		t.callStated = true
	case askMaxRetries, askBaseDelay, askMaxDelay, askJitter, askBackoff:
		t.retriesStated = true
	}
}

// total settles the total timeout: as stated; else what the stated attempts and their waits can take at most; else the
// client's patience.
func (t *timing) total(b *Before) {
	switch {
	case t.totalStated:
	case t.callStated || t.retriesStated:
		b.TotalTimeout = longest(b)
	case b.TotalTimeout == 0:
		b.TotalTimeout = patience
	}
	b.TotalTimeout = min(b.TotalTimeout, b.MaxCallTime)
}

// longest is the time that a call takes if every attempt runs into its timeout and every wait is the longest possible.
func longest(b *Before) time.Duration {
	sum := b.CallTimeout
	wait := float64(b.Backoff.Base)
	for n := 1; n <= b.MaxRetries && sum < b.MaxCallTime; n++ {
		sum += b.CallTimeout + min(b.Backoff.Max, time.Duration(min(wait*(1+b.Backoff.Jitter), float64(maxDuration))))
		switch b.Backoff.Kind {
		case "exponential":
			wait *= 2
		case "linear":
			wait += float64(b.Backoff.Base)
		}
	}
	return sum
}
