package engine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// sim is the world of one history: the client and the server with all that they remember, to hold the engine to it.
type sim struct {
	setup  *setup
	modern bool
	e      *engine.Engine
	now    time.Time
	trace  *strings.Builder // nil = nobody looks
	err    error            // the first invariant that was broken

	protocol string   // the revision of a session with a handshake
	batch    []string // what the client gathers for a batch; nil = it sends what it has

	step     int // counts engine steps
	finished bool
	gone     bool // the client sent its EOF
	goneAt   time.Time

	// The client.
	lastID    int
	requests  []*simRequest // open ones, in the order they were sent
	questions []simQuestion // of the server, open at the client
	counts    map[operationName]int
	loosened  map[operationName]bool // progress or a question carried it on: only max_call_time bounds it

	// The server.
	gen      uint64
	running  simLife
	listed   bool // it has listed its tools
	silent   bool // it answers nothing by itself
	ids      map[int64]bool
	attempts []*simAttempt // calls at the server, and those of before
	asked    []simAsked    // other requests at the server, open
	replies  []string      // it will send at once
	queue    simQueue      // what waits to be written to it
	greeted  bool          // its present life has answered an initialize
	greets   int           // initialize requests that it has not answered
	lastExec int
	execs    map[int]*simExec
	version  int                   // counts the effects of writes
	floors   int                   // version that a read must have seen that begins now
	used     map[operationName]int // version of the last effect of an operation
}

type simLife int

const (
	simNone simLife = iota
	simStarting
	simRunning
	simStopping
)

// operationName is what the world knows an operation by: a tool and the number among its arguments.
type operationName struct {
	tool string
	n    int
}

// simRequest is a request of the client that is open.
type simRequest struct {
	operationName
	id       string
	call     bool // else a request that passes
	keyed    bool
	unknown  bool // it came before the tools were listed
	joins    bool // it may join one that is under way
	token    string
	admitted time.Time
	step     int
	floor    int
}

type simQuestion struct {
	ours   int64
	theirs string
}

type simAsked struct {
	id     int64
	method string
	n      int
	off    bool // the client has taken it back

	protocol string
}

// simAttempt is a call as the server sees it.
type simAttempt struct {
	operationName
	id       int64
	gen      uint64
	keyed    bool
	at       time.Time
	sees     int // version that a read sees
	status   simStatus
	ended    time.Time
	effect   bool
	progress int
	known    bool // the tools were listed when it was answered
	asks     bool // it has shown signs of life: it was written
	off      bool // the client, or the engine, has taken it back
	partial  bool // its answer asks for more input
}

type simStatus int

const (
	simOpen    simStatus = iota
	simOK                // answered by a result
	simFailed            // answered by an error after which it may have taken effect
	simRefused           // answered by an error that says that it has not
	simLost              // its server ended
	simUnsent            // it never reached the server
)

// simExec is an answer of the server.
type simExec struct {
	step     int
	ok       bool
	partial  bool
	received int // by calls that were open then
	replayed int // by calls that came later
}

func newSim(h history, trace *strings.Builder) *sim {
	s := &sim{
		setup: setups[h.setup], modern: h.era == 0, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), trace: trace,
		counts: map[operationName]int{}, loosened: map[operationName]bool{}, ids: map[int64]bool{}, execs: map[int]*simExec{}, used: map[operationName]int{},
	}
	server, compiled := s.setup.compile()
	level := engine.LevelError + 1
	if trace != nil || h.seed%8 == 0 {
		level = engine.LevelDebug
	}
	s.protocol = "2025-06-18"
	if h.seed%4 == 2 {
		s.protocol = batches
	}
	s.queue.takesBack = h.seed%3 != 0
	s.e = engine.New(engine.Config{Server: server, Policy: compiled, Seed: h.seed, LogLevel: level, TakesBack: s.queue.takesBack})
	return s
}

func (s *sim) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *sim) note(format string, args ...any) {
	if s.trace != nil {
		fmt.Fprintf(s.trace, "%8.3fs  "+format+"\n", append([]any{s.now.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Seconds()}, args...)...)
	}
}

