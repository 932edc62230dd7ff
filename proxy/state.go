package proxy

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// sessions are those that run.
type sessions struct {
	mu   sync.Mutex
	open map[*session]bool
}

// enter makes a session known until the function that it returns is called.
func (r *sessions) enter(s *session) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*session]bool{}
	}
	r.open[s] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, s)
	}
}

// all are the sessions that run at this moment.
func (r *sessions) all() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.open))
}

// State tells what the proxy holds at this moment, for a person who looks for a fault: a list for each session that runs, of its
// servers as they have come. It may be called from any goroutine; sessions stand still while it looks.
func (p *Proxy) State() [][]engine.State {
	running := p.running.all()
	all := make([][]engine.State, 0, len(running))
	for _, s := range running {
		all = append(all, s.state())
	}
	return all
}

func (s *session) state() []engine.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var states []engine.State
	for _, l := range s.links() {
		if l.retired {
			continue
		}
		state := l.engine.State(time.Now())
		state.Life.Detail = s.discreet(state.Life.Detail)
		for i := range state.Breakers {
			state.Breakers[i].Scope = s.discreet(state.Breakers[i].Scope)
		}
		for i := range state.Buckets {
			key := strings.Replace(state.Buckets[i].Key, "\x00", ": ", 1) // between the limit and what it was asked for
			state.Buckets[i].Key = s.discreet(key)
		}
		states = append(states, state)
	}
	return states
}

// discreet is a text without the secrets that servers are started with: a rule may make scopes and keys of them.
func (s *session) discreet(text string) string {
	if text == "" || s.makers == nil {
		return text
	}
	return s.makers.secrets.Text(text)
}
