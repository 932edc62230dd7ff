//go:build darwin || linux || openbsd

package proxy

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// drainLimit bounds how long a finished source goes on reading from somebody who never stops writing. What had been written before
// is read however long that takes.
const drainLimit = 250 * time.Millisecond

// An fdSource reads from a pipe or socket. It leaves the descriptor's flags alone, which other processes may share, and
// reads in the goroutine that wants the bytes: if the descriptor is blocking, with a single system call, which for a lone
// small frame is the cheapest there is; if not, it waits in poll. The runtime's poller would cost wake-ups.
type fdSource struct {
	fd       int
	blocking bool
	ours     bool // a pipe of ours, which may be written to in order to end a blocking read
	wakeR    int
	wakeW    int          // non-blocking, as wakeR is
	until    atomic.Int64 // finished: when to stop even if more comes, in Unix nanoseconds; 0 = not finished
	owed     atomic.Int64 // finished: bytes that had been written by then and are not read yet, at most

	ending sync.Mutex // of what may happen at the same time at the end: finish, kick and close; it is held for a moment only
	closed bool       // the numbers of the descriptors may be somebody else's by now
	stuck  bool       // a read that blocks could not be ended
}

// newFDSource returns a source over a duplicate of the file's descriptor.
func newFDSource(f *os.File) (*fdSource, error) {
	fd, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	defer r.Close()
	defer w.Close()
	wakeR, err := duplicate(r)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	wakeW, err := duplicate(w)
	if err == nil {
		err = unix.SetNonblock(wakeW, true)
	}
	if err != nil {
		unix.Close(fd)
		unix.Close(wakeR)
		unix.Close(wakeW) // -1 if there is none
		return nil, err
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return &fdSource{fd: fd, blocking: err == nil && flags&unix.O_NONBLOCK == 0, wakeR: wakeR, wakeW: wakeW}, nil
}

func (s *fdSource) Read(p []byte) (int, error) {
	wait := !s.blocking
	for {
		if wait || s.until.Load() != 0 {
			if ready, err := s.poll(unix.POLLIN); err != nil || ready == 0 {
				if err != nil {
					return 0, err
				}
				continue
			}
		}
		n, err := unix.Read(s.fd, p)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN: // somebody who shares it has made it non-blocking
			wait = true
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		if s.until.Load() != 0 {
			s.owed.Add(-int64(n))
		}
		return n, nil
	}
}

// poll waits for events or a kick, and returns the events that came, if any. The error is io.EOF once the source is
// finished and there is nothing to read.
func (s *fdSource) poll(events int16) (int16, error) {
	fds := [2]unix.PollFd{{Fd: int32(s.fd), Events: events}, {Fd: int32(s.wakeR), Events: unix.POLLIN}}
	timeout := -1
	until := s.until.Load()
	if until != 0 {
		timeout = 0
	}
	n, err := unix.Poll(fds[:], timeout)
	switch {
	case err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("poll", err)
	case until != 0 && (fds[0].Revents == 0 || s.owed.Load() <= 0 && time.Now().UnixNano() > until):
		return 0, io.EOF
	case n > 0 && fds[1].Revents != 0:
		var b [64]byte
		unix.Read(s.wakeR, b[:])
	}
	return fds[0].Revents, nil
}

func (s *fdSource) pause() bool {
	if s.until.Load() != 0 {
		return true
	}
	fds := [2]unix.PollFd{{Fd: int32(s.fd), Events: hangUp}, {Fd: int32(s.wakeR), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds[:], -1); err != unix.EINTR {
			break
		}
	}
	if fds[1].Revents != 0 {
		var b [64]byte
		unix.Read(s.wakeR, b[:])
	}
	return fds[0].Revents != 0 || s.until.Load() != 0
}

func (s *fdSource) kick() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.wake()
}

// wake writes to the pipe that poll listens to. If that is full there is no need to. The lock is held.
func (s *fdSource) wake() {
	if !s.closed {
		unix.Write(s.wakeW, []byte{0})
	}
}

