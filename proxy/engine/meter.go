package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// Meter is told what is worth counting, as it happens. Its functions are called during Step, may not call the engine, and
// must return at once; all of them must be set. Their strings are constants of the engine except where it says otherwise.
type Meter struct {
	// CallBegan is told of each tools/call of the client that could be read.
	CallBegan func(tool ToolName)
	// CallEnded is told what it came to: exactly once for each that began.
	CallEnded func(tool ToolName, end CallEnd)

	// Sent is told of each attempt that is written to the server. again is the kind of failure after which it is a further
	// one: timeout, exit, rpc …; "" for the first of its call.
	Sent func(tool ToolName, again string)
	// Failed is told of each attempt that came to a failure, with its kind.
	Failed func(tool ToolName, kind string)

	// Cache is told what became of an answer that may be cached: hit, miss, stored, stale (it stood in for a failure), or
	// invalidated (found, but something had made it stale).
	Cache func(tool ToolName, result string)
	// Limited is told of an attempt for which there was no rate token: it waits, or is refused.
	Limited func(tool ToolName, wait time.Duration, refused bool)
	// EvalError is told of an expression that failed, by the decision that it was to take.
	EvalError func(decision string)

	// Breaker is told of a circuit breaker's change from one state to another: closed, half_open, open; until is when an
	// open one lets a probe pass. From "" it is a new one, to "" it is forgotten. The scope is the config's, or made from
	// what a client sent.
	Breaker func(scope, from, to string, until time.Time)

	// Life is told of a change in the life of the server's process, and which life it is, from 1.
	Life func(state LifeState, gen uint64)
	// Bytes is told of each frame that passes, by its length.
	Bytes func(d Direction, n int)
}

// ToolName is the name of a tool that a client has called.
type ToolName struct {
	Name   string
	Listed bool // the server has it among its tools; else the client may have made it up
}

// CallEnd is what a call came to.
type CallEnd struct {
	Status string        // as in the log: success, tool_error, error, timeout, refused, denied, cancelled
	By     string        // what refused it: breaker, rate_limit, max_concurrency, idempotency; "" unless Status is refused
	Dedup  string        // joined or replayed; "" = it was an operation of its own
	Took   time.Duration // from admission
}

// LifeState is where the server's process stands, as far as the world outside is concerned.
type LifeState uint8

const (
	LifeStarting LifeState = iota // the process starts, or has not answered yet
	LifeUp                        // it has answered
	LifeDown                      // it has ended; the next need starts another, unless the config says never
)

func (s LifeState) String() string { return [...]string{"starting", "up", "down"}[s] }

// Direction says where a frame comes from or goes to.
type Direction uint8

const (
	FromTheClient Direction = iota
	ToTheServer
	FromTheServer
	ToTheClient
)

func (d Direction) String() string {
	return [...]string{"from_client", "to_server", "from_server", "to_client"}[d]
}

// Meter is what the engine tells what it counts; nil = nobody.
func (e *Engine) Meter() *Meter { return e.meter }

// named is a tool as a meter knows it.
func (t *tool) named() ToolName { return ToolName{Name: t.Name, Listed: t.listed} }

func (e *Engine) meterBegin(c *call) {
	if m := e.meter; m != nil {
		m.CallBegan(c.own.tool.named())
	}
}

func (e *Engine) meterEnd(c *call, status string) {
	if m := e.meter; m != nil {
		dedup := c.own.dedup
		if dedup == "kept" {
			dedup = ""
		}
		by := ""
		if status == statusRefused {
			if by = c.op.endedBy; by == "" {
				by = "idempotency"
			}
		}
		m.CallEnded(c.own.tool.named(), CallEnd{Status: status, By: by, Dedup: dedup, Took: e.now.Sub(c.admitted)})
	}
}

func (e *Engine) meterSent(op *operation) {
	if m := e.meter; m != nil {
		again := ""
		if op.attempts > 1 {
			again = op.last.failure.Kind
		}
		m.Sent(op.tool.named(), again)
	}
}

func (e *Engine) meterAttempt(op *operation, o *outcome) {
	if m := e.meter; m != nil && !o.ok() {
		m.Failed(op.tool.named(), o.failure.Kind)
	}
}

func (e *Engine) meterCache(op *operation, result string) {
	if m := e.meter; m != nil {
		m.Cache(op.tool.named(), result)
	}
}

func (e *Engine) meterLimit(op *operation, wait time.Duration, refused bool) {
	if m := e.meter; m != nil && (refused || wait > 0) {
		m.Limited(op.tool.named(), wait, refused)
	}
}

func (e *Engine) meterEvalError(decision string) {
	if m := e.meter; m != nil {
		m.EvalError(decision)
	}
}

func (e *Engine) meterBreaker(b *breaker, from, to string) {
	if m := e.meter; m != nil {
		m.Breaker(b.scope, from, to, b.until)
	}
}

func (e *Engine) meterLife(s LifeState) {
	if m := e.meter; m != nil {
		m.Life(s, e.life.gen)
	}
}

// meterFrame counts a frame that came in. The first answer of a life says that the server is up.
func (e *Engine) meterFrame(ev *Event) {
	m := e.meter
	if m == nil {
		return
	}
	switch ev.Kind {
	case FromClient:
		m.Bytes(FromTheClient, len(ev.Frame))
	case ClientTooBig:
		m.Bytes(FromTheClient, int(ev.Size))
	case FromServer:
		m.Bytes(FromTheServer, len(ev.Frame))
	case ServerTooBig:
		m.Bytes(FromTheServer, int(ev.Size))
	}
}

// meterAnswer takes in that the server answered something: the first time in a life, it says that it is up.
func (e *Engine) meterAnswer(m *jsonrpc.Message) {
	if e.meter != nil && !e.life.metered && e.life.state != stopping && m.Kind == jsonrpc.Result {
		e.life.metered = true
		e.meterLife(LifeUp)
	}
}

// meterOut counts a frame that goes out.
func (e *Engine) meterOut(a *Action) {
	m := e.meter
	if m == nil {
		return
	}
	n := 0
	for _, piece := range a.Data {
		n += len(piece)
	}
	if a.Kind == ToClient {
		m.Bytes(ToTheClient, n)
	} else {
		m.Bytes(ToTheServer, n)
	}
}
