package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// A frame for a server that does not read waits in the queue of the host. Whoever stops waiting for its answer takes it back, so that
// it is not executed later for nobody, or after a second attempt was. Only the host knows whether the frame has begun to go
// out, so it is asked (TakeBack) and answers before anything else happens (TakenBack).

// takeBackWait bounds the wait for the answer of a host that has promised one.
const takeBackWait = time.Second

// takeBackOverdue has an attempt that has run out of time taken back. What it came to is settled when the host has answered.
func (e *Engine) takeBackOverdue(a *attempt, at time.Time) {
	a.overdue = at
	e.timers.arm(&a.timer, e.now.Add(takeBackWait))
	e.out = append(e.out, Action{Kind: TakeBack, Gen: a.gen, Tag: a.id})
}

// emitCancel sends the server a cancellation, made of the pieces added since mark. If the request itself may still wait to be
// written, both are dropped.
func (e *Engine) emitCancel(mark int, id int64, mayWait bool) {
	if e.takesBack && mayWait {
		e.emit(TakeBack, mark, e.life.gen, id)
		return
	}
	e.emit(ToServer, mark, e.life.gen, 0)
}

// passCancel passes the client's cancellation of a request on under our own id of it.
func (e *Engine) passCancel(m *jsonrpc.Message, requestID jsonrpc.Span, id int64) {
	mark := len(e.pieces)
	e.pieces = jsonrpc.Pieces(e.pieces, m.Frame, jsonrpc.Edit{At: requestID, New: e.number(id)})
	e.emitCancel(mark, id, true)
}

// takenBack takes in whether a frame was taken back. Of one that was answered meanwhile, or passed for the client, nobody asks.
func (e *Engine) takenBack(ev *Event) {
	a := e.pending[ev.Tag].attempt
	switch {
	case a == nil || a.gen != ev.Gen:
	case a.op.running == a && !a.overdue.IsZero():
		e.timers.stop(&a.timer)
		e.timedOut(a, a.overdue, !ev.Taken)
	case a.op.running != a && ev.Taken:
		e.timers.stop(&a.timer)
		a.op.forget(a)
		e.neverSent(a)
		e.nothingMore(a.op, "")
	}
}

// neverSent takes in that not one byte of an attempt was written, and none will be: it does not count.
func (e *Engine) neverSent(a *attempt) {
	delete(e.pending, a.id)
	a.op.attempts--
}
