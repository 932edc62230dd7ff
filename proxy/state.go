package proxy

import (
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// sessions are those that run.
type sessions struct {
	mu   sync.Mutex
	open map[*session][]*engine.Engine
}

// enter makes a session known until the function that it returns is called.
func (r *sessions) enter(s *session, engines []*engine.Engine) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*session][]*engine.Engine{}
	}
	r.open[s] = engines
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, s)
	}
}

// State tells what the proxy holds at this moment, for a person who looks for a fault: a list for each session that runs, of its
// servers in their order. It may be called from any goroutine; sessions stand still while it looks.
func (p *Proxy) State() [][]engine.State {
	p.running.mu.Lock()
	defer p.running.mu.Unlock()
	all := make([][]engine.State, 0, len(p.running.open))
	for s, engines := range p.running.open {
		all = append(all, s.state(engines))
	}
	return all
}

func (s *session) state(engines []*engine.Engine) []engine.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]engine.State, len(engines))
	for i, e := range engines {
		states[i] = e.State(time.Now())
	}
	return states
}
