package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// attempt tries to send an operation to the server. The order of its guards: time first, for nothing is worth starting that
// cannot end; then the breaker, whose refusal costs nothing. The rest follows once the server is up, so that what was counted
// is what it gets: a rate token, which every attempt spends, and last a place, which nobody should hold who cannot use it yet.
func (e *Engine) attempt(op *operation) {
	d := op.decided
	tried := op.attempts+op.resends > 0
	if tried && !e.timeFor(op, minAttempt(d.CallTimeout), endDeadline, &op.last) {
		e.end(op, endDeadline)
		return
	}
	if !e.permitted(op) {
		return
	}
	e.launch(op)
}

// lastStart is the latest moment at which it is worth starting an attempt.
func (op *operation) lastStart() time.Time {
	return op.deadline.Add(-minAttempt(op.decided.CallTimeout))
}

// launch sends the next attempt as soon as the server is up, and its turn has come.
func (e *Engine) launch(op *operation) {
	if e.life.state != up {
		if e.gone() {
			op.resends = maxResends
			e.undelivered(op, e.goneText())
			return
		}
		op.state = waiting
		op.goes = (*Engine).neverUp
		e.timers.arm(&op.timer, op.deadline)
		e.await(queued{op: op})
		return
	}
	if p := op.permit; p.breaker != nil && p.period != p.breaker.period {
		// The breaker has changed its state during the wait: what it granted before says nothing now.
		op.permit = permit{}
		if !e.permitted(op) {
			return
		}
	}
	if e.takeToken(op) && e.takePlace(op) {
		e.send(op)
	}
}

// permitted asks the breaker for leave to make an attempt. If it refuses, the operation has ended.
func (e *Engine) permitted(op *operation) bool {
	d := op.decided
	if d.BreakerScope == "" {
		return true
	}
	b := e.breakerFor(d.BreakerScope, d.Breaker)
	p, ok, wait := e.ask(b, op.tool.Name)
	if !ok {
		e.endAtBreaker(op, b, wait)
		return false
	}
	op.permit = p
	return true
}

// neverUp ends an operation for which the server did not come up in time.
func (e *Engine) neverUp(op *operation) {
	o := lost(kindSpawn, deliveryNotSent, CodeUnavailable, "it did not become ready in time")
	if l := &e.life; l.state == down && l.detail != "" {
		o.detail = "its last life ended (" + l.detail + ")"
		if wait := l.notBefore.Sub(e.now); wait > 0 {
			o.detail += ", and it is started again in " + roughly(wait)
			o.failure.RetryAfter = wait
		}
	}
	said := &o
	if op.attempts > 0 {
		said = &op.last
	}
	if e.handOver(op, endDeadline, said) {
		e.timers.arm(&op.timer, op.deadline)
		return
	}
	e.unqueue(op)
	e.judgePermit(op, op.takePermit(), &o)
	op.last = *said
	e.end(op, endDeadline)
}

// undelivered settles an operation whose attempt could not even be sent, for the server could not be started.
func (e *Engine) undelivered(op *operation, detail string) {
	e.timers.stop(&op.timer)
	e.giveBack(op)
	o := lost(kindSpawn, deliveryNotSent, CodeUnavailable, detail)
	e.judgePermit(op, op.takePermit(), &o)
	e.logAttempt(op, nil, &o)
	e.meterAttempt(op, &o)
	op.last = o
	wait, endedBy := e.again(op, &o.failure)
	if endedBy != "" {
		e.end(op, endedBy)
		return
	}
	e.retryAfter(op, wait)
}

