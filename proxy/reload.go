package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/compose"
	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Reload has every session look at the config file that it watches, at once and whether the file has changed or not; what comes
// of it is logged. It reports whether there was a session to ask: one that watches a file, and whose client has not closed its
// input.
func (p *Proxy) Reload() bool {
	asked := false
	for _, s := range p.running.all() {
		if s.watch != nil && !s.inEnded.Load() {
			s.watch.ask()
			asked = true
		}
	}
	return asked
}

// reload puts another config in force, whole or not at all.
func (s *session) reload(o Options) error {
	members, err := o.members()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.flush()
	defer s.mu.Unlock()
	if s.finished {
		return nil
	}
	if s.board == nil {
		l := s.links()[0]
		i := slices.IndexFunc(members, func(m Member) bool { return m.Server.Name == l.server.Name })
		if i < 0 {
			return fmt.Errorf("there is no server %q in it, which this session is for: start mcp-retry anew to have another", l.server.Name)
		}
		s.reconfigure(l, members[i])
		if others := namesOf(slices.Delete(members, i, i+1)); others != "" {
			s.log.record(time.Now(), &engine.Record{
				Level: engine.LevelWarn, Event: "config_reload", Server: l.server.Name,
				Detail: "the file has other servers too, which join in the next session: the names of all tools are other ones then: " + others,
			})
		}
		return nil
	}
	fresh, err := s.rearrange(members, o.Separator)
	if err != nil {
		return err
	}
	for _, m := range members {
		if i, _ := s.board.Index(m.Server.Name); !slices.Contains(fresh, i) {
			s.reconfigure(s.links()[i], m)
		}
	}
	return nil
}

// namesOf lists servers for a person.
func namesOf(members []Member) string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = strconv.Quote(m.Server.Name)
	}
	return strings.Join(names, ", ")
}

// reconfigure has the engine of a server take over its config.
func (s *session) reconfigure(l *link, m Member) {
	l.launch = m.Server
	if s.makers != nil {
		s.makers.secrets.Learn(m.Server)
	}
	s.step(l, engine.Event{Kind: engine.Reload, Server: m.Server, Policy: m.Policy}, nil)
}

// rearrange has the servers of the endpoint be these, and returns the indexes of those that were not there before.
func (s *session) rearrange(members []Member, separator string) (fresh []int, err error) {
	c := compose.Config{Separator: separator}
	before := s.linked.Load()
	links := slices.Clone(*before)
	for _, m := range members {
		server := compose.Server{Config: m.Server}
		if _, here := s.board.Index(m.Server.Name); !here {
			l := &link{session: s, index: len(links), server: m.Server}
			server.Engine, l.engine = s.makers.engine(m)
			server.Meter = l.engine.Meter()
			fresh = append(fresh, l.index)
			links = append(links, l)
		}
		c.Servers = append(c.Servers, server)
	}
	s.linked.Store(&links)
	now := time.Now()
	actions, err := s.board.Rearrange(now, c)
	if err != nil {
		s.linked.Store(before)
		return nil, err
	}
	for _, l := range links {
		if i, here := s.board.Index(l.server.Name); !here || i != l.index {
			l.retired = true
		}
	}
	s.carryOut(now, actions, nil)
	return fresh, nil
}

// tellRemoved tells whoever wants to know that a server is there no more, if it was removed.
func (s *session) tellRemoved(l *link) {
	if !l.retired || s.removed == nil {
		return
	}
	if _, again := s.board.Index(l.server.Name); !again {
		s.removed(l.server.Name)
	}
}
