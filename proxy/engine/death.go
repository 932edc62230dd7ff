package engine

import (
	"slices"
	"strings"
)

// serverDown takes in that a life has ended or could not begin.
func (e *Engine) serverDown(ev *Event) {
	l := &e.life
	if ev.Gen != l.gen || l.state == down || l.state == unborn {
		return
	}
	detail := ev.Detail
	level := LevelWarn
	if e.leaving || l.renewing {
		level = LevelInfo
	}
	e.log(Record{Level: level, Event: "server_exit", Attempt: int(l.gen), Detail: detail, Duration: e.now.Sub(l.begun)})
	if ev.Stderr != "" {
		detail += "; it last wrote: " + lastLines(ev.Stderr)
	}
	if l.retiring {
		l.retiring = false
		e.dead(down, l.detail, false, ev.Unsent)
		return
	}
	if l.state == stopping {
		l.state = down
		if len(l.queue) > 0 || l.renewing {
			e.need()
		}
		return
	}
	e.dead(down, detail, ev.Spawn, ev.Unsent)
}

// lastLines shows the last words of a server in one line.
func lastLines(stderr string) string {
	lines := strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > 3 {
		lines = lines[len(lines)-3:]
	}
	return strings.Join(lines, " | ")
}

// dead settles everything that the life of the server takes with it. What is tried again is sent to the next life, which
// begins at once if this one is down, and when its end is reported if it is still stopping.
func (e *Engine) dead(now lifeState, detail string, spawn bool, unsent []int64) {
	l := &e.life
	l.retiring = false
	early := l.state == starting || l.state == replaying || l.state == greeting
	l.state, l.detail, l.greets = now, detail, nil
	e.meterLife(LifeDown)
	e.timers.stop(&l.timer)
	if l.useful || e.now.Sub(l.begun) >= soundLife {
		l.failures = 0
	}
	l.failures++
	l.notBefore = e.now.Add(respawnDelay(l.failures))
	e.tools.asking = false

	queue := l.queue
	l.queue = nil
	for _, q := range e.openQuestions() {
		e.dropQuestion(q)
	}
	for _, id := range e.sentTo(l.gen) {
		p := e.pending[id]
		delete(e.pending, id)
		switch {
		case p.attempt != nil:
			e.attemptDied(p.attempt, detail, slices.Contains(unsent, id))
		case p.pass != nil && p.pass.sent:
			kind, text := kindExit, endedText(e.server.Name, detail)
			if spawn {
				kind, text = kindSpawn, unavailableText(e.server.Name, detail, "no")
			}
			e.failPassing(p.pass, &fault{code: CodeUnavailable, kind: kind, text: text})
		case p.pass != nil:
			e.pending[id] = p // it is in the queue
		}
	}
	for _, q := range queue {
		switch {
		case q.op != nil && (early || spawn):
			e.undelivered(q.op, detail)
		case q.op != nil:
			e.await(q)
		case q.pass != nil:
			e.failPassing(q.pass, &fault{code: CodeUnavailable, kind: kindSpawn, text: unavailableText(e.server.Name, detail, "no")})
		}
	}
}

// sentTo lists our open requests at a life of the server, in the order they were made.
func (e *Engine) sentTo(gen uint64) []int64 {
	var ids []int64
	for id, p := range e.pending {
		if p.attempt == nil || p.attempt.gen == gen {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// attemptDied settles an attempt whose server has ended.
func (e *Engine) attemptDied(a *attempt, detail string, unsent bool) {
	op := a.op
	e.timers.stop(&a.timer)
	if op.running != a {
		op.forget(a)
		if !unsent {
			op.lost++
			e.invalidate(op, true)
		}
		e.nothingMore(op, "the server ended before it answered")
		return
	}
	o := lost(kindExit, deliveryUnknown, CodeUnavailable, detail)
	if unsent {
		o.failure.Delivery = deliveryNotSent
		e.neverSent(a)
	} else {
		op.lost++
	}
	e.settle(op, a, o)
}
