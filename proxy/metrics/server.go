package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Bounds of what is shown by name, of each server.
const (
	maxListed   = 500 // tools that the server has listed
	maxUnlisted = 16  // tools that only a client has named
	maxScopes   = 64  // breakers
	maxName     = 128 // bytes; MCP 2025-11-25, tools, "Tool Names": "SHOULD be between 1 and 128 characters in length"
)

// other is the label of all that is not shown by name.
const other = "other"

// server is what is known of one server, beside the counts.
type server struct {
	label string

	mu       sync.Mutex
	tools    map[string]bool // shown by name, and whether listed
	listed   int
	life     engine.LifeState
	breakers map[string]breaker // all there are
	scopes   map[string]bool    // shown by name, the first that there were: a series that was begun is there for good
	others   map[string]int     // by state, how many of the breakers are not shown by name
}

type breaker struct {
	state string
	until time.Time // of an open one: when it lets a probe pass
}

func newServer(name string) *server {
	return &server{
		label: valid(name), tools: map[string]bool{}, breakers: map[string]breaker{}, scopes: map[string]bool{}, others: map[string]int{},
	}
}

// tool is the label of a tool.
func (s *server) tool(t engine.ToolName) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	listed, known := s.tools[t.Name]
	switch {
	case known && (listed || !t.Listed):
		return t.Name
	case t.Name == "" || len(t.Name) > maxName || valid(t.Name) != t.Name:
		return other
	case t.Listed && s.listed < maxListed:
		s.tools[t.Name] = true
		s.listed++
		return t.Name
	case known:
		return t.Name
	case !t.Listed && len(s.tools)-s.listed < maxUnlisted:
		s.tools[strings.Clone(t.Name)] = false
		return t.Name
	}
	return other
}

// valid is a text as a label may hold it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func (s *server) setLife(state engine.LifeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life = state
}

// setBreaker takes in that a breaker goes from one state to another, from "" if it is new, to "" if it is forgotten. It says under
// which label its scope is shown, and whether it is one of those there are: an attempt may still tell one that is forgotten.
func (s *server) setBreaker(scope, from, to string, until time.Time) (label string, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	label = other
	switch {
	case s.scopes[scope]:
		label = scope
	case len(s.scopes) < maxScopes && len(scope) <= maxName && valid(scope) == scope:
		label = scope
		s.scopes[scope] = true
	}
	old, known := s.breakers[scope]
	if !known && from != "" {
		return label, false
	}
	if label == other {
		if known {
			s.others[old.state]--
		}
		if to != "" {
			s.others[to]++
		}
	}
	switch to {
	case "":
		delete(s.breakers, scope)
	case "open":
		s.breakers[scope] = breaker{state: to, until: until}
	default:
		s.breakers[scope] = breaker{state: to}
	}
	return label, true
}

// worstOther is the worst state of the breakers that are not shown by name; "" = there are none.
func (s *server) worstOther() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, state := range []string{"open", "half_open", "closed"} {
		if s.others[state] > 0 {
			return state
		}
	}
	return ""
}