// send writes an attempt to the server.
func (e *Engine) send(op *operation) {
	e.timers.stop(&op.timer)
	op.rate = nil
	op.attempts++
	e.invalidate(op, false)
	a := op.newAttempt()
	a.id, a.number, a.gen, a.sent, a.epoch, a.permit = e.nextID(), op.attempts, e.life.gen, e.now, e.epochs.now, op.takePermit()
	a.placed, op.placed = op.placed, false
	op.state, op.running = sending, a
	e.pending[a.id] = pending{attempt: a}
	e.observeSent(op, a)
	e.meterSent(op)
	e.timers.arm(&a.timer, e.patience(a))
	number := e.number(a.id)
	switch {
	case op.token.Empty():
		e.toServer(a.id, op.frame, jsonrpc.Edit{At: op.id, New: number})
	case op.token.Start < op.id.Start:
		e.toServer(a.id, op.frame, jsonrpc.Edit{At: op.token, New: number}, jsonrpc.Edit{At: op.id, New: number})
	default:
		e.toServer(a.id, op.frame, jsonrpc.Edit{At: op.id, New: number}, jsonrpc.Edit{At: op.token, New: number})
	}
}

// newAttempt returns an attempt of the operation; the first needs no memory of its own.
func (op *operation) newAttempt() *attempt {
	a := &op.attempt1
	if op.attempts > 1 || op.resends > 0 {
		a = &attempt{}
	}
	*a = attempt{op: op, timer: timer{fire: a.timer.fire}}
	if a.timer.fire == nil {
		a.timer.fire = func(e *Engine) { e.attemptTimer(a) }
	}
	return a
}

// takePermit hands out the breaker's leave, which must be given back once.
func (op *operation) takePermit() permit {
	p := op.permit
	op.permit = permit{}
	return p
}

// patience is when a running attempt times out if nothing is heard of it.
func (e *Engine) patience(a *attempt) time.Time {
	a.idle = e.now.Add(a.op.decided.CallTimeout)
	return a.bound()
}

// bound is the first of the moments at which one of its bounds ends a running attempt.
func (a *attempt) bound() time.Time {
	op := a.op
	at := earliest(op.limit, a.sent.Add(op.decided.MaxCallTime))
	if a.questions > 0 {
		return at
	}
	if at = earliest(at, a.idle); !a.progressed {
		at = earliest(at, op.deadline)
	}
	return at
}

// attemptTimer is called when an attempt has run out of time: it times out, or the listening for its late answer ends.
func (e *Engine) attemptTimer(a *attempt) {
	op := a.op
	if op.running != a {
		delete(e.pending, a.id)
		op.forget(a)
		op.lost++
		e.invalidate(op, true)
		e.nothingMore(op, "no answer came in time")
		return
	}
	at := a.timer.at // not a moment more because we were late
	if a.overdue.IsZero() && e.goesOn(a, at) {
		return
	}
	if e.takesBack && a.overdue.IsZero() {
		e.takeBackOverdue(a, at)
		return
	}
	if !a.overdue.IsZero() {
		at = a.overdue // the host has not said what came of it
	}
	e.timedOut(a, at, true)
}

// goesOn lets an attempt run on for whose leader there is no more time, if one that has joined can wait longer.
func (e *Engine) goesOn(a *attempt, at time.Time) bool {
	op := a.op
	if a.questions == 0 && !at.Before(a.idle) || !at.Before(a.sent.Add(op.decided.MaxCallTime)) {
		return false // its own time is up
	}
	o := lost(kindTimeout, deliveryUnknown, CodeTimeout, "")
	o.waited, o.detail = a.ranOut(at)
	if !e.handOver(op, endDeadline, &o) {
		return false
	}
	e.timers.arm(&a.timer, a.bound())
	return true
}

// ranOut says how long was waited for an attempt that has run out of time, and which setting bounds that.
func (a *attempt) ranOut(at time.Time) (waited time.Duration, setting string) {
	op := a.op
	waited, setting = at.Sub(a.sent), "call_timeout"
	switch {
	case a.questions > 0: // the other two stand still
		waited, setting = at.Sub(op.admitted), "max_call_time"
	case !a.progressed && waited >= op.decided.CallTimeout:
	case !at.Before(op.limit):
		waited, setting = at.Sub(op.admitted), "max_call_time"
	case !at.Before(a.sent.Add(op.decided.MaxCallTime)): // those that have joined might wait longer, but not for this attempt
		setting = "max_call_time"
	case !a.progressed && !at.Before(op.deadline):
		waited, setting = at.Sub(op.admitted), "total_timeout"
	}
	return waited, setting
}

