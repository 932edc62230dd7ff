package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// admit takes in a tools/call of the client and finds the cheapest way to an answer. The order of its guards is the order
// of the product: what is refused costs nothing, what is known costs the server nothing.
func (e *Engine) admit(m *jsonrpc.Message, owned bool) {
	op, bad := e.newOperation(m, owned)
	if bad != nil {
		e.refuse(m.ID.Of(m.Frame), bad)
		return
	}
	if e.modern {
		e.learnModernClient(op.frame, op.meta)
	}
	c := &op.first
	e.enter(c)
	if e.logs(LevelDebug) {
		e.log(Record{Level: LevelDebug, Event: "tool_call_start", Tool: op.tool.Name, RequestID: loggedID(c.id)})
	}
	e.decide(op)
	if why, rule, denied := e.denied(op); denied {
		e.reject(c, statusDenied, &fault{code: CodeDenied, text: deniedText(op.tool.Name, why), rule: rule})
		return
	}
	e.identify(op)
	if e.joins(op) || e.replays(op) || e.hits(op) {
		return
	}
	e.begin(op)
}

// newOperation reads the parameters of a call, or says what is wrong with them.
func (e *Engine) newOperation(m *jsonrpc.Message, owned bool) (*operation, *fault) {
	op := e.blankOperation()
	op.frame = m.Frame
	if !owned {
		op.buffer = append(op.buffer[:0], m.Frame...)
		op.frame = op.buffer
	}
	name, bad := op.read(m)
	if bad != nil {
		e.recycle(op)
		return nil, bad
	}
	op.admitted = e.now
	op.tool = e.tools.named(name.Of(op.frame), e)
	op.plan = op.tool.plan
	op.facts.Tool, op.facts.Server, op.facts.Client, op.facts.Now = op.tool.Tool, &e.peer, &e.client, e.now
	c := &op.first
	c.op, c.own, c.id, c.admitted, c.token = op, op, op.id.Of(op.frame), e.now, op.token.Of(op.frame)
	e.observed(op)
	return op, nil
}

// decide asks policy all that it decides before the first attempt.
func (e *Engine) decide(op *operation) {
	op.plan.Before(op.facts, op.decided)
	e.takeEvalErrors(op)
	d := op.decided
	if op.special {
		d.Effects = policy.EffectsUnsafe
	}
	op.deadline = e.now.Add(min(d.TotalTimeout, d.MaxCallTime))
	op.limit = e.now.Add(d.MaxCallTime)
	if b := e.batch; b != nil {
		b.until = earliest(b.until, op.deadline)
	}
}

// denied reports whether policy refuses the call, and why.
func (e *Engine) denied(op *operation) (why, rule string, denied bool) {
	if !e.exposed(op.tool.Name) {
		return "the tool is not exposed", "tool_filter", true
	}
	if d := op.decided; d.Deny != "" {
		return d.Deny, d.DenyRule, true
	}
	if d := op.decided; d.KeyRequired {
		return "its idempotency key is required and cannot be computed (" + d.KeyError + ")", d.KeyRule, true
	}
	return "", "", false
}

// identify finds what names the operation: a rule's key, the client's own key, or the tool with its arguments.
func (e *Engine) identify(op *operation) {
	d := op.decided
	key := d.Key
	if given := op.takeClientKey(); key == nil {
		key = given
	}
	if op.special {
		return
	}
	args := op.arguments()
	switch {
	case d.NoDedup:
	case key != nil:
		op.keyed = explicit
		op.key = e.keyOf("key", op.tool.Name, key)
		op.argsKey = e.keyOf("args", "", args) // before the key is put among them
		op.forward(key)
		e.observeKey(op, key)
	default:
		op.keyed = implicit
		op.print = e.inFlight.fingerprint(op.tool.Name, args)
	}
	if !op.cacheable() {
		return
	}
	op.cacheKey = e.keyOf("cache", op.tool.Name, args)
	if d.CacheKey != nil {
		op.cacheKey = e.keyOf("cache key", op.tool.Name, d.CacheKey)
	}
}

