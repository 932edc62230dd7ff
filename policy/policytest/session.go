package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
)

// session is an engine between a client and one server of the config, both of which the test plays.
type session struct {
	world   *world
	setup   *serverSetup
	engine  *engine.Engine
	server  scripted
	lastID  int
	calls   map[string]*Call // of the client, by their raw id
	tags    map[int64]string // which call an attempt is of
	breaker map[string]string
}

// newSession starts an engine and makes the handshake, up to the list of tools.
func (w *world) newSession(setup *serverSetup) *session {
	s := &session{world: w, setup: setup, calls: map[string]*Call{}, tags: map[int64]string{}, breaker: map[string]string{}}
	s.server = scripted{session: s}
	s.engine = engine.New(engine.Config{
		Server: setup.server, Policy: setup.policy, Seed: w.suite.File.Seed, LogLevel: engine.LevelDebug,
		Observer: &engine.Observer{Decided: s.decided, Keyed: s.keyed, Sent: func(request string, tag int64) { s.tags[tag] = request }},
	})
	w.sessions = append(w.sessions, s)
	s.tick()
	w.settle()
	for _, frame := range handshake {
		s.fromClient(frame)
		w.settle()
	}
	return s
}

var handshake = []string{
	`{"jsonrpc":"2.0","id":"initialize","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"mcp-retry test","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	`{"jsonrpc":"2.0","id":"tools","method":"tools/list"}`,
}

// session returns the one with a server, which is started if it has not been needed before.
func (w *world) session(setup *serverSetup) *session {
	for _, s := range w.sessions {
		if s.setup == setup {
			return s
		}
	}
	return w.newSession(setup)
}

func (s *session) tick() { s.step(engine.Event{Kind: engine.Tick}) }

func (s *session) fromClient(frame string) {
	s.step(engine.Event{Kind: engine.FromClient, Frame: onOneLine([]byte(frame)), Owned: true})
}

func (s *session) fromServer(gen uint64, frame string) {
	s.step(engine.Event{Kind: engine.FromServer, Gen: gen, Frame: onOneLine([]byte(frame)), Owned: true})
}

// onOneLine is JSON as it may stand in a frame: users indent theirs over several lines. What is no JSON stays as it is.
func onOneLine(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
		return text
	}
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		return text
	}
	return line.Bytes()
}

// step gives the engine an event and carries out what it wants done.
func (s *session) step(ev engine.Event) {
	for _, a := range s.engine.Step(s.world.now, ev) {
		switch a.Kind {
		case engine.ToClient:
			s.toClient(bytes.Join(a.Data, nil))
		case engine.ToServer:
			s.server.receive(a.Gen, a.Tag, bytes.Join(a.Data, nil))
		case engine.StartServer:
			s.server.start(a.Gen)
		case engine.StopServer:
			s.server.stop(a.Gen)
		case engine.Log:
			s.record(a.Record)
		}
	}
}

// message is what is read of a frame.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// toClient takes in a frame for the client.
func (s *session) toClient(frame []byte) {
	var m message
	if json.Unmarshal(frame, &m) != nil || m.Method != "" {
		return
	}
	c := s.calls[string(m.ID)]
	if c == nil {
		return
	}
	c.answers++
	c.Result, c.failure = m.Result, readFailure(&m)
	c.finish(s.world.now)
}

// record takes in what the engine logs.
func (s *session) record(r *engine.Record) {
	c := s.calls[r.RequestID]
	switch r.Event {
	case "circuit_breaker_state_change":
		s.breaker[r.Scope] = r.To
		s.world.note("breaker %s: %s → %s", r.Scope, r.From, r.To)
	case "server_exit":
		s.world.note("the server has ended (%s)", r.Detail)
	case "noise":
		s.world.note("the server wrote what is no message: %s", r.Detail)
	case "attempt_end":
		s.world.plan(0, s.server.fallIfNext)
		if c != nil {
			c.attemptEnded(r)
		}
	case "cel_error":
		if c != nil {
			c.CELErrors = append(c.CELErrors, fmt.Sprintf("%s of rule %s: %s", r.Kind, r.Rule, r.Detail))
		}
	case "tool_call_end":
		if c != nil {
			c.ended(r)
		}
	}
}

// decided takes in a decision of policy.
func (s *session) decided(request string, d policy.Decided) {
	c := s.calls[request]
	if c == nil {
		return
	}
	c.Rules[d.Decision] = d.Rule
	c.values[d.Decision] = d.Value
	if s.world.coverage == nil && !s.world.trace {
		return
	}
	decision := Decision{Decision: d.Decision, Rule: d.Rule, Value: valueText(d.Value), value: d.Value, Attempt: len(c.Attempts)}
	if !s.world.brief {
		decision.Considered = d.Considered()
	}
	s.world.coverage.add(s.world.suite, &decision)
	if s.world.trace {
		c.Decisions = append(c.Decisions, decision)
	}
}

func (s *session) keyed(request string, key []byte) {
	if c := s.calls[request]; c != nil {
		c.key = bytes.Clone(key)
	}
}

// nextID is the raw JSON id of the client's next request.
func (s *session) nextID() string {
	s.lastID++
	return strconv.Itoa(s.lastID)
}

// note adds a line to the timeline.
func (w *world) note(format string, args ...any) {
	if w.trace {
		w.events = append(w.events, Event{At: w.now.Sub(w.start), Text: fmt.Sprintf(format, args...)})
	}
}
