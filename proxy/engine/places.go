package engine

import "time"

// places are the calls that may be at the server at a time (max_concurrency). An attempt takes one before it is sent and gives it
// back when it is answered, when we stop waiting for it, or when its server ends. Who finds none waits in line, as long as
// its deadline leaves time for an attempt.
type places struct {
	most    int // 0 = any number
	taken   int
	waiting []*operation // in the order they came
}

// placeHint is when it is worth asking again for a place. Nobody knows: it depends on the server.
const placeHint = time.Second

// takePlace takes a place at the server for the next attempt of an operation, or lets it wait in line for one. It reports whether
// the attempt may be made now; if not, the operation waits, or has ended because there is no time to wait.
func (e *Engine) takePlace(op *operation) bool {
	p := &e.places
	switch {
	case p.most == 0 || op.placed:
		return true
	case p.taken < p.most && len(p.waiting) == 0:
		p.taken++
		op.placed = true
		return true
	}
	if o := e.crowded(op); !e.timeFor(op, minAttempt(op.decided.CallTimeout)+1, endPlaces, &o) {
		e.endAtLimit(op, endPlaces, o)
		return false
	}
	p.waiting = append(p.waiting, op)
	op.state = waiting
	op.goes = (*Engine).noPlace
	e.timers.arm(&op.timer, op.lastStart())
	return false
}

// noPlace ends an operation that has waited for a place as long as its deadline allowed.
func (e *Engine) noPlace(op *operation) {
	o := e.crowded(op)
	if e.handOver(op, endPlaces, &o) {
		e.timers.arm(&op.timer, op.lastStart())
		return
	}
	e.endAtLimit(op, endPlaces, o)
}

// crowded is what an operation has come to that finds no place.
func (e *Engine) crowded(op *operation) outcome {
	return op.limited(crowdedText(e.server.Name, e.places.most, placeHint), placeHint)
}

// leavePlaces takes an operation out of the line for a place, or gives back the place of an attempt that is not sent.
func (e *Engine) leavePlaces(op *operation) {
	p := &e.places
	if op.placed {
		op.placed = false
		p.taken--
		return
	}
	p.waiting = leaveLine(p.waiting, op)
}

// freePlace gives back the place of an attempt that we no longer wait for.
func (e *Engine) freePlace(a *attempt) {
	if a.placed {
		a.placed = false
		e.places.taken--
	}
}

// fillPlaces hands the places that were given back during a Step to those who wait, in order. It is done at its end, when
// everything that gave one back has been thought through: a breaker that has just opened refuses them.
func (e *Engine) fillPlaces() {
	p := &e.places
	for p.taken < p.most && len(p.waiting) > 0 {
		op := p.waiting[0]
		p.waiting = leaveLine(p.waiting, op)
		p.taken++
		op.placed = true
		e.timers.stop(&op.timer)
		e.launch(op)
	}
}