// arguments is the JSON object of the call's arguments, {} if there are none.
func (op *operation) arguments() []byte {
	if op.facts.Args == nil {
		return emptyObject
	}
	return op.facts.Args
}

var emptyObject = []byte("{}")

// joins lets the call wait for an identical one that is in flight, or for an answer to it that is overdue.
func (e *Engine) joins(op *operation) bool {
	other := e.inFlight.find(e, op)
	if other == nil {
		return false
	}
	if e.conflicts(op, other.argsKey) {
		return true
	}
	if other.state == ended && op.decided.OnAmbiguous == "run" {
		return false
	}
	if op.onlyReads() && e.overtaken(other) {
		return false
	}
	c := &op.first
	c.op, op.dedup = other, "joined"
	other.calls = append(other.calls, c)
	patience := op.deadline
	if other.state == ended {
		patience = e.now.Add(min(op.decided.CallTimeout, op.decided.TotalTimeout))
	}
	e.timers.arm(&c.deadline, patience)
	return true
}

// onlyReads reports whether the call is one whose answer must be no older than the last write.
func (op *operation) onlyReads() bool {
	return op.keyed == implicit && (op.known() == policy.EffectsNone || op.decided.CacheStated)
}

// overtaken reports whether something has made stale what an operation in flight may come to, since it was sent.
func (e *Engine) overtaken(op *operation) bool {
	if a := op.running; a != nil && e.outdated(a.epoch, op) {
		return true
	}
	for _, a := range op.open {
		if e.outdated(a.epoch, op) {
			return true
		}
	}
	return false
}

// conflicts refuses a call whose explicit key was used with other arguments, if policy wants it so.
func (e *Engine) conflicts(op *operation, args digest) bool {
	if op.keyed != explicit || op.decided.OnConflict != "reject" || op.argsKey == args {
		return false
	}
	e.reject(&op.first, statusRefused, &fault{code: CodeConflict, text: conflictText(op.tool.Name), rule: op.decided.KeyRule, executed: "no"})
	return true
}

// hits answers from the cache.
func (e *Engine) hits(op *operation) bool {
	if !op.cacheable() {
		return false
	}
	fresh, _ := e.lookUp(op)
	if fresh == nil {
		op.cache = "miss"
		e.meterCache(op, "miss")
		return false
	}
	op.cache = "hit"
	e.meterCache(op, "hit")
	e.give(&op.first, fresh.result, "cached", e.now.Sub(fresh.stored))
	return true
}

// begin makes the operation known and goes for its first attempt.
func (e *Engine) begin(op *operation) {
	e.inFlight.add(e, op)
	op.state = waiting
	op.calls = append(op.calls[:0], &op.first)
	e.learnTools(op.facts.Meta)
	e.attempt(op)
}

// followerTimedOut ends the patience of a call that joined another.
func (e *Engine) followerTimedOut(c *call) {
	op := c.op
	if a := op.running; a != nil && (a.progressed || a.questions > 0) && e.now.Before(c.own.limit) {
		e.timers.arm(&c.deadline, earliest(a.timer.at, c.own.limit)) // what carries the attempt on carries all who wait for it
		if !a.timer.at.After(e.now) {                                // of several that are due, these would go round and round before it
			e.timers.stop(&a.timer)
			a.timer.fire(e)
		}
		return
	}
	op.calls = without(op.calls, c)
	f := &fault{code: CodeOutcomeUnknown, text: unknownText(op.tool.Name, "no answer has come yet"), delivery: deliveryUnknown, executed: "unknown"}
	if op.state != ended {
		waited := e.now.Sub(c.admitted).Round(time.Millisecond)
		f = &fault{code: CodeTimeout, text: timeoutText(op.tool.Name, waited, op.executed(), "total_timeout"), delivery: deliveryUnknown, executed: op.executed()}
	}
	f.attempts = op.attempts
	e.reject(c, statusTimeout, f)
	e.loseInterest(op)
}

// whole spans all of a piece of JSON that stands for itself.
func whole(b []byte) jsonrpc.Span { return jsonrpc.Span{Start: 0, End: len(b)} }