// timedOut settles an attempt that has run out of time. If it was never written, it never will be.
func (e *Engine) timedOut(a *attempt, at time.Time, written bool) {
	op := a.op
	hung := e.hung(a)
	o := lost(kindTimeout, deliveryUnknown, CodeTimeout, "")
	o.waited, o.detail = a.ranOut(at)
	if written {
		e.giveUp(a, !op.wantsLate(), "timed out")
	} else {
		o.failure.Delivery = deliveryNotSent
		e.neverSent(a)
	}
	if hung { // a new life is no part of what the breaker waits for: the next trial begins it at once, this call's own retry, say
		e.tell(a.permit, ignored, op.tool.Name)
		a.permit = permit{}
		e.retire("it has not said a word for " + roughly(e.now.Sub(e.life.heard)) + ", over several calls")
	}
	e.settle(op, a, o)
}

// hung reports whether the server has been silent for so long that only a new life can help: the breaker opened, its cooldown
// went by and its probe timed out, all without a single frame, and nothing else runs that could still be answered.
func (e *Engine) hung(a *attempt) bool {
	b := a.permit.breaker
	if b == nil || !a.permit.probe || e.server.Restart == "never" || a.gen != e.life.gen || e.life.state != up || len(e.asking) > 0 ||
		e.life.heard.After(a.sent.Add(-b.params.Cooldown)) {
		return false
	}
	for _, p := range e.pending {
		if p.pass != nil || p.attempt != nil && p.attempt != a && p.attempt.op.running == p.attempt {
			return false
		}
	}
	return true
}

// giveUp stops waiting for a running attempt without forgetting it: its answer may still come. The server is told so,
// unless the answer is wanted all the same.
func (e *Engine) giveUp(a *attempt, cancel bool, why string) {
	op := a.op
	op.running = nil
	e.freePlace(a)
	op.open = append(op.open, a)
	e.timers.arm(&a.timer, latest(a.sent.Add(op.decided.MaxCallTime), e.now))
	if cancel && e.ready() && a.gen == e.life.gen {
		e.cancelAtServer(a, why)
	}
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// cancelAtServer tells the server, once, that nobody waits for an attempt any more.
func (e *Engine) cancelAtServer(a *attempt, why string) {
	if a.cancelled {
		return
	}
	a.cancelled = true
	mark := len(e.pieces)
	e.pieces = append(e.pieces, cancelHead, e.number(a.id), cancelMiddle, []byte(why), cancelTail)
	e.emitCancel(mark, a.id, a.overdue.IsZero())
}

var (
	cancelHead   = []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	cancelMiddle = []byte(`,"reason":"`)
	cancelTail   = []byte(`"}}`)
)

// endAtBreaker ends an operation that a breaker refused: with its last outcome if it had one, else saying so.
func (e *Engine) endAtBreaker(op *operation, b *breaker, wait time.Duration) {
	if op.attempts == 0 && op.last.failure.Kind == "" {
		op.last = lost(kindTransport, deliveryNotSent, CodeCircuitOpen, circuitText(e.server.Name, b.scope, wait))
		op.last.failure.RetryAfter = wait
	}
	e.end(op, endBreaker)
}

// limited is what an operation has come to that a limit of ours has refused: its last outcome if it had one, else one that says so.
func (op *operation) limited(text string, wait time.Duration) outcome {
	if op.attempts > 0 || op.last.failure.Kind != "" {
		return op.last
	}
	o := lost(kindTransport, deliveryNotSent, CodeRateLimited, text)
	o.failure.RetryAfter = wait
	return o
}

// endAtLimit ends an operation that a limit of ours has refused.
func (e *Engine) endAtLimit(op *operation, endedBy string, o outcome) {
	op.last = o
	e.end(op, endedBy)
}
