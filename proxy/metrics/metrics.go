package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Metrics is what has been counted. It is safe for concurrent use; several proxies in one process may each have their own.
type Metrics struct {
	registry *prometheus.Registry

	calls, refused, attempts, failures, retries, cache, dedup *prometheus.CounterVec
	transitions, limited, waits, waited                       *prometheus.CounterVec
	evalErrors, restarts, bytes, reloads                      *prometheus.CounterVec
	duration                                                  *prometheus.HistogramVec
	inFlight, breakerState, breakers, up                      *prometheus.GaugeVec

	mu      sync.Mutex
	servers map[string]*server
}

// Buckets of durations, in seconds. They reach from an answer of the cache to a call that progress carries on.
var durations = []float64{0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600}

// New returns metrics without a count. The servers named are shown from the beginning, as starting; others appear when a
// meter is asked for.
func New(version string, servers ...string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), servers: map[string]*server{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.calls = counter("calls_total", "Calls that have ended, by what they came to.", "server", "tool", "status")
	m.refused = counter("refused_total", "Calls that were refused without an attempt, by what refused them.", "server", "tool", "by")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "call_duration_seconds", Help: "Time from the admission of a call to its answer.",
		Buckets:                         durations,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"server", "tool"})
	m.registry.MustRegister(m.duration)
	m.inFlight = gauge("calls_in_flight", "Calls that wait for an answer.", "server")
	m.attempts = counter("attempts_total", "Sends of calls to the server.", "server", "tool")
	m.failures = counter("attempt_failures_total", "Attempts that failed, by the kind of failure.", "server", "tool", "kind")
	m.retries = counter("retries_total", "Attempts after the first of their call, by the kind of failure before them.", "server", "tool", "reason")
	m.cache = counter("cache_total", "Uses of the cache: hit, miss, stored, stale, invalidated.", "server", "tool", "result")
	m.dedup = counter("dedup_total", "Calls answered with the result of an identical one: joined in flight, or replayed.", "server", "tool", "kind")
	m.breakerState = gauge("breaker_state", "State of a circuit breaker: 0 closed, 1 half-open, 2 open.", "server", "scope")
	m.breakers = gauge("breakers", "Circuit breakers in each state.", "server", "state")
	m.transitions = counter("breaker_transitions_total", "Changes of the state of circuit breakers.", "server", "scope", "to")
	m.limited = counter("rate_limited_total", "Attempts refused for want of a rate token.", "server", "tool")
	m.waits = counter("rate_limit_waits_total", "Attempts that waited for a rate token.", "server", "tool")
	m.waited = counter("rate_limit_wait_seconds_total", "Time that attempts waited for a rate token.", "server", "tool")
	m.evalErrors = counter("cel_errors_total", "Expressions that failed, by the decision they were to take.", "server", "decision")
	m.restarts = counter("server_restarts_total", "Starts of the server's process after the first.", "server")
	m.up = gauge("server_up", "Whether the server's process runs and has answered.", "server")
	m.reloads = counter("config_reloads_total", "Changes of the config file while running: ok or refused.", "result")
	for _, result := range []string{"ok", "refused"} {
		m.reloads.WithLabelValues(result)
	}
	m.bytes = counter("message_bytes_total", "Bytes of messages, by where they came from or went to.", "server", "direction")

	build := gauge("build_info", "The version of mcp-retry.", "version")
	build.WithLabelValues(valid(version)).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, name := range servers {
		m.server(name)
	}
	return m
}

const namespace = "mcp_retry"