func (s *fdSource) finish() {
	s.ending.Lock()
	defer s.ending.Unlock()
	if !s.closed {
		if n, err := unix.IoctlGetInt(s.fd, unread); err == nil {
			s.owed.Store(int64(n))
		}
	}
	s.until.Store(time.Now().Add(drainLimit).UnixNano())
	s.wake()
	if s.blocking && s.ours && !s.closed {
		s.stuck = !nudge(s.fd)
	}
}

func (s *fdSource) interruptible() bool {
	s.ending.Lock()
	defer s.ending.Unlock()
	return !s.blocking || s.ours && !s.stuck
}

func (s *fdSource) close() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.closed = true
	unix.Close(s.fd)
	unix.Close(s.wakeR)
	unix.Close(s.wakeW)
}

// An fdSink writes to a pipe or socket that is in non-blocking mode.
type fdSink struct {
	fd      int
	restore bool // it was blocking, and others may rely on that
}

// newFDSink returns a sink over a duplicate of the file's descriptor, which it makes non-blocking until it is closed.
func newFDSink(f *os.File) (*fdSink, error) {
	fd, err := duplicate(f)
	if err != nil {
		return nil, err
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &fdSink{fd: fd, restore: flags&unix.O_NONBLOCK == 0}, nil
}

func (s *fdSink) write(pieces [][]byte) (int, error) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	var n int
	var err error
	if len(pieces) == 1 {
		n, err = unix.Write(s.fd, pieces[0])
	} else {
		n, err = unix.Writev(s.fd, pieces)
	}
	switch {
	case err == unix.EINTR:
		return max(n, 0), nil
	case err == unix.EAGAIN || err == nil && n < size:
		return max(n, 0), errFull
	case err != nil:
		return max(n, 0), os.NewSyscallError("write", err)
	}
	return n, nil
}

func (s *fdSink) wait(timeout time.Duration) error {
	fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
	if _, err := unix.Poll(fds[:], int(timeout.Milliseconds())); err != nil && err != unix.EINTR {
		return os.NewSyscallError("poll", err)
	}
	return nil
}

// deaf reports whether nobody can read what is written.
func (s *fdSink) deaf() bool {
	fds := []unix.PollFd{{Fd: int32(s.fd)}}
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0
}

func (s *fdSink) close() {
	if s.restore {
		unix.SetNonblock(s.fd, false)
	}
	unix.Close(s.fd)
}

// duplicate returns a descriptor of its own for an open file, out of reach of the runtime's poller and of whoever closes
// the file.
func duplicate(f *os.File) (int, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var dupErr error
	err = conn.Control(func(from uintptr) { fd, dupErr = unix.FcntlInt(from, unix.F_DUPFD_CLOEXEC, 3) })
	if err == nil && dupErr != nil {
		err = os.NewSyscallError("fcntl", dupErr)
	}
	return fd, err
}

// isStream reports whether v is a pipe or a socket: what can be polled and made non-blocking without side effects.
func isStream(v any) (*os.File, bool) {
	f, ok := v.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// newSource returns the source for a reader.
func newSource(r io.Reader) source {
	if f, ok := isStream(r); ok {
		if s, err := newFDSource(f); err == nil {
			growPipe(s.fd)
			return s
		}
	}
	return newPlainSource(r)
}

// newOutbox returns the outbox to a writer.
func newOutbox(w io.Writer) *outbox {
	if f, ok := isStream(w); ok {
		if s, err := newFDSink(f); err == nil {
			growPipe(s.fd)
			return &outbox{sink: s}
		}
	}
	return &outbox{w: w}
}

// ownSource returns the source for our end of a pipe, which it takes over.
func ownSource(f *os.File) source {
	s := newSource(f)
	switch s := s.(type) {
	case *plainSource:
		s.owned = f
	case *fdSource:
		s.ours = true
		s.blocking = canNudge && unix.SetNonblock(s.fd, false) == nil
		f.Close()
	}
	return s
}

// ownOutbox returns the outbox to our end of a pipe, which it takes over.
func ownOutbox(f *os.File) *outbox {
	o := newOutbox(f)
	if o.sink == nil {
		o.owned = f
	} else {
		f.Close()
	}
	return o
}
