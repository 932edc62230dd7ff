package engine

import "time"

// The deadline of an operation is that of its leader: at first the call that began it. The calls that have joined have timers of their
// own, and may have longer to wait. When there is no time left for the leader, it alone gets its answer, and the operation goes on for
// the one of the others that can wait longest, within the retries that it has left.

// timeFor reports whether there is time for something that takes so long, after handing the operation over if that is what it takes.
// o is what a leader has come to that has no time for it.
func (e *Engine) timeFor(op *operation, need time.Duration, endedBy string, o *outcome) bool {
	for op.deadline.Sub(e.now) < need {
		if !e.handOver(op, endedBy, o) {
			return false
		}
	}
	return true
}

// handOver answers the leader of an operation, and goes by the deadline of the call that can wait longest. It reports whether there is
// one that can wait longer than the leader; if not, nothing has happened.
func (e *Engine) handOver(op *operation, endedBy string, o *outcome) bool {
	heir := op.heir()
	if heir == nil {
		return false
	}
	last := op.last
	op.last, op.endedBy = *o, endedBy
	if op.attempts > 0 {
		e.invalidate(op, op.last.accepted())
	}
	if leader := op.leader(); leader != nil {
		e.conclude(op, []*call{leader})
		op.calls = without(op.calls, leader)
	}
	op.last, op.endedBy = last, ""
	e.timers.stop(&heir.deadline)
	op.admitted, op.deadline, op.limit = heir.admitted, heir.own.deadline, heir.own.limit
	return true
}

// leader is the call by whose deadline the operation goes; nil = it was cancelled.
func (op *operation) leader() *call {
	for _, c := range op.calls {
		if !c.deadline.set() {
			return c
		}
	}
	return nil
}

// heir is the call that can wait longest of those that can wait for longer than the leader; nil = there is none.
func (op *operation) heir() (heir *call) {
	until := op.deadline
	for _, c := range op.calls {
		if c.deadline.set() && c.own.deadline.After(until) {
			heir, until = c, c.own.deadline
		}
	}
	return heir
}
