package engine

import "time"

// clientEOF begins the end: what is in flight finishes, each within its deadline, and nobody can be asked any more.
func (e *Engine) clientEOF() {
	if e.leaving {
		return
	}
	e.leaving = true
	for _, q := range e.openQuestions() {
		e.refuseQuestion(q, clientGone())
	}
	for _, p := range e.openPassing() {
		if p.method == "subscriptions/listen" {
			e.failPassing(p, shuttingDown()) // it would never end by itself
		}
	}
	e.timers.arm(&e.drain, e.now.Add(drainTime))
}

// drainTime is how long requests other than calls, which have no deadline, may still take once the client has gone.
const drainTime = 10 * time.Second

// drainOver gives up on the requests that are still open.
func (e *Engine) drainOver() {
	for _, p := range e.openPassing() {
		e.failPassing(p, shuttingDown())
	}
}

// terminate ends everything at once: what is pending is answered, so that nobody waits for nothing.
func (e *Engine) terminate() {
	if e.drained {
		return
	}
	e.leaving = true
	for _, c := range e.openCalls() {
		op := c.op
		op.calls = without(op.calls, c)
		f := &fault{code: CodeShutdown, text: "mcp-retry is shutting down.", attempts: op.attempts, executed: op.executed(), endedBy: endCancelled}
		if f.executed != "no" {
			f.text += " The call may have taken effect. Check before you repeat it."
			f.delivery = deliveryUnknown
		}
		e.reject(c, statusCancelled, f)
		e.loseInterest(op)
	}
	for _, p := range e.openPassing() {
		e.failPassing(p, shuttingDown())
	}
	for _, q := range e.openQuestions() {
		e.refuseQuestion(q, shuttingDown())
	}
	e.finish(true)
}

// finishIfDone ends the session once the client has gone and nothing is in flight.
func (e *Engine) finishIfDone() {
	if e.leaving && !e.drained && len(e.calls) == 0 && len(e.passing) == 0 {
		e.finish(false)
	}
}

func (e *Engine) finish(hurry bool) {
	e.drained = true
	e.timers.clear()
	e.out = append(e.out, Action{Kind: Finish, Gen: e.life.gen, Hurry: hurry})
}
