package proxy

import (
	"io"
	"sync/atomic"
)

// A source is the way in from one side. Read is called by one goroutine, everything else by any.
type source interface {
	io.Reader
	// pause blocks until kick is called (also before pause) or the other end is known to have been closed, which it reports.
	pause() (closed bool)
	// kick ends a pause. It does not block.
	kick()
	// finish makes Read return what the other side has written so far and then io.EOF, even if the other end stays open.
	// It does not block.
	finish()
	// interruptible reports whether finish ends a Read that waits for more.
	interruptible() bool
	// close releases the source; Read has returned for good. What it was made from stays open.
	close()
}

// A plainSource reads from something that may block for ever and cannot be interrupted.
type plainSource struct {
	r     io.Reader
	owned io.Closer // closed with the source; nil = somebody else's
	woken chan struct{}
	ended atomic.Bool
}

func newPlainSource(r io.Reader) *plainSource {
	return &plainSource{r: r, woken: make(chan struct{}, 1)}
}

func (s *plainSource) Read(p []byte) (int, error) {
	if s.ended.Load() {
		return 0, io.EOF
	}
	return s.r.Read(p)
}

func (s *plainSource) pause() bool {
	<-s.woken
	return s.ended.Load()
}

func (s *plainSource) kick() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *plainSource) finish() {
	s.ended.Store(true)
	s.kick()
}

func (s *plainSource) interruptible() bool { return false }

func (s *plainSource) close() {
	if s.owned != nil {
		s.owned.Close()
	}
}