// begin starts the session. The first start may fail; the client goes on all the same.
func (s *sim) begin(spawns bool) {
	if s.trace != nil {
		s.trace.WriteString(s.setup.yaml)
	}
	s.feed(engine.Event{Kind: engine.Tick})
	if s.modern {
		s.liveUp()
		return
	}
	s.greet()
	if spawns {
		s.liveUp()
	} else {
		s.liveEnds(true, 0)
	}
}

// greet has the client make the handshake, without waiting for the server.
func (s *sim) greet() {
	s.fromClient(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + s.protocol + `","capabilities":{},"clientInfo":{"name":"sim","version":"1"}}}`)
	s.fromClient(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (s *sim) fromClient(frame string) {
	switch {
	case s.gone:
	case s.batch != nil:
		s.batch = append(s.batch, frame)
	default:
		s.note("client  → %s", frame)
		s.feed(engine.Event{Kind: engine.FromClient, Frame: []byte(frame)})
	}
}

func (s *sim) fromServer(frame string) {
	if s.running == simRunning {
		s.note("           ← server %s", frame)
		s.says(frame)
		s.feed(engine.Event{Kind: engine.FromServer, Gen: s.gen, Frame: []byte(frame)})
	}
}

// feed has the engine take in an event, and with it all that is due, and all that the server answers at once.
func (s *sim) feed(ev engine.Event) {
	s.once(ev)
	for range 1000 {
		if s.err != nil || s.finished {
			return
		}
		if len(s.queue.answers) > 0 { // the host answers before anything else happens
			answer := s.queue.answers[0]
			s.queue.answers = s.queue.answers[1:]
			s.once(answer)
			continue
		}
		if len(s.replies) > 0 {
			reply := s.replies[0]
			s.replies = s.replies[1:]
			if s.running == simRunning {
				s.listed = s.listed || strings.Contains(reply, `"tools":[`)
				s.note("           ← server %s", reply)
				s.says(reply)
				s.once(engine.Event{Kind: engine.FromServer, Gen: s.gen, Frame: []byte(reply)})
			}
			continue
		}
		if at, ok := s.e.NextWake(); ok && !at.After(s.now) {
			s.once(engine.Event{Kind: engine.Tick})
			continue
		}
		if err := s.e.Check(); err != nil {
			s.fail("the engine's state: %w", err)
		}
		s.checkDeadlines()
		return
	}
	s.fail("the engine and the server keep each other busy for ever")
}

// once is one step of the engine.
func (s *sim) once(ev engine.Event) {
	if s.finished || s.err != nil {
		return
	}
	s.step++
	for _, a := range s.e.Step(s.now, ev) {
		switch a.Kind {
		case engine.ToClient:
			s.toClient(join(a.Data))
		case engine.ToServer:
			s.write(simFrame{a.Gen, a.Tag, join(a.Data), s.now})
		case engine.TakeBack:
			s.takeBack(&a)
		case engine.StartServer:
			s.note("           start life %d", a.Gen)
			if s.running != simNone {
				s.fail("life %d is started while life %d has not ended", a.Gen, s.gen)
			}
			s.gen, s.running = a.Gen, simStarting
		case engine.StopServer:
			s.note("           stop life %d", a.Gen)
			if a.Gen != s.gen || s.running == simNone {
				s.fail("life %d is stopped, which does not run", a.Gen)
			}
			s.running = simStopping
		case engine.Log:
			if a.Record == nil || a.Record.Event == "" {
				s.fail("a log action without a record")
			}
			s.note("  log %s", strings.Join(strings.Fields(fmt.Sprintf("%+v", *a.Record)), " "))
		case engine.Finish:
			s.note("finish")
			s.finished = true
			s.checkAllAnswered()
		}
	}
}

func join(pieces [][]byte) []byte {
	var frame []byte
	for _, p := range pieces {
		frame = append(frame, p...)
	}
	return frame
}

// advance moves the clock, stopping wherever the engine wants to be woken.
func (s *sim) advance(d time.Duration) {
	end := s.now.Add(d)
	for s.err == nil && !s.finished {
		at, ok := s.e.NextWake()
		if !ok || at.After(end) {
			break
		}
		s.now = at
		s.feed(engine.Event{Kind: engine.Tick})
	}
	s.now = end
	s.feed(engine.Event{Kind: engine.Tick})
}

// liveUp brings up a life that starts.
func (s *sim) liveUp() {
	if s.running == simStarting {
		s.note("           life %d is up", s.gen)
		s.running = simRunning
		s.feed(engine.Event{Kind: engine.ServerUp, Gen: s.gen})
	}
}

// liveEnds ends the present life, if there is one. unsent says how many of the last frames were never written.
func (s *sim) liveEnds(spawn bool, unsent int) {
	if s.running == simNone {
		return
	}
	ev := engine.Event{Kind: engine.ServerDown, Gen: s.gen, Spawn: spawn, Detail: "exit status 3", Stderr: "one\ntwo", Unsent: s.dropQueue()}
	s.greeted, s.greets = false, 0
	s.replies = nil
	s.asked = nil
	for i := len(s.attempts) - 1; i >= 0; i-- {
		a := s.attempts[i]
		if a.gen != s.gen || a.status != simOpen {
			continue
		}
		a.status, a.ended = simLost, s.now
		if given := a.at.Add(s.setup.most); given.Before(s.now) {
			a.ended = given // nobody has listened since
		}
		if unsent > 0 && !a.effect && !a.asks {
			unsent--
			a.status = simUnsent
			ev.Unsent = append(ev.Unsent, a.id)
		}
	}
	s.note("           life %d ends (spawn %v, unsent %v)", s.gen, spawn, ev.Unsent)
	s.running = simNone
	s.feed(ev)
}

// toServer takes in a frame of the engine to the server, which was emitted some time ago.
func (s *sim) toServer(gen uint64, tag int64, frame []byte, at time.Time) {
	s.note("           → server %s", frame)
	var m jsonrpc.Message
	if err := jsonrpc.Parse(frame, &m); err != nil {
		s.fail("the engine wrote %q to the server: %v", frame, err)
		return
	}
	if gen != s.gen || s.running != simRunning {
		s.fail("a frame for life %d, and life %d is in state %d: %s", gen, s.gen, s.running, frame)
		return
	}
	if m.Kind != jsonrpc.Request {
		if string(m.Method) == "notifications/cancelled" {
			s.takenBack(int64(s.number(frame, m.Params, "requestId")))
		}
		return
	}
	id, ok := jsonrpc.IntID(m.ID.Of(frame))
	if !ok || s.ids[id] {
		s.fail("the engine used the id of this before, or it is no integer: %s", frame)
	}
	s.ids[id] = true
	args, _ := jsonrpc.Lookup(frame, m.Params, "arguments")
	if string(m.Method) == "tools/call" {
		if tag != id {
			s.fail("the tag of an attempt is %d, its id %d", tag, id)
		}
		name, _ := jsonrpc.Lookup(frame, m.Params, "name")
		a := &simAttempt{id: id, gen: gen, at: at, sees: s.version}
		a.tool, _ = jsonrpc.Text(name.Of(frame))
		a.n = s.number(frame, args, "n")
		a.keyed = a.n >= keyedFrom
		s.checkWanted(a)
		s.checkGreeted(a)
		s.checkAttempt(a)
		s.checkCrowd(a)
		s.checkPace(a)
		s.attempts = append(s.attempts, a)
		return
	}
	q := simAsked{id: id, method: string(m.Method), n: s.number(frame, m.Params, "n")}
	if q.method == "initialize" {
		s.greets++
	}
	q.protocol = s.protocol
	if s.silent {
		s.asked = append(s.asked, q)
		return
	}
	s.replies = append(s.replies, q.reply())
}

// takenBack takes in that nobody waits for a call any more.
func (s *sim) takenBack(id int64) {
	for _, a := range s.attempts {
		a.off = a.off || a.id == id
	}
}

// reply is the server's answer to a request other than a call.
func (q simAsked) reply() string {
	result := fmt.Sprintf(`{"n":%d}`, q.n)
	switch q.method {
	case "initialize":
		result = `{"protocolVersion":"` + q.protocol + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`
	case "tools/list":
		result = strings.ReplaceAll(tools, "\n", " ")
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, q.id, result)
}

// number reads an integer member.
func (s *sim) number(frame []byte, object jsonrpc.Span, name string) int {
	span, _ := jsonrpc.Lookup(frame, object, name)
	n, _ := jsonrpc.IntID(span.Of(frame))
	return int(n)
}
