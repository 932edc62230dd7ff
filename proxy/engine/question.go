package engine

import (
	"slices"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// question is a request of the server at the client, under an id of ours: a new life of the server begins its ids anew.
type question struct {
	ours   int64
	theirs []byte  // raw id
	asks   []int64 // the attempts whose clocks it stopped
}

// maxQuestions bounds the questions that are open at the client.
const maxQuestions = 1024

// serverAsks passes a request of the server on to the client.
func (e *Engine) serverAsks(m *jsonrpc.Message) {
	q := &question{ours: e.nextID(), theirs: clone(m.ID.Of(m.Frame))}
	if e.leaving {
		e.refuseQuestion(q, clientGone())
		return
	}
	if len(e.asking) >= maxQuestions {
		e.refuseQuestion(q, tooManyQuestions())
		return
	}
	if !e.holdsIDs(len(q.theirs)) {
		e.refuseQuestion(q, tooManyQuestions())
		return
	}
	e.asking[q.ours] = q
	switch string(m.Method) {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		e.pause(q)
	}
	e.toClient(m.Frame, jsonrpc.Edit{At: m.ID, New: e.number(q.ours)})
}

func tooManyQuestions() *fault {
	return &fault{code: CodeRateLimited, text: "too many requests of the server are open at the client"}
}

// holdsIDs reports whether there is room for the id of one more question: all that are open may have ids as long as one message.
func (e *Engine) holdsIDs(size int) bool {
	total := int64(size)
	for _, q := range e.asking {
		total += int64(len(q.theirs))
	}
	return total <= e.server.MaxMessageBytes
}

// pause stops the clocks of the calls that a question may belong to: stdio does not say which, so it is all that run. What
// the client answers may have effects of its own, so none of them is sent again.
func (e *Engine) pause(q *question) {
	for _, id := range e.sentTo(e.life.gen) {
		a := e.pending[id].attempt
		if a == nil || a.op.running != a {
			continue
		}
		q.asks = append(q.asks, id)
		a.op.committed = true
		if a.questions++; a.questions == 1 {
			a.asked = e.now
			e.timers.arm(&a.timer, a.bound())
		}
	}
}

// resume lets the clocks go on that a question had stopped.
func (e *Engine) resume(q *question) {
	for _, id := range q.asks {
		a := e.pending[id].attempt
		if a == nil {
			continue // it was answered meanwhile
		}
		a.questions--
		op := a.op
		if a.questions > 0 || op.running != a {
			continue
		}
		op.deadline = op.deadline.Add(e.now.Sub(a.asked))
		e.timers.arm(&a.timer, e.patience(a))
	}
}

// clientAnswered hands an answer of the client to the server that asked.
func (e *Engine) clientAnswered(m *jsonrpc.Message) {
	id, ok := jsonrpc.IntID(m.ID.Of(m.Frame))
	q := e.asking[id]
	if !ok || q == nil {
		e.log(Record{Level: LevelDebug, Event: "stray_answer", Detail: "from the client: the server has no open request under its id"})
		return
	}
	delete(e.asking, id)
	e.resume(q)
	e.toServer(0, m.Frame, jsonrpc.Edit{At: m.ID, New: q.theirs})
}

// refuseQuestion answers the server in the client's stead. One that asks without end, and reads nothing, is not answered without end.
func (e *Engine) refuseQuestion(q *question, f *fault) {
	delete(e.asking, q.ours)
	e.resume(q)
	l := &e.life
	if l.refused >= maxRefused {
		if !l.unheard {
			l.unheard = true
			e.log(Record{Level: LevelWarn, Event: "noise", Detail: "it asks without end and does not read the answers; its requests are dropped until it does"})
		}
		return
	}
	l.refused, l.refusedAt = l.refused+len(q.theirs)+refusalSize, e.lastID
	mark := len(e.pieces)
	e.pieces = append(e.pieces, []byte(`{"jsonrpc":"2.0","id":`), q.theirs, []byte(`,"error":`),
		e.hold(func(b []byte) []byte { return e.appendError(b, f) }), []byte("}"))
	e.emit(ToServer, mark, e.life.gen, 0)
}

const (
	maxRefused  = 8 << 20 // bytes of refused requests that may wait for the server to read them
	refusalSize = 256     // of a refusal without its id, about
)

// heardAnswer takes in that the server has answered a request of ours. What was written before that, it has read.
func (l *life) heardAnswer(id int64) {
	if id > l.refusedAt {
		l.refused, l.unheard = 0, false
	}
}

// dropQuestion forgets a question whose server has died, and tells the client so.
func (e *Engine) dropQuestion(q *question) {
	delete(e.asking, q.ours)
	if e.leaving {
		return
	}
	mark := len(e.pieces)
	e.pieces = append(e.pieces, cancelHead, e.number(q.ours), cancelMiddle, []byte("the server has ended"), cancelTail)
	e.emit(ToClient, mark, 0, 0)
}

// openQuestions lists the questions that are open, oldest first.
func (e *Engine) openQuestions() []*question {
	all := make([]*question, 0, len(e.asking))
	for _, q := range e.asking {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *question) int { return int(a.ours - b.ours) })
	return all
}

// serverCancelled takes in that the server takes a request back: one of its own at the client, or a subscription of the client's.
func (e *Engine) serverCancelled(m *jsonrpc.Message) {
	span, ok := jsonrpc.Lookup(m.Frame, m.Params, "requestId")
	if !ok {
		return
	}
	raw := span.Of(m.Frame)
	theirs := jsonrpc.CanonicalID(raw)
	for _, q := range e.openQuestions() {
		if jsonrpc.CanonicalID(q.theirs) == theirs {
			delete(e.asking, q.ours)
			e.resume(q)
			e.toClient(m.Frame, jsonrpc.Edit{At: span, New: e.number(q.ours)})
			return
		}
	}
	id, _ := jsonrpc.IntID(raw)
	if p := e.pending[id].pass; p != nil && p.sent && p.method == "subscriptions/listen" {
		e.settlePassing(p)
		e.unanswered(jsonrpc.CanonicalID(p.id))
		e.toClient(m.Frame, jsonrpc.Edit{At: span, New: p.id})
	}
}
