package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// Why an operation was not tried again: error.data.endedBy, and ended_by in the log.
const (
	endAttempts  = "attempts"        // max_retries are used up
	endDeadline  = "deadline"        // another attempt would not fit into total_timeout
	endBudget    = "budget"          // the retry budget of the server is used up
	endBreaker   = "breaker"         // the circuit breaker is open
	endUnsafe    = "unsafe"          // it may have taken effect, and must not do so twice
	endPolicy    = "policy"          // the rules say no
	endLimit     = "rate_limit"      // there is no rate token in time
	endPlaces    = "max_concurrency" // there is no place at the server in time
	endCancelled = "cancelled"       // nobody waits any more
)

// maxResends is how often what was never delivered is sent again; that is no retry, and no policy governs it.
const maxResends = 2

// settle takes in what the running attempt of an operation came to: tell the breaker, then answer, or try again.
func (e *Engine) settle(op *operation, a *attempt, o outcome) {
	op.running = nil
	op.settling = o // where it may be pointed at for nothing
	e.freePlace(a)
	e.judge(op, a, &op.settling)
	e.logAttempt(op, a, &op.settling)
	e.meterAttempt(op, &op.settling)
	if o.ok() {
		e.succeed(op, a, &op.settling)
		op.settling = outcome{}
		return
	}
	op.ran = op.ran || o.failure.Delivery == deliveryAnswered
	op.last, op.settling = op.settling, outcome{}
	wait, endedBy := e.again(op, &op.last.failure)
	if endedBy != "" {
		e.end(op, endedBy)
		return
	}
	op.last.keep()
	e.retryAfter(op, wait)
}

// judge tells the breaker what an attempt means, as policy sees it.
func (e *Engine) judge(op *operation, a *attempt, o *outcome) {
	e.judgePermit(op, a.permit, o)
	a.permit = permit{}
}

func (e *Engine) judgePermit(op *operation, p permit, o *outcome) {
	if p.breaker == nil {
		return
	}
	v := succeeded
	if e.fails(op, o) {
		v = failed
	}
	e.tell(p, v, op.tool.Name)
}

// fails asks policy whether an outcome is a failure of the server.
func (e *Engine) fails(op *operation, o *outcome) bool {
	var result []byte
	if o.ok() || o.failure.Kind == kindTool {
		result = o.value.Of(o.frame)
	}
	bad, _ := op.plan.BreakerFailure(op.facts, &o.failure, result)
	e.takeEvalErrors(op)
	return bad
}

// again decides whether a failed operation is tried again, and after what wait; else it says why not. It is a ladder: each
// step may end the loop, and what is left at its foot is a retry.
func (e *Engine) again(op *operation, f *policy.Failure) (wait time.Duration, endedBy string) {
	d := op.decided
	switch {
	case len(op.calls) == 0:
		return 0, endCancelled
	case op.committed: // the client was asked something by it, and may have said yes
		return 0, endUnsafe
	case f.Delivery == deliveryNotSent:
		if op.resends >= maxResends {
			return 0, endAttempts
		}
		if !e.timeFor(op, minAttempt(d.CallTimeout), endDeadline, &op.last) {
			return 0, endDeadline
		}
		op.resends++
		return 0, ""
	case f.Delivery == deliveryRejected && f.Kind != kindOverloaded: // it would be rejected again
		return 0, endPolicy
	case op.attempts > d.MaxRetries:
		return 0, endAttempts
	}
	effects := op.effects(f.Delivery)
	op.facts.Tool.Effects = effects
	r := op.plan.AfterAttempt(op.facts, f, op.attempts, e.now.Sub(op.admitted))
	e.takeEvalErrors(op)
	op.rule = r.Rule
	switch unsafe := effects == policy.EffectsUnsafe && f.Delivery == deliveryUnknown; {
	case !r.Retry && unsafe:
		return 0, endUnsafe
	case !r.Retry:
		return 0, endPolicy
	case unsafe && !r.Unsafe: // the safety gate: whatever retry says
		return 0, endUnsafe
	}
	if wait = r.Delay; !r.DelayStated {
		wait = backoff(d.Backoff, op.attempts, e.random.Float64())
	}
	if f.RetryAfter > wait {
		wait = toldDelay(f.RetryAfter, e.random.Float64())
	}
	if !e.timeFor(op, wait+minAttempt(d.CallTimeout), endDeadline, &op.last) {
		return 0, endDeadline
	}
	if b := e.breakers[d.BreakerScope]; d.BreakerScope != "" && b != nil && b.state == open && b.until.Sub(e.now) > wait {
		return 0, endBreaker
	}
	cost := 1.0
	if f.Delivery == deliveryUnknown {
		cost = 2
	}
	if !e.budget.take(e.now, cost) {
		return 0, endBudget
	}
	return wait, ""
}

