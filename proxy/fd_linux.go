package proxy

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hangUp is what poll is asked for to learn that the other end was closed.
const hangUp = unix.POLLRDHUP

// pipeSize is what a pipe is grown to, in bytes, so that frames of common sizes fit whole. What all pipes of a user take
// together is limited (64 MiB unless configured otherwise), and pipes beyond get the least size: so no more than is useful.
const pipeSize = 256 << 10

// growPipe makes a pipe larger where that is allowed.
func growPipe(fd int) {
	if n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0); err == nil && n < pipeSize {
		unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, pipeSize)
	}
}

// unread is what ioctl is asked for to learn how many bytes can be read.
const unread = unix.TIOCINQ

// canNudge says whether nudge works.
const canNudge = true

// nudge ends a read that blocks on a pipe whose other end we do not hold any more, by writing a blank line to it: the
// descriptor's entry in /proc can be opened for writing. If the pipe is full, nobody blocks. It reports whether there is such an entry.
func nudge(fd int) bool {
	w, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Write(w, newline)
	unix.Close(w)
	return true
}
