package proxy

import "time"

// A clock tells the time at half the cost of time.Now, which asks the system for two times: between two readings of the wall clock,
// at most clockStep apart, it goes by the monotonic one alone. It is not safe for concurrent use.
type clock struct{ read time.Time }

// clockStep is how much later than others we may learn that the wall clock was set.
const clockStep = time.Second

func (c *clock) now() time.Time {
	since := time.Since(c.read)
	if since >= clockStep {
		c.read = time.Now()
		return c.read
	}
	return c.read.Add(since)
}
