//go:build darwin || openbsd

package proxy

// hangUp is what poll is asked for to learn that the other end was closed: it says so unasked.
const hangUp = 0

// growPipe does nothing: these systems size their pipes themselves.
func growPipe(int) {}

// canNudge says whether nudge works: here a pipe is read in non-blocking mode instead.
const canNudge = false

func nudge(int) {}