// Meter returns what counts for an engine that stands before a server. What its gauges tell is the state of one session: of
// several sessions with one server, each wants metrics of its own.
func (m *Metrics) Meter(name string) *engine.Meter {
	s := m.server(name)
	label := s.label
	var bytes [4]prometheus.Counter
	for d := engine.FromTheClient; d <= engine.ToTheClient; d++ {
		bytes[d] = m.bytes.WithLabelValues(label, d.String())
	}
	inFlight := m.inFlight.WithLabelValues(label)
	return &engine.Meter{
		CallBegan: func(engine.ToolName) { inFlight.Inc() },
		CallEnded: func(t engine.ToolName, end engine.CallEnd) {
			inFlight.Dec()
			tool := s.tool(t)
			m.calls.WithLabelValues(label, tool, end.Status).Inc()
			m.duration.WithLabelValues(label, tool).Observe(end.Took.Seconds())
			if end.By != "" {
				m.refused.WithLabelValues(label, tool, end.By).Inc()
			}
			if end.Dedup != "" {
				m.dedup.WithLabelValues(label, tool, end.Dedup).Inc()
			}
		},
		Sent: func(t engine.ToolName, again string) {
			tool := s.tool(t)
			m.attempts.WithLabelValues(label, tool).Inc()
			if again != "" {
				m.retries.WithLabelValues(label, tool, again).Inc()
			}
		},
		Failed: func(t engine.ToolName, kind string) { m.failures.WithLabelValues(label, s.tool(t), kind).Inc() },
		Cache:  func(t engine.ToolName, result string) { m.cache.WithLabelValues(label, s.tool(t), result).Inc() },
		Limited: func(t engine.ToolName, wait time.Duration, refused bool) {
			tool := s.tool(t)
			if refused {
				m.limited.WithLabelValues(label, tool).Inc()
				return
			}
			m.waits.WithLabelValues(label, tool).Inc()
			m.waited.WithLabelValues(label, tool).Add(wait.Seconds())
		},
		EvalError: func(decision string) { m.evalErrors.WithLabelValues(label, decision).Inc() },
		Breaker:   func(scope, from, to string, until time.Time) { m.breaker(s, scope, from, to, until) },
		Life: func(state engine.LifeState, gen uint64) {
			if state == engine.LifeStarting && gen > 1 {
				m.restarts.WithLabelValues(label).Inc()
			}
			s.setLife(state)
			up := 0.0
			if state == engine.LifeUp {
				up = 1
			}
			m.up.WithLabelValues(label).Set(up)
		},
		Bytes: func(d engine.Direction, n int) { bytes[d].Add(float64(n)) },
	}
}

// Reloaded counts a change of the config file, which was refused if err is not nil.
func (m *Metrics) Reloaded(err error) {
	result := "ok"
	if err != nil {
		result = "refused"
	}
	m.reloads.WithLabelValues(result).Inc()
}

// Forget takes a server out of the health, and its gauges off the page: it is there no more. Its counts stay, as counts must. It
// comes back when a meter is asked for.
func (m *Metrics) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[name]
	if s == nil {
		return
	}
	delete(m.servers, name)
	for _, gauge := range []*prometheus.GaugeVec{m.inFlight, m.up, m.breakers, m.breakerState} {
		gauge.DeletePartialMatch(prometheus.Labels{"server": s.label})
	}
}

// server returns what is known of a server, and shows its gauges from now on.
func (m *Metrics) server(name string) *server {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[name]
	if s == nil {
		s = newServer(name)
		m.servers[name] = s
		m.inFlight.WithLabelValues(s.label)
		m.up.WithLabelValues(s.label)
		m.restarts.WithLabelValues(s.label)
		for state := range stateValues {
			m.breakers.WithLabelValues(s.label, state)
		}
	}
	return s
}

// stateValues are the values of breaker_state: the greater, the worse.
var stateValues = map[string]float64{"closed": 0, "half_open": 1, "open": 2}

// breaker takes in a change of a breaker.
func (m *Metrics) breaker(s *server, scope, from, to string, until time.Time) {
	label, there := s.setBreaker(scope, from, to, until)
	if from != "" && to != "" {
		m.transitions.WithLabelValues(s.label, label, to).Inc()
	}
	if !there {
		return
	}
	if from != "" {
		m.breakers.WithLabelValues(s.label, from).Dec()
	}
	if to != "" {
		m.breakers.WithLabelValues(s.label, to).Inc()
	}
	if label == other {
		to = s.worstOther()
	}
	if to == "" {
		m.breakerState.DeleteLabelValues(s.label, label)
		return
	}
	m.breakerState.WithLabelValues(s.label, label).Set(stateValues[to])
}
