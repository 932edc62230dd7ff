package engine

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
	"github.com/bentabol/mcp-retry/schema"
)

// Config is what an engine is made of.
type Config struct {
	Server   *schema.Server
	Policy   *policy.Policy
	Seed     uint64    // of all randomness: the same seed and the same events give the same actions
	LogLevel Level     // records below it are not made; zero = LevelInfo
	Observer *Observer // nil = nobody wants to know more than the records say
	Meter    *Meter    // nil = nothing is counted

	// CompileSchema makes of a tool's outputSchema, a JSON object, what checks structured content against it. It is called
	// when the first result of the tool is to be validated, and again if the server lists the tool with another schema.
	// nil = only the shape of results is validated.
	CompileSchema func(schema []byte) (CheckValue, error)

	// TakesBack says that the host carries out TakeBack actions, each before its next event: frames wait in a queue of its
	// own until the server reads. false = a frame counts as written once its action was returned.
	TakesBack bool
}

// CheckValue holds a JSON value against a schema and says where it does not match; "" = it does. The error says that it
// cannot be checked: it is too large, say.
type CheckValue func(value []byte) (wrong string, err error)

// Engine is the state of one session between a client and a server. It is not safe for concurrent use.
type Engine struct {
	server   *schema.Server
	policy   *policy.Policy
	observer *Observer
	meter    *Meter
	random   *rand.Rand
	now      time.Time
	timers   timers

	out    []Action
	pieces [][]byte
	bytes  []byte // what pieces point into; valid until the next Step
	keyBuf []byte
	msg    jsonrpc.Message

	lastID   int64
	pending  map[int64]pending     // our requests at the server, by our id
	calls    map[string]*call      // the client's calls, by its id
	passing  map[string][]*passing // its other requests, by its id
	asking   map[int64]*question   // the server's requests at the client, by our id
	batches  map[string]*batch     // of the client's requests, by its id; those that came alone are not in it
	batch    *batch                // whose messages are being taken in; nil = none
	inFlight inFlight
	free     []*operation
	freed    []*operation // in this Step

	tools    toolTable
	breakers map[string]*breaker
	asked    uint64 // how often breakers were asked
	limiters map[string]*limiter
	places   places
	budget   budget
	store    *store
	facts    facts
	epochs   epochs

	session session
	life    life
	client  policy.Peer
	peer    policy.Peer // the server
	modern  bool        // the client speaks a revision without a handshake

	compile   func(schema []byte) (CheckValue, error)
	validates bool // some results are to be validated
	takesBack bool // frames may be taken back

	level   Level
	records []Record
	seq     uint64 // of calls

	drained bool // Finish was emitted
	leaving bool // the client will send no more
	drain   timer
}

// defaultScope is the breaker scope of the built-in policy: one breaker for the server.
const defaultScope = "server"

// New returns an engine at rest. Its first Step starts the server.
func New(c Config) *Engine {
	e := &Engine{
		server: c.Server, policy: c.Policy, level: c.LogLevel, observer: c.Observer, meter: c.Meter,
		random:   rand.New(rand.NewPCG(c.Seed, 0x6d63702d72657472)),
		pending:  map[int64]pending{},
		calls:    map[string]*call{},
		passing:  map[string][]*passing{},
		asking:   map[int64]*question{},
		batches:  map[string]*batch{},
		inFlight: newInFlight(),
		breakers: map[string]*breaker{},
		limiters: map[string]*limiter{},
		budget:   newBudget(c.Server.Budget),
		store:    newStore(c.Server.CacheLimit),
		peer:     policy.Peer{Name: c.Server.Name},
	}
	e.places.most = c.Server.MaxConcurrency
	e.compile, e.validates = c.CompileSchema, validatesAny(c.Server.Rules)
	e.takesBack = c.TakesBack
	e.store.evicted = e.factStays
	e.tools.init()
	e.life.timer.fire = (*Engine).lifeTimer
	e.drain.fire = func(e *Engine) { e.drainOver() }
	return e
}

