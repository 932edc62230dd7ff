package engine

import "github.com/bentabol/mcp-retry/policy"

// Operations are reused: they are large, and what policy has allocated in them is worth keeping.

const (
	maxFree       = 128      // operations that lie ready
	maxFreeBuffer = 16 << 10 // bytes of the frame that one of them keeps room for, at most 2 MiB in all
)

// blankOperation returns an operation as if it were new.
func (e *Engine) blankOperation() *operation {
	if n := len(e.free); n > 0 {
		op := e.free[n-1]
		e.free[n-1] = nil
		e.free = e.free[:n-1]
		op.free = false
		return op
	}
	op := &operation{facts: &policy.Call{}, decided: &policy.Before{}}
	op.timer.fire = func(e *Engine) { op.goes(e, op) }
	op.attempt1.timer.fire = func(e *Engine) { e.attemptTimer(&op.attempt1) }
	op.first.deadline.fire = func(e *Engine) { e.followerTimedOut(&op.first) }
	return op
}

// recycle takes an operation back if nothing refers to it any more: its own call is over, no other call waits for it, and no
// attempt of it is open.
func (e *Engine) recycle(op *operation) {
	begun := op.state != idle
	if !op.first.answered && op.tool != nil || begun && op.state != ended || op.running != nil || len(op.open) > 0 || len(op.calls) > 0 || op.found {
		return
	}
	if len(e.free)+len(e.freed) >= maxFree || op.free {
		return
	}
	fires := [...]func(*Engine){op.timer.fire, op.attempt1.timer.fire, op.first.deadline.fire}
	calls, open, facts, decided, buffer := op.calls[:0], op.open[:0], op.facts, op.decided, op.buffer[:0]
	if cap(buffer) > maxFreeBuffer {
		buffer = nil
	}
	facts.Reset()
	*op = operation{}
	op.timer.fire, op.attempt1.timer.fire, op.first.deadline.fire = fires[0], fires[1], fires[2]
	op.calls, op.open, op.facts, op.decided, op.buffer = calls, open, facts, decided, buffer
	op.free = true
	e.freed = append(e.freed, op)
}

// takeFreed makes the operations ready that were taken back in the last Step, whose actions may have held parts of their frames.
func (e *Engine) takeFreed() {
	e.free = append(e.free, e.freed...)
	clear(e.freed)
	e.freed = e.freed[:0]
}
