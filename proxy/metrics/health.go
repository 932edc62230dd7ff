package metrics

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Health is how a server is, or all of them are.
type Health string

const (
	Healthy  Health = "healthy"  // it has answered, and calls pass
	Starting Health = "starting" // its process starts, or has not answered anything yet
	Degraded Health = "degraded" // its process has ended and the next call starts it anew, or some calls are refused by a breaker
	Open     Health = "open"     // breakers refuse all calls, until the time is come for a probe
)

// health is how the server is at a time. A breaker whose cooldown is over lets the next call pass, so it counts as degraded:
// were it told as open, nobody might ever send that call.
func (s *server) health(now time.Time) Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, troubled := 0, 0
	for _, b := range s.breakers {
		if b.state != "closed" {
			troubled++
		}
		if b.state == "open" && now.Before(b.until) {
			open++
		}
	}
	switch {
	case open > 0 && open == len(s.breakers):
		return Open
	case s.life == engine.LifeStarting:
		return Starting
	case s.life == engine.LifeDown || troubled > 0:
		return Degraded
	}
	return Healthy
}

// healthPage is the answer of /healthz.
type healthPage struct {
	Status  Health            `json:"status"`
	Servers map[string]Health `json:"servers"`
}

func (m *Metrics) health(now time.Time) healthPage {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := healthPage{Servers: make(map[string]Health, len(m.servers))}
	count := map[Health]int{}
	for name, s := range m.servers {
		h := s.health(now)
		page.Servers[valid(name)] = h
		count[h]++
	}
	switch n := len(m.servers); {
	case count[Healthy] == n:
		page.Status = Healthy
	case count[Open] == n:
		page.Status = Open
	case count[Healthy]+count[Starting] == n:
		page.Status = Starting
	default:
		page.Status = Degraded
	}
	return page
}

// serveHealth answers 503 if no call can pass, else 200: a proxy whose server starts, or starts again, or whose breakers
// refuse some calls, is still where calls should go.
func (m *Metrics) serveHealth(w http.ResponseWriter, _ *http.Request) {
	page := m.health(time.Now())
	status := http.StatusOK
	if page.Status == Open {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, page)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}
