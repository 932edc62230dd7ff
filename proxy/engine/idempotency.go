package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// keptDefault is how long a result is kept that the client never received, and what an explicit key names if no
// idempotency_ttl is stated.
const keptDefault = 300 * time.Second

// kept is what an operation came to, for a repeat of the call.
type kept struct {
	result   []byte // raw JSON; nil = it was not kept, only the fact that it succeeded
	once     bool   // the client never received it: once it has, it is dropped
	explicit bool
	args     digest // of the arguments it was made with, if explicit
	tool     string
	read     bool   // it only read: a write makes it stale
	begun    uint64 // epoch when its attempt was sent
	at       time.Time
	expires  time.Time
}

// keep remembers the result of an operation for a repeat, as policy and the kind of its key want it.
func (e *Engine) keep(op *operation, a *attempt, result []byte, delivered bool) {
	d := op.decided
	ttl, once, read := keptDefault, false, op.known() == policy.EffectsNone
	switch {
	case op.keyed == unkeyed:
		return
	case op.keyed == explicit && d.IdempotencyStated:
		ttl = d.IdempotencyTTL
	case op.keyed == explicit:
	case d.IdempotencyStated && d.IdempotencyTTL > 0 && !read && !d.CacheStated:
		ttl = d.IdempotencyTTL
	case delivered:
		return
	default:
		once = true
	}
	if ttl <= 0 {
		return
	}
	k := &kept{
		tool: op.tool.Name, explicit: op.keyed == explicit, once: once, read: read,
		args: e.argsOf(op), result: clone(result), begun: a.epoch, at: e.now, expires: e.now.Add(ttl),
	}
	if !e.store.put(e.keyOfOperation(op), k, len(result)) && op.keyed == explicit {
		e.facts.remember(e.now, op.key, fact{expires: k.expires, args: k.args})
	}
	if !delivered {
		op.dedup = "kept"
	}
}

// keepAmbiguity remembers that nobody knows what an operation came to, if its repeat must not run.
func (e *Engine) keepAmbiguity(op *operation) {
	if op.keyed != unkeyed && refusesAmbiguous(op) {
		e.keepFact(op, true)
	}
}

// keepUnusable remembers that an operation with an explicit key was executed although nobody could use its answer.
func (e *Engine) keepUnusable(op *operation) {
	o := &op.last
	unusable := o.failure.Delivery == deliveryAnswered && (o.code == CodeTooLarge || o.code == CodeInvalidResult)
	if unusable && op.keyed == explicit && op.decided.Effects != policy.EffectsNone {
		e.keepFact(op, false)
	}
}

// keepFact remembers that the key of an operation was used, without a result.
func (e *Engine) keepFact(op *operation, ambiguous bool) {
	ttl := keptDefault
	if op.decided.IdempotencyStated {
		ttl = op.decided.IdempotencyTTL
	}
	if ttl > 0 {
		e.facts.remember(e.now, e.keyOfOperation(op), fact{expires: e.now.Add(ttl), args: e.argsOf(op), ambiguous: ambiguous})
	}
}

// refusesAmbiguous reports whether a repeat of an operation of unknown outcome is refused: by default if it has an explicit key.
func refusesAmbiguous(op *operation) bool {
	if op.decided.OnAmbiguous == "" {
		return op.keyed == explicit
	}
	return op.decided.OnAmbiguous == "refuse"
}

// replays answers a call from what an earlier one with the same key came to.
func (e *Engine) replays(op *operation) bool {
	if op.keyed == unkeyed || e.store.kept == 0 && len(e.facts.known) == 0 {
		return false
	}
	key := e.keyOfOperation(op)
	if k, ok := e.store.get(key).(*kept); ok {
		reads := op.keyed == implicit && (k.read || op.known() == policy.EffectsNone)
		if !e.now.Before(k.expires) || reads && (!k.once || e.outdated(k.begun, op)) {
			e.store.drop(key)
			return false
		}
		if e.conflicts(op, k.args) {
			return true
		}
		if k.once {
			e.store.drop(key)
		}
		op.dedup = "replayed"
		e.give(&op.first, k.result, "replayed", e.now.Sub(k.at))
		return true
	}
	f, ok := e.facts.recall(key, e.now)
	switch {
	case !ok:
		return false
	case f.ambiguous && !refusesAmbiguous(op):
		e.facts.forget(key)
		return false
	case e.conflicts(op, f.args):
		return true
	case f.ambiguous:
		e.reject(&op.first, statusRefused, &fault{code: CodeOutcomeUnknown, text: unknownText(op.tool.Name, "no answer ever came"),
			delivery: deliveryUnknown, executed: "unknown", rule: op.decided.KeyRule})
	default:
		e.reject(&op.first, statusRefused, &fault{code: CodeOutcomeUnknown, text: notKept(op.tool.Name), executed: "yes", rule: op.decided.KeyRule})
	}
	return true
}

// fact is what stays of a key when there is no result: that it was used.
type fact struct {
	expires   time.Time
	args      digest
	ambiguous bool
	seq       uint64
}

// maxFacts bounds the keys of which only the fact is known; at some 150 bytes each that is 15 MB.
const maxFacts = 100_000

// facts remember keys whose results are not kept, oldest out first.
type facts struct {
	known map[digest]fact
	order []factRef // may hold keys that were forgotten or remembered anew since
	seq   uint64
}

type factRef struct {
	key digest
	seq uint64
}

// remember notes a fact, and forgets what has expired: in the order of arrival, so one that lasts long may hold up others.
func (f *facts) remember(now time.Time, key digest, what fact) {
	if f.known == nil {
		f.known = map[digest]fact{}
	}
	f.seq++
	what.seq = f.seq
	f.known[key] = what
	f.order = append(f.order, factRef{key, f.seq})
	for {
		oldest := f.order[0]
		known := f.known[oldest.key]
		present := known.seq == oldest.seq
		if present && now.Before(known.expires) && len(f.known) <= maxFacts && len(f.order) <= 2*maxFacts {
			return
		}
		f.order = f.order[1:]
		if present {
			delete(f.known, oldest.key)
		}
		if len(f.order) == 0 {
			return
		}
	}
}

func (f *facts) recall(key digest, now time.Time) (fact, bool) {
	found, ok := f.known[key]
	if ok && !now.Before(found.expires) {
		delete(f.known, key)
		return fact{}, false
	}
	return found, ok
}

func (f *facts) forget(key digest) { delete(f.known, key) }

// factStays keeps the fact that an operation with an explicit key was done, when its result has to make room.
func (e *Engine) factStays(gone *entry) {
	if k, ok := gone.value.(*kept); ok && k.explicit {
		e.facts.remember(e.now, gone.key, fact{expires: k.expires, args: k.args})
	}
}
