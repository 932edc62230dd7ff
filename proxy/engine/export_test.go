package engine

import (
	"fmt"
	"slices"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// Inspection counts what an engine holds.
type Inspection struct {
	Calls, Passing, Asking, Pending, InFlight, Timers, Queue, Free, Stored, Placed, Lined, Batched int
	StoredBytes                                                                                    int64
}

// Inspect tells what the engine holds.
func (e *Engine) Inspect() Inspection {
	lined := len(e.places.waiting)
	for _, l := range e.limiters {
		lined += len(l.waiting)
	}
	return Inspection{
		Placed: e.places.taken, Lined: lined, Batched: len(e.batches),
		Calls: len(e.openCalls()), Passing: len(e.openPassing()), Asking: len(e.asking), Pending: len(e.pending), InFlight: e.inFlight.count(),
		Timers: len(e.timers), Queue: len(e.life.queue), Free: len(e.free), Stored: e.store.items.ItemCount(), StoredBytes: e.store.bytes,
	}
}

// HeldBack reports whether there is an answer to a request of the client's, by its raw id, that waits for the others of its batch.
func (e *Engine) HeldBack(id string) bool {
	key := jsonrpc.CanonicalID([]byte(id))
	for _, b := range e.batches {
		if slices.ContainsFunc(b.responses, func(r response) bool { return r.key == key }) {
			return true
		}
	}
	return false
}

// Check says what is wrong with the engine's state: whatever the history, its parts must agree with each other.
func (e *Engine) Check() error {
	if e.drained {
		if len(e.timers) > 0 {
			return fmt.Errorf("%d timers are left after the end", len(e.timers))
		}
		return nil
	}
	for _, check := range []func(*Engine) error{
		checkTimers, checkCalls, checkPending, checkInFlight, checkLife, checkBreakers, checkQuestions, checkStore, checkBudget, checkFree, checkPlaces, checkLimiters, checkBatches, checkTools, checkBounds,
	} {
		if err := check(e); err != nil {
			return err
		}
	}
	return nil
}

func checkTimers(e *Engine) error {
	for i, t := range e.timers {
		switch {
		case t.slot != i+1:
			return fmt.Errorf("timer %d of the heap believes to be at %d", i, t.slot-1)
		case t.fire == nil:
			return fmt.Errorf("timer %d does nothing", i)
		case i > 0 && t.at.Before(e.timers[(i-1)/2].at):
			return fmt.Errorf("timer %d is sooner than its parent", i)
		case !t.at.After(e.now):
			return fmt.Errorf("timer %d was due at %v, and it is %v", i, t.at, e.now)
		}
	}
	return nil
}

func checkCalls(e *Engine) error {
	for key, same := range e.calls {
		for c := same; c != nil; c = c.earlier {
			op := c.op
			n := 0
			for _, other := range op.calls {
				if other == c {
					n++
				}
			}
			switch {
			case c.answered || op.free || c.own.free:
				return fmt.Errorf("call %s is over, or its memory was given away", c.id)
			case n != 1:
				return fmt.Errorf("the operation of call %s knows it %d times", c.id, n)
			case jsonrpc.CanonicalID(c.id) != key:
				return fmt.Errorf("call %s is filed under %s", c.id, key)
			case !c.deadline.set() && c != op.leader():
				return fmt.Errorf("call %s has joined another and has no deadline", c.id)
			}
			if err := checkOperation(e, op); err != nil {
				return fmt.Errorf("the operation of call %s: %w", c.id, err)
			}
		}
	}
	return nil
}

func checkOperation(e *Engine, op *operation) error {
	for _, c := range op.calls {
		if c.answered || c.op != op {
			return fmt.Errorf("it lists a call that does not wait for it")
		}
	}
	switch op.state {
	case waiting:
		if !op.timer.set() || op.running != nil {
			return fmt.Errorf("it waits for nothing")
		}
	case sending:
		if op.running == nil || !op.running.timer.set() {
			return fmt.Errorf("it has no attempt at the server, or one without a timer")
		}
	case ended:
		if len(op.open) == 0 || op.running != nil {
			return fmt.Errorf("it has ended, and there are calls that wait for it")
		}
	default:
		return fmt.Errorf("it never began")
	}
	return nil
}

func checkPending(e *Engine) error {
	for id, p := range e.pending {
		a := p.attempt
		switch {
		case a != nil && (a.op.free || a.op.running != a && !slices.Contains(a.op.open, a)):
			return fmt.Errorf("request %d belongs to no operation", id)
		case a != nil && (a.id != id || a.gen != e.life.gen || !a.timer.set()):
			return fmt.Errorf("request %d: attempt %d at life %d of %d, timer %v", id, a.id, a.gen, e.life.gen, a.timer.set())
		case p.pass != nil && !slices.Contains(e.passing[jsonrpc.CanonicalID(p.pass.id)], p.pass):
			return fmt.Errorf("request %d passes for nobody", id)
		case p.pass != nil && p.pass.sent != e.ready():
			return fmt.Errorf("request %d: sent %v, server ready %v", id, p.pass.sent, e.ready())
		}
	}
	for key, same := range e.passing {
		for _, p := range same {
			if e.pending[p.ours].pass != p {
				return fmt.Errorf("request %s is not at the server and does not wait for it", key)
			}
		}
	}
	return nil
}

func checkInFlight(e *Engine) error {
	for op := range e.inFlight.all() {
		switch {
		case op.free || !op.found || e.inFlight.find(e, op) != op || op.state == idle:
			return fmt.Errorf("an operation that is over is in flight")
		case op.state == ended && len(op.open) == 0:
			return fmt.Errorf("an operation is in flight that has ended and expects no answer")
		}
	}
	return nil
}

func checkLife(e *Engine) error {
	l := &e.life
	for _, q := range l.queue {
		if q.op != nil && (q.op.state != waiting || q.op.free) || q.pass != nil && q.pass.sent {
			return fmt.Errorf("something is queued for the server that does not wait for it")
		}
	}
	for _, q := range l.queue {
		if l.state == greeting && q.op == nil {
			return fmt.Errorf("a frame is queued for a server that takes it")
		}
	}
	if (l.state == greeting) != (l.greets != nil) {
		return fmt.Errorf("the server is %v, and the client's initialize is there: %v", l.state, l.greets != nil)
	}
	if len(l.queue) > 0 && (l.state == up || l.state == unborn || l.state == down && !l.timer.set()) {
		return fmt.Errorf("%d things are queued for the server, and nobody starts it", len(l.queue))
	}
	if (l.state == starting || l.state == replaying || l.state == greeting) && !l.timer.set() {
		return fmt.Errorf("the server starts without a deadline")
	}
	return nil
}

// checkBreakers counts the probes that are out: each must be held by an operation that is under way.
func checkBreakers(e *Engine) error {
	held := map[*breaker]int{}
	seen := map[*operation]bool{}
	for _, c := range e.openCalls() {
		if seen[c.op] {
			continue
		}
		seen[c.op] = true
		permits := []permit{c.op.permit}
		if a := c.op.running; a != nil {
			permits = append(permits, a.permit)
		}
		for _, p := range permits {
			if p.breaker != nil && p.probe && p.period == p.breaker.period {
				held[p.breaker]++
			}
		}
	}
	for scope, b := range e.breakers {
		switch {
		case b.out != held[b]:
			return fmt.Errorf("breaker %q: %d probes are out, %d are held", scope, b.out, held[b])
		case b.state != halfOpen && b.out > 0:
			return fmt.Errorf("breaker %q is %v and has probes out", scope, b.state)
		case b.state == halfOpen && b.out+b.passed > max(1, b.params.Probes):
			return fmt.Errorf("breaker %q: %d probes out and %d passed, of %d", scope, b.out, b.passed, b.params.Probes)
		}
	}
	return nil
}

func checkQuestions(e *Engine) error {
	open := map[int64]int{}
	for _, q := range e.asking {
		for _, id := range q.asks {
			open[id]++
		}
	}
	for id, p := range e.pending {
		if a := p.attempt; a != nil && a.questions != open[id] {
			return fmt.Errorf("attempt %d counts %d open questions, there are %d", id, a.questions, open[id])
		}
	}
	return nil
}

func checkStore(e *Engine) error {
	n, size := 0, int64(0)
	for x := e.store.oldest; x != nil; x = x.next {
		n++
		size += x.size
	}
	if s := e.store; n != s.items.ItemCount() || size != s.bytes || n > s.limit.MaxEntries || size > s.limit.MaxBytes {
		return fmt.Errorf("the store holds %d entries of %d bytes, and believes %d of %d", n, size, s.items.ItemCount(), s.bytes)
	}
	return nil
}

func checkBudget(e *Engine) error {
	if b := e.budget; b.params != nil && (b.balance < 0 || b.balance > b.params.Burst) {
		return fmt.Errorf("the budget holds %v", b.balance)
	}
	return nil
}

func checkFree(e *Engine) error {
	if len(e.free) > maxFree {
		return fmt.Errorf("%d operations lie ready", len(e.free))
	}
	for _, op := range e.free {
		if !op.free || op.timer.set() || op.attempt1.timer.set() || op.first.deadline.set() || len(op.calls)+len(op.open) > 0 {
			return fmt.Errorf("an operation that lies ready is in use")
		}
	}
	return nil
}

// checkPlaces counts the places at the server that are taken: each must be held by an attempt that we wait for, or by an operation that
// is about to make one, and while somebody waits none may be free.
func checkPlaces(e *Engine) error {
	p := &e.places
	held := 0
	for id, pending := range e.pending {
		if a := pending.attempt; a != nil {
			if a.placed != (p.most > 0 && a.op.running == a) {
				return fmt.Errorf("attempt %d: it has a place %v, we wait for it %v", id, a.placed, a.op.running == a)
			}
			if a.placed {
				held++
			}
		}
	}
	for _, q := range e.life.queue {
		if q.op != nil && q.op.placed {
			held++
		}
	}
	switch {
	case held != p.taken || p.most > 0 && held > p.most || p.most == 0 && held > 0:
		return fmt.Errorf("%d of %d places are held, %d believed to be taken", held, p.most, p.taken)
	case len(p.waiting) > 0 && p.taken < p.most:
		return fmt.Errorf("%d operations wait for a place, and %d of %d are taken", len(p.waiting), p.taken, p.most)
	}
	return checkLine(p.waiting)
}

// checkLine says whether all in a line wait, and are in it once.
func checkLine(line []*operation) error {
	seen := map[*operation]bool{}
	for _, op := range line {
		if op.free || op.state != waiting || op.placed || seen[op] || !op.timer.set() {
			return fmt.Errorf("an operation stands in a line that does not wait, or twice")
		}
		seen[op] = true
	}
	return nil
}

func checkLimiters(e *Engine) error {
	for key, l := range e.limiters {
		if err := checkLine(l.waiting); err != nil {
			return fmt.Errorf("limiter %s: %w", key, err)
		}
		for _, op := range l.waiting {
			if op.limiter != l || op.rate != nil {
				return fmt.Errorf("limiter %s: an operation in its line does not know, or has its token", key)
			}
		}
		if l.timer.set() != (len(l.waiting) > 0) {
			return fmt.Errorf("limiter %s: %d wait for a token, timer %v", key, len(l.waiting), l.timer.set())
		}
	}
	return nil
}

// checkBatches says whether each request that a batch waits for is open, and whether a batch knows how many there are.
func checkBatches(e *Engine) error {
	waits := map[*batch]int{}
	for key, b := range e.batches {
		if !e.isOpen(key) {
			return fmt.Errorf("a batch waits for request %s, which is not open", key)
		}
		waits[b]++
		if !b.timer.set() {
			return fmt.Errorf("a batch waits for ever")
		}
	}
	for b, n := range waits {
		if b.open != n {
			return fmt.Errorf("a batch waits for %d requests, and %d are open", b.open, n)
		}
	}
	if e.batch != nil {
		return fmt.Errorf("a batch is still being taken in")
	}
	return nil
}

// checkTools says whether the texts of the tools that are remembered are as many bytes as they are counted for.
func checkTools(e *Engine) error {
	bytes := 0
	for _, t := range e.tools.byName {
		bytes += len(t.Name) + len(t.Title) + len(t.output.text)
	}
	if t := e.tools; bytes != t.bytes {
		return fmt.Errorf("the texts of the tools have %d bytes, and are believed to have %d", bytes, t.bytes)
	}
	return nil
}

// checkBounds holds what can be made without end, by a client or a server, to the most that may be remembered of it.
func checkBounds(e *Engine) error {
	for _, held := range []struct {
		what    string
		n, most int
	}{
		{"tools", len(e.tools.byName), maxTools},
		{"bytes of the texts of tools", e.tools.bytes, maxToolBytes},
		{"breakers", len(e.breakers), maxScopes},
		{"buckets", len(e.limiters), maxLimiters},
		{"facts", len(e.facts.known), maxFacts},
		{"facts in order", len(e.facts.order), 2 * maxFacts},
		{"invalidations by tool", len(e.epochs.tools), maxEpochs},
		{"invalidations by call", len(e.epochs.exact), maxEpochs},
		{"questions", len(e.asking), maxQuestions},
		{"subscriptions", len(e.session.subscriptions), maxSubscriptions},
	} {
		if held.n > held.most {
			return fmt.Errorf("%d %s are remembered, of %d at most", held.n, held.what, held.most)
		}
	}
	return nil
}