// retryAfter lets an operation wait for its next attempt. A late answer to an earlier one ends the wait.
func (e *Engine) retryAfter(op *operation, wait time.Duration) {
	op.state = waiting
	if wait <= 0 {
		e.attempt(op)
		return
	}
	op.goes = (*Engine).attempt
	e.timers.arm(&op.timer, e.now.Add(wait))
}

// succeed ends an operation with a result of the server.
func (e *Engine) succeed(op *operation, a *attempt, o *outcome) {
	if a.number == 1 {
		e.budget.earn(e.now)
	}
	e.abandon(op, a)
	result := o.value.Of(o.frame)
	if !o.partial {
		op.facts.Tool.Effects = op.known()
		e.fill(op, a, result)
		e.keep(op, a, result, len(op.calls) > 0)
	}
	e.invalidate(op, true)
	for _, c := range op.calls {
		if e.server.MarkResults && c.own != op {
			e.answer(c.id, "result", e.marked(result, "joined", 0))
		} else {
			e.pass(c, o)
		}
		e.endCall(c, statusSuccess, nil)
	}
	e.over(op)
}

// abandon stops caring for all attempts of an operation but one, which has its answer.
func (e *Engine) abandon(op *operation, answered *attempt) {
	if r := op.running; r != nil && r != answered {
		e.tell(r.permit, ignored, op.tool.Name)
		e.freePlace(r)
		op.open = append(op.open, r)
	}
	op.running = nil
	for _, a := range op.open {
		e.timers.stop(&a.timer)
		delete(e.pending, a.id)
		if a != answered && a.gen == e.life.gen && e.ready() {
			e.cancelAtServer(a, "answered by another attempt")
		}
	}
	clear(op.open)
	op.open = op.open[:0]
	e.giveBack(op)
	e.tell(op.takePermit(), ignored, op.tool.Name)
	e.timers.stop(&op.timer)
	e.unqueue(op)
}

// pass sends a call the server's own answer under the call's own id.
func (e *Engine) pass(c *call, o *outcome) {
	e.passAnswer(c.id, o.frame, jsonrpc.Edit{At: o.id, New: c.id})
}

// give sends a call a result that was not just fetched.
func (e *Engine) give(c *call, result []byte, origin string, age time.Duration) {
	if e.server.MarkResults {
		result = e.marked(result, origin, age.Milliseconds())
	}
	e.answer(c.id, "result", result)
	e.endCall(c, statusSuccess, nil)
}

// end ends the loop of an operation without success: a stale result may stand in, else the calls get its last outcome.
func (e *Engine) end(op *operation, endedBy string) {
	op.endedBy = endedBy
	e.timers.stop(&op.timer)
	e.giveBack(op)
	e.keepUnusable(op)
	e.tell(op.takePermit(), ignored, op.tool.Name)
	if op.attempts > 0 {
		e.invalidate(op, op.last.accepted())
	}
	e.conclude(op, op.calls)
	op.calls = op.calls[:0]
	op.state = ended
	e.nothingMore(op, "it ended without an answer")
}

// conclude answers calls of an operation for which it has ended without success.
func (e *Engine) conclude(op *operation, calls []*call) {
	if stale, age := e.standIn(op); stale != nil {
		op.cache = "stale"
		for _, c := range calls {
			e.meterCache(op, "stale")
			e.give(c, stale, "stale", age)
		}
		return
	}
	for _, c := range calls {
		e.fail(c, op)
	}
}

// standIn returns a kept answer that policy lets stand in for a failure, and its age.
func (e *Engine) standIn(op *operation) (result []byte, age time.Duration) {
	if !op.cacheable() || len(op.calls) == 0 || op.last.failure.Kind == kindTool {
		return nil, 0
	}
	_, old := e.lookUp(op)
	if old == nil {
		return nil, 0
	}
	if op.endedBy == endBreaker && op.attempts == 0 && e.now.Before(old.expires) {
		return old.result, e.now.Sub(old.stored) // a failed call has cast doubt on it, and it is the best there is
	}
	extra, rule := op.plan.StaleIfError(op.facts, &op.last.failure)
	e.takeEvalErrors(op)
	if extra <= 0 || e.now.After(old.expires.Add(extra)) {
		return nil, 0
	}
	op.cacheRule = rule
	return old.result, e.now.Sub(old.stored)
}

