package schema

import "time"

// DurationBounds returns how long a duration may be that is decided, and whether it may be 0. They are those of schema.cue, for what
// CUE does not see: durations inside expressions.
func DurationBounds(d Decision) (zero bool, most time.Duration) {
	switch d {
	case CallTimeout, TotalTimeout, MaxCallTime, Cooldown:
		return false, 24 * time.Hour
	case RetryDelay, BaseDelay, MaxDelay:
		return true, time.Hour
	}
	return true, 30 * 24 * time.Hour
}
