package engine

import (
	"slices"
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// enter makes a call findable by the client's id.
func (e *Engine) enter(c *call) {
	e.seq++
	c.seq = e.seq
	c.key = jsonrpc.CanonicalID(c.id)
	c.earlier = e.calls[c.key]
	e.calls[c.key] = c
	e.meterBegin(c)
}

// leave forgets a call that has its answer, or wants none.
func (e *Engine) leave(c *call) {
	c.answered = true
	e.timers.stop(&c.deadline)
	switch latest := e.calls[c.key]; {
	case latest != c:
		for latest.earlier != c {
			latest = latest.earlier
		}
		latest.earlier = c.earlier
	case c.earlier != nil:
		e.calls[c.key] = c.earlier
	default:
		delete(e.calls, c.key)
	}
	c.earlier = nil
}

// openCalls lists the calls that wait for an answer, oldest first.
func (e *Engine) openCalls() []*call {
	all := make([]*call, 0, len(e.calls))
	for _, c := range e.calls {
		for ; c != nil; c = c.earlier {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return int(a.seq - b.seq) })
	return all
}

// isOpen reports whether a request of the client waits for an answer, by the key of its id.
func (e *Engine) isOpen(key string) bool { return e.calls[key] != nil || len(e.passing[key]) > 0 }

// openPassing lists the requests that are passed on and wait for an answer, oldest first.
func (e *Engine) openPassing() []*passing {
	all := make([]*passing, 0, len(e.passing))
	for _, same := range e.passing {
		all = append(all, same...)
	}
	slices.SortFunc(all, func(a, b *passing) int { return int(a.ours - b.ours) })
	return all
}

// clientCancelled takes in that the client wants no answer to a request any more. It gets none.
func (e *Engine) clientCancelled(m *jsonrpc.Message) {
	span, ok := jsonrpc.Lookup(m.Frame, m.Params, "requestId")
	if !ok {
		return
	}
	key := jsonrpc.CanonicalID(span.Of(m.Frame))
	if latest := e.calls[key]; latest != nil { // of several under one id, the latest is meant
		e.cancelCall(latest, m, span)
		e.unanswered(key)
		return
	}
	same := e.passing[key]
	if len(same) == 0 {
		e.unsend(key)
		return // it has its answer already
	}
	p := same[len(same)-1]
	if p.method == "initialize" {
		return // MCP lifecycle: initialize must not be cancelled
	}
	e.settlePassing(p)
	e.unanswered(key)
	if p.sent {
		e.passCancel(m, span, p.ours)
	}
}

// cancelCall ends a call without an answer, and its operation if nobody else waits for it.
func (e *Engine) cancelCall(c *call, m *jsonrpc.Message, requestID jsonrpc.Span) {
	op := c.op
	op.calls = without(op.calls, c)
	if len(op.calls) == 0 {
		op.endedBy = endCancelled
	}
	e.endCall(c, statusCancelled, nil)
	if a := op.running; a != nil && len(op.calls) == 0 {
		a.cancelled = true
		e.passCancel(m, requestID, a.id)
	}
	e.loseInterestQuietly(op)
}

// loseInterest ends an operation that nobody waits for, and tells the server.
func (e *Engine) loseInterest(op *operation) {
	if a := op.running; a != nil && len(op.calls) == 0 && op.state != ended && e.ready() {
		e.cancelAtServer(a, "nobody waits for it any more")
	}
	e.loseInterestQuietly(op)
}

// loseInterestQuietly ends an operation that nobody waits for. An answer that still comes is kept for a repeat.
func (e *Engine) loseInterestQuietly(op *operation) {
	if len(op.calls) > 0 {
		return
	}
	if op.state != ended {
		op.state, op.endedBy = ended, endCancelled
		e.timers.stop(&op.timer)
		e.unqueue(op)
		e.giveBack(op)
		e.tell(op.takePermit(), ignored, op.tool.Name)
		if a := op.running; a != nil {
			e.tell(a.permit, ignored, op.tool.Name)
			a.permit = permit{}
			e.giveUp(a, false, "")
		}
		if op.attempts > 0 {
			e.invalidate(op, true)
		}
	}
	e.nothingMore(op, "it was cancelled")
}

// serverProgress passes progress on to whoever asked for it, and lets the attempt go on. Over several attempts progress
// begins anew, and must rise all the same: what does not is withheld.
func (e *Engine) serverProgress(m *jsonrpc.Message) {
	span, ok := jsonrpc.Lookup(m.Frame, m.Params, "progressToken")
	id, isOurs := jsonrpc.IntID(span.Of(m.Frame))
	if !ok || !isOurs {
		return
	}
	p := e.pending[id]
	value := progressOf(m)
	switch {
	case p.attempt != nil && p.attempt.op.running == p.attempt && !p.attempt.op.token.Empty():
		a := p.attempt
		a.progressed = true
		if a.questions == 0 {
			e.timers.arm(&a.timer, e.patience(a))
		}
		for _, c := range a.op.calls {
			if c.token != nil && (!c.progressed || value > c.progress) {
				c.progressed, c.progress = true, value
				e.toClient(m.Frame, jsonrpc.Edit{At: span, New: c.token})
			}
		}
	case p.pass != nil && p.pass.token != nil && (!p.pass.moved || value > p.pass.progress):
		p.pass.moved, p.pass.progress = true, value
		e.toClient(m.Frame, jsonrpc.Edit{At: span, New: p.pass.token})
	}
}

func progressOf(m *jsonrpc.Message) float64 {
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "progress")
	value, _ := strconv.ParseFloat(string(span.Of(m.Frame)), 64)
	return value
}
