package compose

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
	"github.com/bentabol/mcp-retry/schema"
)

// Engine is what decides for one server: an [engine.Engine].
type Engine interface {
	Step(now time.Time, ev engine.Event) []engine.Action
	NextWake() (time.Time, bool)
}

// Server is one of the servers that are composed.
type Server struct {
	Config *schema.Server
	Engine Engine
	Meter  *engine.Meter // of the engine: it is told of calls, too, that never get there; nil = nothing is counted
}

// Config is what a board is made of.
type Config struct {
	Servers   []Server // in the order of the file; at least one
	Separator string   // between the name of a server and what is its own; "" = [DefaultSeparator]
	Version   string   // of mcp-retry: what the client is told it talks to
	LogLevel  engine.Level
}

// Action is what the shell is to do about one of the servers, or the client.
type Action struct {
	Server int // its index; 0 for ToClient, Log and Finish of the board itself
	engine.Action

	borrowed bool // Data and Record belong to the engine, until its next step
}

// Board is the state of one session between a client and several servers. It is not safe for concurrent use.
type Board struct {
	members []*member // by index, which never changes; of those that have been retired, too
	order   []int     // those that are not retired, in the order of the file
	names   *names
	version string
	level   engine.Level
	now     time.Time

	out   []Action
	queue []task // what the engines are to be told in this step
	bytes []byte // what actions point into; valid until the next step

	lastPart int64
	batches  []*batch         // of the client, that are not answered whole; the last may be one that is being taken in
	parts    map[string]*part // our requests at the engines, by their id
	fans     []*fan           // requests of which several servers are asked
	open     map[string]int   // requests of the client that are with one server, by the client's id

	lastQuestion int64
	questions    map[int64]*question

	begun      bool
	protocol   string // revision that client and servers have agreed on; "" = none
	modern     bool   // the client speaks a revision without a handshake
	meta       []byte // _meta of a request of such a client
	initialize []byte // the client's request; nil = none
	initID     jsonrpc.Span
	greeting   *fan   // initialize is not answered yet
	confirmed  []byte // notifications/initialized
	logLevel   []byte // params of logging/setLevel
	held       [][]byte
	listens    map[string]*listen
	uris       map[string][]int // whose a resource is, in the order of the file
	shared     map[string]bool  // resources of several servers that were logged
	templates  []template
	listed     bool            // the client has asked for a list
	declared   map[string]bool // lists that it was told may change; nil = any

	leaving  bool      // the client will send no more
	drainAt  time.Time // when engines are told so even if requests are open
	told     bool      // engines were told so
	hurry    bool
	finished bool
}

// member is what the board knows of a server.
type member struct {
	Server
	stepped  bool // in this step
	finished bool
	retired  bool      // it is in the config no more
	dismiss  time.Time // of a retired one: when its engine is told so, even if requests are open; zero = it was told

	agreed       bool   // the handshake is made, or there is none
	shaking      bool   // it is being made
	capabilities []byte // what it declared; nil = not known
	missing      bool   // it was not there when it was asked
	gone         bool   // the client knows that the lists are without it
	detail       string // why
	failures     int    // times in a row that it was not there
	failedAt     time.Time
	probing      bool
	probeAt      time.Time // when to try it again; zero = never
	waiting      []waiter  // requests that wait for the handshake
}

// task is something that an engine is to be told.
type task struct {
	server int
	event  engine.Event
}

// New returns a board at rest. Its first Step starts the servers.
func New(c Config) (*Board, error) {
	if len(c.Servers) == 0 {
		return nil, errors.New("there is no server to compose")
	}
	b := &Board{
		version: c.Version, level: c.LogLevel,
		parts: map[string]*part{}, open: map[string]int{}, questions: map[int64]*question{},
		listens: map[string]*listen{}, uris: map[string][]int{}, shared: map[string]bool{},
	}
	var servers []string
	for i, s := range c.Servers {
		b.members = append(b.members, &member{Server: s})
		b.order = append(b.order, i)
		servers = append(servers, s.Config.Name)
	}
	var err error
	b.names, err = newNames(servers, separatorOf(&c))
	return b, err
}

// Step takes in one event, of the server with that index where it is one of a server, and returns what is to be done about it,
// in order. The actions are valid until the next Step. now must not go backwards. After Finish nothing happens any more.
func (b *Board) Step(now time.Time, server int, ev engine.Event) []Action {
	if !b.enter(now) {
		return nil
	}
	switch ev.Kind {
	case engine.Tick:
		for i := range b.members {
			b.tell(i, ev)
		}
	case engine.FromClient:
		b.fromClient(ev.Frame, ev.Owned)
	case engine.ClientTooBig:
		b.clientTooBig(&ev)
	case engine.ClientEOF:
		b.clientEOF()
	case engine.Terminate:
		b.terminate()
	case engine.Reload:
		b.reload(server, ev)
	case engine.ServerDown:
		b.down(server, ev)
	default:
		b.tell(server, ev)
	}
	return b.leave()
}

