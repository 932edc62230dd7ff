package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// lifeState is where the server's process stands.
type lifeState uint8

const (
	unborn    lifeState = iota // it was never started
	starting                   // the shell starts the process
	replaying                  // the process runs and is told what the session had agreed on
	greeting                   // the client's initialize is at the process: frames pass, and calls wait for its answer
	up                         // it takes messages
	stopping                   // it is being ended, for it is of no use
	down                       // it has ended, or could not be started
)

// life is the present life of the server's process. It is started when the session begins, and again on the next need
// after it has died, with back-off.
type life struct {
	state     lifeState
	gen       uint64
	begun     time.Time
	timer     timer     // of its start, or of the back-off before the next life
	useful    bool      // it answered a call
	heard     time.Time // when it last said anything
	retiring  bool      // it is being ended because it hangs
	metered   bool      // the meter knows that it is up
	outdated  bool      // the config wants it started otherwise: it is ended once nothing is in flight
	renewing  bool      // it is being ended for that
	greets    *passing  // an initialize of the client that the process has not answered
	agreed    bool      // it has answered an initialize, of the client or of ours
	replayed  bool      // it was told of the session by us
	failures  int       // lives in a row that were of no use
	notBefore time.Time
	detail    string   // how the last life ended
	refused   int      // bytes of refusals that it may not have read
	refusedAt int64    // our last id at the last of them
	unheard   bool     // it gets no more of them
	queue     []queued // what waits for it to be up, in order
	noted     int      // bytes of the notifications among that
	overfull  bool     // and some were dropped
}

// queued is something that waits for the server: an operation, or a frame of the client.
type queued struct {
	op    *operation
	pass  *passing
	frame []byte // of pass, or a notification
}

// Back-off between lives: the first restart is immediate, for a crash is usually the last for long; then the wait doubles.
const (
	respawnBase = 500 * time.Millisecond
	respawnMax  = 30 * time.Second
	soundLife   = 10 * time.Second // a life that lasted so long counts as useful
)

func respawnDelay(failures int) time.Duration {
	if failures <= 1 {
		return 0
	}
	return min(respawnMax, respawnBase<<min(failures-2, 10))
}

// ready reports whether frames can go to the server now. Calls go only when it is up.
func (e *Engine) ready() bool { return e.life.state == up || e.life.state == greeting }

func (e *Engine) startIfNever() {
	if e.life.state == unborn && !e.drained {
		e.start()
	}
}

// gone reports whether the server has ended and is not to be started again.
func (e *Engine) gone() bool {
	return e.server.Restart == "never" && !e.life.renewing && !e.life.outdated && (e.life.state == down || e.life.state == stopping)
}

func (e *Engine) goneText() string {
	return "it has ended (" + e.life.detail + ") and the config says restart: never"
}

// await queues something until the server is up, and sees to it that it comes up.
func (e *Engine) await(q queued) {
	e.life.queue = append(e.life.queue, q)
	e.need()
}

// need starts the server if it does not run, as soon as its back-off allows.
func (e *Engine) need() {
	l := &e.life
	switch {
	case e.drained || l.state != unborn && l.state != down:
	case e.now.Before(l.notBefore):
		e.timers.arm(&l.timer, l.notBefore)
	default:
		e.start()
	}
}

// unqueue takes an operation out of the queue.
func (e *Engine) unqueue(op *operation) {
	l := &e.life
	l.queue = slices.DeleteFunc(l.queue, func(q queued) bool { return q.op == op })
	if l.state == down && len(l.queue) == 0 {
		e.timers.stop(&l.timer) // nobody needs the next life any more
	}
}

func (e *Engine) start() {
	l := &e.life
	l.gen++
	l.state, l.begun, l.heard, l.useful, l.replayed, l.metered = starting, e.now, e.now, false, false, false
	l.outdated, l.renewing = false, false
	l.refused, l.unheard, l.agreed, l.noted, l.overfull = 0, false, false, 0, false
	e.meterLife(LifeStarting)
	e.timers.arm(&l.timer, e.now.Add(e.server.StartupTimeout))
	e.out = append(e.out, Action{Kind: StartServer, Gen: l.gen})
	e.log(Record{Level: LevelInfo, Event: "server_start", Attempt: int(l.gen)})
}

// serverUp goes on once the process runs: a first life is the client's to greet, a later one is told what the first was told. So is
// one after a greeting to which no answer came: whoever goes on without a new one means the old one still.
func (e *Engine) serverUp(gen uint64) {
	l := &e.life
	if gen != l.gen || l.state != starting {
		return
	}
	if e.session.initialize != nil && e.initializing() == nil {
		l.state = replaying
		e.replay()
		return
	}
	e.timers.stop(&l.timer)
	e.open()
}

// initializing is an initialize of the client that is open, at the server or on its way there; nil = there is none.
func (e *Engine) initializing() *passing {
	for _, same := range e.passing {
		for _, p := range same {
			if p.method == "initialize" {
				return p
			}
		}
	}
	return nil
}

