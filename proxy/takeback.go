package proxy

import "github.com/bentabol/mcp-retry/proxy/engine"

// A takenBack is an answer that the engine of a server waits for: what came of a TakeBack action.
type takenBack struct {
	link  *link
	event engine.Event
}

// takeBack takes a frame out of the queue to a server, or if it is too late for that, writes what the engine has for that case. The
// lock is held.
func (s *session) takeBack(l *link, a *engine.Action, keep []byte) {
	c := l.child.Load()
	if c == nil || c.gen != a.Gen {
		return // its end is reported, and with it what was never written
	}
	taken := c.stdin.takeBack(a.Tag)
	if !taken && a.Data != nil {
		c.stdin.add(a.Data, 0, keep)
	}
	s.takenBack = append(s.takenBack, takenBack{l, engine.Event{Kind: engine.TakenBack, Gen: a.Gen, Tag: a.Tag, Taken: taken}})
}

// tellTakenBack gives the engines the answers that they wait for. The lock is held.
func (s *session) tellTakenBack() {
	all := s.takenBack
	s.takenBack = nil
	for i := range all {
		s.step(all[i].link, all[i].event, nil)
	}
}
