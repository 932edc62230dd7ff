//go:build darwin || openbsd

package proxy

// hangUp is what poll is asked for to learn that the other end was closed: it says so unasked.
const hangUp = 0

// unread is what ioctl is asked for to learn how many bytes can be read: FIONREAD, _IOR('f', 127, int).
const unread = 0x4004667f

// growPipe does nothing: these systems size their pipes themselves.
func growPipe(int) {}

// canNudge says whether nudge works: here a pipe is read in non-blocking mode instead.
const canNudge = false

func nudge(int) bool { return true }
