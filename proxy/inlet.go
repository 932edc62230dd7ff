package proxy

import (
	"errors"
	"io"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// read feeds frames to the engine, each as the event given, until the source ends.
func (s *session) read(l *link, in *inlet, limit int64, ev engine.Event, tooBig engine.EventKind) {
	reader := jsonrpc.NewReader(in, limit)
	for {
		frame, owned, err := reader.Next()
		var long *jsonrpc.TooLong
		switch {
		case err == nil:
			ev.Frame, ev.Owned = frame, owned
			s.feed(l, ev)
			ev.Frame = nil // a large one must not live until the next
			if in.fed++; in.fed == flushFrames {
				in.fed = 0
				s.flush()
			}
		case errors.As(err, &long):
			s.feed(l, engine.Event{Kind: tooBig, Gen: ev.Gen, Frame: long.Head, Tail: long.Tail, Size: long.Size})
		default:
			return
		}
	}
}

// An inlet is what a frame reader reads from. The reader asks for more when it has handed out all frames that it had: that
// is the moment to send what came of them, and to wait if too much is waiting.
type inlet struct {
	session *session
	source  source
	full    func() bool
	fed     int  // frames since what came of them was sent
	closed  bool // the other end is closed: the little that is left is read whatever waits
}

func (in *inlet) Read(p []byte) (int, error) {
	in.fed = 0
	in.session.flush()
	for !in.closed && in.full() {
		in.closed = in.source.pause()
	}
	return in.source.Read(p)
}

var _ io.Reader = (*inlet)(nil)