// enter begins a step; false = the board has finished.
func (b *Board) enter(now time.Time) bool {
	b.now = now
	clear(b.out)
	b.out, b.bytes = b.out[:0], b.bytes[:0]
	if cap(b.bytes) > 1<<20 {
		b.bytes = nil
	}
	for _, m := range b.members {
		m.stepped = false
	}
	return !b.finished
}

// leave ends a step, and returns what is to be done.
func (b *Board) leave() []Action {
	b.work()
	b.look()
	b.work()
	b.finishIfDone()
	return b.out
}

// NextWake says when Step must be called with a Tick if nothing else happens before; false = never.
func (b *Board) NextWake() (at time.Time, ok bool) {
	if b.finished {
		return at, false
	}
	sooner := func(t time.Time) {
		if !t.IsZero() && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	for _, m := range b.members {
		if m.finished {
			continue
		}
		if t, set := m.Engine.NextWake(); set {
			sooner(t)
		}
		sooner(m.probeAt)
		sooner(m.dismiss)
	}
	for _, f := range b.fans {
		sooner(f.deadline)
	}
	for _, batch := range b.batches {
		sooner(batch.until)
	}
	if b.leaving && !b.told {
		sooner(b.drainAt)
	}
	return at, ok
}

// look does what is due.
func (b *Board) look() {
	for _, f := range append([]*fan(nil), b.fans...) {
		switch {
		case f.deadline.IsZero() || b.now.Before(f.deadline):
		case f == b.greeting:
			b.greetWithout(f)
		default:
			b.giveUp(f)
		}
	}
	for _, batch := range slices.Clone(b.batches) {
		if !b.now.Before(batch.until) {
			b.breakUp(batch)
		}
	}
	for i, m := range b.members {
		if !m.probeAt.IsZero() && !b.now.Before(m.probeAt) {
			b.probe(i)
		}
		b.dismissIfIdle(i)
	}
	b.tellEngines()
}

// tell has an engine take in an event, once those before it are done. What the event points at must last until the end of the
// step, or be a part of the board's own.
func (b *Board) tell(server int, ev engine.Event) { b.queue = append(b.queue, task{server, ev}) }

// send has an engine take in a frame as one of its client.
func (b *Board) send(server int, frame []byte) {
	b.tell(server, engine.Event{Kind: engine.FromClient, Frame: frame})
}

// work has the engines take in all that waits for them.
func (b *Board) work() {
	for next := 0; next < len(b.queue); next++ {
		b.run(b.queue[next])
	}
	clear(b.queue)
	b.queue = b.queue[:0]
}

// run has an engine take in one event, and sorts what it wants done.
func (b *Board) run(t task) {
	m := b.members[t.server]
	if m.Engine == nil {
		return // it was retired, and has finished
	}
	if m.stepped {
		b.keep(t.server)
	}
	m.stepped = true
	for _, a := range m.Engine.Step(b.now, t.event) {
		switch a.Kind {
		case engine.ToClient:
			b.fromEngine(t.server, a)
		case engine.Finish:
			b.engineFinished(t.server, a)
		default:
			b.out = append(b.out, Action{Server: t.server, Action: a, borrowed: true})
		}
	}
}

// keep copies what an engine lent for this step, since it is stepped again.
func (b *Board) keep(server int) {
	for i := range b.out {
		a := &b.out[i]
		if !a.borrowed || a.Server != server {
			continue
		}
		a.borrowed = false
		if a.Data != nil {
			a.Data = [][]byte{bytes.Join(a.Data, nil)}
		}
		if a.Record != nil {
			record := *a.Record
			a.Record = &record
		}
	}
}

// hold returns the bytes that are appended by fill, which stay valid until the next step.
func (b *Board) hold(fill func([]byte) []byte) []byte {
	start := len(b.bytes)
	b.bytes = fill(b.bytes)
	return b.bytes[start:len(b.bytes):len(b.bytes)]
}

// toClient sends the client a frame made of pieces that last until the end of the step.
func (b *Board) toClient(pieces ...[]byte) {
	b.out = append(b.out, Action{Action: engine.Action{Kind: engine.ToClient, Data: pieces}})
}

// respondWith has the client get a response made of pieces that last until the end of the step.
func (b *Board) respondWith(id []byte, pieces ...[]byte) {
	b.respond(id, Action{Action: engine.Action{Kind: engine.ToClient, Data: pieces}})
}

// answer sends the client a response of our own making: member is "result" or "error".
func (b *Board) answer(id []byte, member string, value []byte) {
	if id == nil {
		id = []byte("null")
	}
	b.respondWith(id, []byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"`+member+`":`), value, []byte("}"))
}

func (b *Board) log(r engine.Record) {
	if r.Level >= b.level {
		b.out = append(b.out, Action{Action: engine.Action{Kind: engine.Log, Record: &r}})
	}
}

// name is the name of a server.
func (b *Board) name(server int) string { return b.members[server].Config.Name }

// whole is the span of a value that stands alone.
func whole(raw []byte) jsonrpc.Span { return jsonrpc.Span{End: len(raw)} }
