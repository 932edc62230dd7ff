package engine_test

import (
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// simQueue is what the host has not written yet, for the server does not read.
type simQueue struct {
	takesBack bool
	clogged   bool
	frames    []simFrame
	answers   []engine.Event // to TakeBack actions
}

// simFrame is a frame for the server.
type simFrame struct {
	gen  uint64
	tag  int64
	data []byte
	at   time.Time
}

// clog has the server read no more for a while. A host that takes no frames back has no queue either.
func (s *sim) clog() { s.queue.clogged = s.queue.takesBack }

// unclog lets everything through that has waited.
func (s *sim) unclog() {
	s.queue.clogged = false
	if s.running != simRunning {
		return // what waits for a life that is being ended is never written
	}
	frames := s.queue.frames
	s.queue.frames = nil
	for _, f := range frames {
		s.toServer(f.gen, f.tag, f.data, f.at)
	}
	s.feed(engine.Event{Kind: engine.Tick})
}

// write takes in a frame of the engine to the server.
func (s *sim) write(f simFrame) {
	if s.queue.clogged {
		s.note("           → queue  %s", f.data)
		s.queue.frames = append(s.queue.frames, f)
		return
	}
	s.toServer(f.gen, f.tag, f.data, f.at)
}

// takeBack carries out a TakeBack action.
func (s *sim) takeBack(a *engine.Action) {
	i := slices.IndexFunc(s.queue.frames, func(f simFrame) bool { return f.gen == a.Gen && f.tag == a.Tag })
	s.note("           take %d of life %d back: %v", a.Tag, a.Gen, i >= 0)
	switch {
	case !s.queue.takesBack || a.Tag == 0:
		s.fail("frame %d is to be taken back by a host that cannot", a.Tag)
	case i >= 0:
		s.queue.frames = slices.Delete(s.queue.frames, i, i+1)
	case len(a.Data) > 0:
		s.write(simFrame{a.Gen, 0, join(a.Data), s.now})
	}
	s.queue.answers = append(s.queue.answers, engine.Event{Kind: engine.TakenBack, Gen: a.Gen, Tag: a.Tag, Taken: i >= 0})
}

// dropQueue forgets what was never written to a life that has ended, and names it.
func (s *sim) dropQueue() (unsent []int64) {
	for _, f := range s.queue.frames {
		if f.tag != 0 {
			unsent = append(unsent, f.tag)
		}
	}
	s.queue.frames = nil
	return unsent
}

// says takes in a frame of the server's.
func (s *sim) says(frame string) {
	if strings.Contains(frame, `"serverInfo"`) {
		s.greets = max(0, s.greets-1)
		s.greeted = true
	}
}

// checkWanted says whether somebody waits for a call that reaches the server: what was given up before it was written never is.
func (s *sim) checkWanted(a *simAttempt) {
	if !s.queue.takesBack {
		return
	}
	for _, r := range s.requests {
		if r.call && r.operationName == a.operationName {
			return
		}
	}
	s.fail("%s %d reaches the server, and nobody waits for it any more", a.tool, a.n)
}

// checkGreeted says whether a life may be called: once it has answered the client's greeting, and all that it got since.
func (s *sim) checkGreeted(a *simAttempt) {
	if !s.modern && (!s.greeted || s.greets > 0) {
		s.fail("%s %d reaches a server that has not answered initialize (%d are open)", a.tool, a.n, s.greets)
	}
}

// elements takes a batch to pieces.
func elements(frame string) (all []string) {
	for span := range jsonrpc.Elements([]byte(frame), jsonrpc.Span{Start: 0, End: len(frame)}) {
		all = append(all, frame[span.Start:span.End])
	}
	return all
}