// fail answers a call with the last outcome of an operation: what the server said passes verbatim, else it is our own error.
func (e *Engine) fail(c *call, op *operation) {
	o := &op.last
	if o.code == 0 {
		e.pass(c, o)
		status := statusError
		if o.failure.Kind == kindTool {
			status = statusToolError
		}
		e.endCall(c, status, nil)
		return
	}
	f := &fault{code: o.code, text: o.detail, attempts: op.attempts, delivery: o.failure.Delivery, executed: op.executed(),
		endedBy: op.endedBy, rule: op.rule, retryAfter: o.failure.RetryAfter}
	status := statusError
	switch o.code {
	case CodeTimeout:
		status = statusTimeout
		f.text = timeoutText(op.tool.Name, o.waited.Round(time.Millisecond), f.executed, o.detail)
	case CodeUnavailable:
		f.kind = o.failure.Kind
		if o.failure.Kind == kindExit {
			f.text = exitText(e.server.Name, op.tool.Name, o.detail, f.executed)
		} else {
			f.text = unavailableText(e.server.Name, o.detail, f.executed)
		}
	case CodeInvalidResult:
		f.text, f.original = invalidText(op.tool.Name, o.detail), o.said
	case CodeCircuitOpen, CodeRateLimited:
		status = statusRefused
	}
	e.reject(c, status, f)
}

// executed says whether the operation may have taken effect.
func (op *operation) executed() string {
	switch {
	case op.lost > 0 || op.running != nil || len(op.open) > 0:
		return "unknown"
	case op.ran:
		return "yes"
	}
	return "no"
}

// reject answers a call with an error of ours and logs its end.
func (e *Engine) reject(c *call, status string, f *fault) {
	f.tool = c.own.tool.Name
	if f.executed == "" {
		f.executed = "no"
	}
	e.refuse(c.id, f)
	e.endCall(c, status, f)
}

// late takes in an answer to an attempt that was given up.
func (e *Engine) late(a *attempt, o *outcome) {
	op := a.op
	e.timers.stop(&a.timer)
	op.forget(a)
	op.ran = op.ran || o.failure.Delivery == deliveryAnswered
	if op.state != ended {
		if o.ok() {
			e.succeed(op, a, o) // it ends the wait for a retry, or the retry itself
		}
		return
	}
	if o.ok() {
		e.succeed(op, a, o)
		return
	}
	op.last = *o
	e.keepUnusable(op)
	e.invalidate(op, o.accepted())
	for _, c := range op.calls {
		e.fail(c, op)
	}
	op.calls = op.calls[:0]
	op.last.frame, op.last.said = nil, nil // they are the event's
	e.nothingMore(op, "")
}

// nothingMore lets go of an operation whose loop has ended, once no answer can come any more. If it may have taken effect,
// its key remembers that.
func (e *Engine) nothingMore(op *operation, why string) {
	if op.state != ended {
		return
	}
	if len(op.open) > 0 {
		if op.found && !op.wantsLate() {
			e.inFlight.remove(op) // a repeat runs, though an answer may still be kept
		}
		return
	}
	if op.lost > 0 {
		e.keepAmbiguity(op)
		for _, c := range op.calls {
			e.reject(c, statusError, &fault{code: CodeOutcomeUnknown, text: unknownText(op.tool.Name, why), attempts: op.attempts,
				delivery: deliveryUnknown, executed: "unknown"})
		}
		op.calls = op.calls[:0]
	}
	for _, c := range op.calls { // they have waited for what, it turns out, was never sent
		e.reject(c, statusError, &fault{code: CodeUnavailable, kind: kindExit, text: unavailableText(e.server.Name, e.life.detail, "no"),
			attempts: op.attempts, delivery: deliveryNotSent, executed: "no"})
	}
	e.over(op)
}

// over forgets an operation that needs nothing any more.
func (e *Engine) over(op *operation) {
	op.state = ended
	op.calls = op.calls[:0]
	e.inFlight.remove(op)
	e.recycle(op)
}