// Step takes in one event and returns what is to be done about it, in order. The actions are valid until the next Step.
// now must not go backwards. After Finish nothing happens any more.
func (e *Engine) Step(now time.Time, ev Event) []Action {
	e.now = now
	clear(e.out)
	clear(e.pieces) // or the frame of the last Step would live on
	e.msg = jsonrpc.Message{}
	e.out, e.pieces, e.bytes, e.records = e.out[:0], e.pieces[:0], e.bytes[:0], e.records[:0]
	if len(e.freed) > 0 {
		e.takeFreed()
	}
	if cap(e.bytes) > 1<<20 {
		e.bytes = nil
	}
	if e.drained {
		return nil
	}
	e.meterFrame(&ev)
	for t := e.timers.due(now); t != nil; t = e.timers.due(now) {
		t.fire(e)
	}
	switch ev.Kind {
	case Tick:
		e.startIfNever()
	case FromClient:
		e.fromClient(ev.Frame, ev.Owned)
	case FromServer:
		e.fromServer(ev.Gen, ev.Frame)
	case ClientTooBig:
		e.clientTooBig(&ev)
	case ServerTooBig:
		e.serverTooBig(&ev)
	case ServerUp:
		e.serverUp(ev.Gen)
	case ServerDown:
		e.serverDown(&ev)
	case ClientEOF:
		e.clientEOF()
	case Terminate:
		e.terminate()
	case Reload:
		e.reload(&ev)
	case TakenBack:
		e.takenBack(&ev)
	}
	e.fillPlaces()
	e.renewIfIdle()
	e.finishIfDone()
	e.attachRecords()
	return e.out
}

// NextWake says when Step must be called with a Tick if nothing else happens before; false = never.
func (e *Engine) NextWake() (time.Time, bool) {
	if len(e.timers) == 0 {
		return time.Time{}, false
	}
	return e.timers[0].at, true
}

// nextID returns a fresh id for a request of ours: small integers are what every server can echo.
func (e *Engine) nextID() int64 {
	e.lastID++
	return e.lastID
}

// hold returns the bytes that are appended by fill, which stay valid until the next Step.
func (e *Engine) hold(fill func([]byte) []byte) []byte {
	start := len(e.bytes)
	e.bytes = fill(e.bytes)
	return e.bytes[start:len(e.bytes):len(e.bytes)]
}

// number returns an integer as text that stays valid until the next Step.
func (e *Engine) number(n int64) []byte {
	start := len(e.bytes)
	e.bytes = strconv.AppendInt(e.bytes, n, 10)
	return e.bytes[start:len(e.bytes):len(e.bytes)]
}

// emit sends a frame that is made of the pieces added since mark.
func (e *Engine) emit(kind ActionKind, mark int, gen uint64, tag int64) {
	e.out = append(e.out, Action{Kind: kind, Gen: gen, Tag: tag, Data: e.pieces[mark:len(e.pieces):len(e.pieces)]})
	e.meterOut(&e.out[len(e.out)-1])
}

// toClient sends a frame to the client with some of its parts replaced.
func (e *Engine) toClient(frame []byte, edits ...jsonrpc.Edit) {
	mark := len(e.pieces)
	e.pieces = jsonrpc.Pieces(e.pieces, frame, edits...)
	e.emit(ToClient, mark, 0, 0)
}

// respond sends the client a response made of the pieces added since mark, or puts it among those of the batch in which the request
// of that raw id came.
func (e *Engine) respond(id []byte, mark int) {
	if len(e.batches) > 0 || e.batch != nil {
		if b := e.batchOf(id); b != nil {
			e.addResponse(b, id, mark)
			return
		}
	}
	e.emit(ToClient, mark, 0, 0)
}

// toServer sends a frame to the server with some of its parts replaced.
func (e *Engine) toServer(tag int64, frame []byte, edits ...jsonrpc.Edit) {
	mark := len(e.pieces)
	e.pieces = jsonrpc.Pieces(e.pieces, frame, edits...)
	e.emit(ToServer, mark, e.life.gen, tag)
}

// answer sends the client a response of our own making: member is "result" or "error".
func (e *Engine) answer(id []byte, member string, value []byte) {
	mark := len(e.pieces)
	if id == nil {
		id = []byte("null")
	}
	e.pieces = append(e.pieces, []byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"`+member+`":`), value, []byte("}"))
	e.respond(id, mark)
}

// refuse answers a request of the client with an error of ours. A call may be told by a result instead.
func (e *Engine) refuse(id []byte, f *fault) {
	if f.tool != "" && e.server.Errors == "result" {
		e.answer(id, "result", e.hold(func(b []byte) []byte { return e.appendErrorResult(b, f) }))
		return
	}
	e.answer(id, "error", e.hold(func(b []byte) []byte { return e.appendError(b, f) }))
}