// greeted lets calls go once the server has answered the client's initialize, whatever it said.
func (e *Engine) greeted() {
	l := &e.life
	if l.state != greeting || l.greets != nil {
		return
	}
	l.state = up
	queue := l.queue
	l.queue = nil
	for _, q := range queue {
		e.launch(q.op)
	}
}

// open lets everything pass that has waited for the server.
func (e *Engine) open() {
	l := &e.life
	l.state = up
	queue := l.queue
	l.queue = nil
	greets := e.initializing() != nil
	for _, q := range queue {
		switch {
		case q.op != nil && greets:
			l.queue = append(l.queue, q) // the client's greeting comes first, wherever it stands in the queue
		case q.op != nil:
			e.learnTools(q.op.facts.Meta)
			e.launch(q.op)
		case q.pass != nil:
			e.sendPassing(q.pass, q.frame)
		default:
			e.toServer(0, q.frame)
		}
	}
}

// lifeTimer is called when a start has taken too long, or when the back-off is over.
func (e *Engine) lifeTimer() {
	l := &e.life
	switch l.state {
	case down:
		if len(l.queue) > 0 {
			e.start()
		}
	case starting, replaying, greeting:
		detail := fmt.Sprintf("it did not answer initialize within %s", e.server.StartupTimeout)
		if l.state == greeting && l.agreed && e.session.former != nil {
			e.greetingIgnored(detail)
			return
		}
		e.useless(detail)
	}
}

// greetingIgnored gives up on an initialize of the client at a process that has answered one before, and goes on serving by that.
func (e *Engine) greetingIgnored(detail string) {
	for p := e.initializing(); p != nil; p = e.initializing() {
		if e.takesBack {
			e.out = append(e.out, Action{Kind: TakeBack, Gen: e.life.gen, Tag: p.ours})
		}
		e.failPassing(p, &fault{code: CodeUnavailable, kind: kindTimeout, text: unavailableText(e.server.Name, detail, "no")})
	}
	e.greetingRefused()
}

// useless ends a life that cannot be used, and settles what waits for it.
func (e *Engine) useless(detail string) {
	l := &e.life
	e.out = append(e.out, Action{Kind: StopServer, Gen: l.gen, Hurry: true})
	e.log(Record{Level: LevelError, Event: "server_useless", Detail: detail})
	e.dead(stopping, detail, true, nil)
}

// retire ends a life that hangs. Until it is gone it may still do, and even answer, what it was sent.
func (e *Engine) retire(detail string) {
	l := &e.life
	e.out = append(e.out, Action{Kind: StopServer, Gen: l.gen, Hurry: true})
	e.log(Record{Level: LevelError, Event: "server_hung", Detail: detail})
	e.timers.stop(&l.timer)
	l.state, l.detail, l.retiring = stopping, detail, true
}

// replay tells a new life of the server what the session had agreed on: the client's own initialize comes first.
func (e *Engine) replay() {
	id := e.nextID()
	e.pending[id] = pending{own: ownReplay}
	s := &e.session
	e.toServer(id, s.initialize, jsonrpc.Edit{At: s.initID, New: e.number(id)})
}

// replayed goes on when the new life of the server has answered initialize. The client learns nothing of it.
func (e *Engine) replayed(m *jsonrpc.Message) {
	l, s := &e.life, &e.session
	if l.state != replaying {
		return
	}
	if m.Kind == jsonrpc.Error {
		e.useless("it refused to be initialized again: " + errorMessage(m))
		return
	}
	e.timers.stop(&l.timer)
	if !s.agreed && e.initializing() == nil {
		s.agreed, s.confirmed = true, true // nobody else will: the client has gone on with a greeting that failed
	}
	l.agreed, l.replayed = true, s.confirmed
	l.state = up
	e.learnServer(m.Frame, m.Result)
	if s.confirmed {
		mark := len(e.pieces)
		e.pieces = append(e.pieces, initialized)
		e.emit(ToServer, mark, l.gen, 0)
	}
	if s.logLevel != nil {
		e.request(pending{own: ownIgnored}, "logging/setLevel", s.logLevel)
	}
	for _, uri := range sortedKeys(s.subscriptions) {
		e.request(pending{own: ownIgnored}, "resources/subscribe", s.subscriptions[uri])
	}
	if s.confirmed && e.tools.fetched {
		s.relisting, e.tools.asking, e.tools.changed = true, true, false
		e.requestTools(1, nil)
	}
	e.open()
}

var initialized = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

// request sends the server a request of our own.
func (e *Engine) request(p pending, method string, params []byte) {
	id := e.nextID()
	e.pending[id] = p
	mark := len(e.pieces)
	e.pieces = append(e.pieces, []byte(`{"jsonrpc":"2.0","id":`), e.number(id), []byte(`,"method":"`+method+`","params":`), params, []byte("}"))
	e.emit(ToServer, mark, e.life.gen, id)
}

// errorMessage is the message of an error response.
func errorMessage(m *jsonrpc.Message) string {
	span, _ := jsonrpc.Lookup(m.Frame, m.Err, "message")
	text, _ := jsonrpc.Text(span.Of(m.Frame))
	return text
}

func sortedKeys(m map[string][]byte) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
