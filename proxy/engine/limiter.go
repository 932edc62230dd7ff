package engine

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// limiter is a token bucket and the operations that wait for a token of it. They wait in a queue of our own and not by
// reservations of the bucket: whoever leaves the queue lets all behind it move up, and nobody who comes later is served
// before them.
type limiter struct {
	bucket  *rate.Limiter
	waiting []*operation // in the order they came
	timer   timer        // of the token for the first of them
	used    uint64
}

// maxLimiters bounds the buckets of a server: their key may be made from arguments.
const maxLimiters = 1024

// limiterOf returns the bucket from which the attempts of an operation take a token each; nil = there is no limit.
func (e *Engine) limiterOf(op *operation) *limiter {
	d := op.decided
	limit := d.Limit
	if limit == nil || limit.Calls <= 0 || limit.Per <= 0 {
		return nil
	}
	key := "tool " + op.tool.Name
	if d.RateLimitKey != "" {
		key = "key " + d.LimitOn + "\x00" + d.RateLimitKey // of two limits with the same key, each has its own bucket
	}
	every, burst := rate.Limit(float64(limit.Calls)/limit.Per.Seconds()), limit.Burst
	if burst == 0 {
		burst = limit.Calls
	}
	e.asked++
	l := e.limiters[key]
	if l != nil {
		l.fit(e.now, every, burst)
	} else {
		if len(e.limiters) >= maxLimiters {
			e.dropIdlestLimiter()
		}
		l = &limiter{bucket: rate.NewLimiter(every, burst)}
		l.timer.fire = func(e *Engine) { e.tokensCome(l) }
		e.limiters[key] = l
	}
	l.used = e.asked
	return l
}

// takeToken takes a rate token for the next attempt of an operation, or lets it wait in line for one. It reports whether the
// attempt may be made now; if not, the operation waits, or has ended because its turn would not come in time.
func (e *Engine) takeToken(op *operation) bool {
	if op.rate != nil {
		return true
	}
	l := e.limiterOf(op)
	if l == nil {
		return true
	}
	r := l.bucket.ReserveN(e.now, 1)
	wait := r.DelayFrom(e.now)
	if wait == 0 && len(l.waiting) == 0 {
		op.rate = r
		return true
	}
	r.CancelAt(e.now)
	wait += time.Duration(float64(len(l.waiting)) / float64(l.bucket.Limit()) * float64(time.Second))
	o := op.limited(limitedText(op.tool.Name, wait), wait)
	if wait > op.decided.Limit.MaxWait || !e.timeFor(op, wait+minAttempt(op.decided.CallTimeout), endLimit, &o) {
		e.meterLimit(op, wait, true)
		e.endAtLimit(op, endLimit, o)
		return false
	}
	e.meterLimit(op, wait, false)
	if len(l.waiting) == 0 {
		e.timers.arm(&l.timer, e.now.Add(wait))
	}
	l.waiting = append(l.waiting, op)
	op.state, op.limiter = waiting, l
	op.goes = (*Engine).noToken
	e.timers.arm(&op.timer, op.lastStart())
	return false
}

// tokensCome lets those go on for whom there are tokens by now, the first that came first.
func (e *Engine) tokensCome(l *limiter) {
	for len(l.waiting) > 0 {
		r := l.bucket.ReserveN(e.now, 1)
		if wait := r.DelayFrom(e.now); wait > 0 {
			r.CancelAt(e.now)
			e.timers.arm(&l.timer, e.now.Add(wait))
			return
		}
		op := l.waiting[0]
		e.leaveLimiter(op)
		op.rate = r
		e.timers.stop(&op.timer)
		e.launch(op)
	}
}

// noToken ends an operation whose turn has not come in time: we were called later than we wanted to be.
func (e *Engine) noToken(op *operation) {
	wait := max(op.limiter.timer.at.Sub(e.now), time.Millisecond)
	o := op.limited(limitedText(op.tool.Name, wait), wait)
	if e.handOver(op, endLimit, &o) {
		e.timers.arm(&op.timer, op.lastStart())
		return
	}
	e.endAtLimit(op, endLimit, o)
}

// leaveLimiter takes an operation out of the line for a token, if it stands in one.
func (e *Engine) leaveLimiter(op *operation) {
	l := op.limiter
	if l == nil {
		return
	}
	op.limiter = nil
	l.waiting = leaveLine(l.waiting, op)
	if len(l.waiting) == 0 {
		e.timers.stop(&l.timer)
	}
}

// leaveLine takes an operation out of a line. Most leave from the front.
func leaveLine(line []*operation, op *operation) []*operation {
	i := slices.Index(line, op)
	switch {
	case i < 0:
		return line
	case i == 0:
		line[0] = nil
		return line[1:]
	}
	return slices.Delete(line, i, i+1)
}

// giveBack returns what an operation holds or waits for of an attempt that is not sent: its rate token, its place at the server, and
// its turns for both. A token can be returned only at the moment it was taken; later, the bucket has long counted on.
func (e *Engine) giveBack(op *operation) {
	e.leaveLimiter(op)
	if op.rate != nil {
		op.rate.CancelAt(e.now)
		op.rate = nil
	}
	e.leavePlaces(op)
}

// dropIdlestLimiter forgets the bucket that was asked least recently, if possible one that nobody waits for.
func (e *Engine) dropIdlestLimiter() {
	var idlest string
	var found *limiter
	for key, l := range e.limiters {
		better := found == nil || len(l.waiting) == 0 && len(found.waiting) > 0 ||
			(len(l.waiting) == 0) == (len(found.waiting) == 0) && l.used < found.used
		if better {
			idlest, found = key, l
		}
	}
	delete(e.limiters, idlest)
}
