package engine

import (
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// cached is the result of a call, for later calls with the same key.
type cached struct {
	result  []byte // raw JSON
	tool    string
	args    digest // of its arguments, for invalidations that name some
	begun   uint64 // epoch when its attempt was sent
	stored  time.Time
	expires time.Time
}

// epochs tell whether a result is older than the last thing that made it stale. Time is counted in invalidations: a result
// carries the number that was reached when its attempt was sent, and is stale once a later invalidation concerns it. So a
// fill that began before a write ended can never be read after it.
type epochs struct {
	now   uint64
	all   uint64            // the last invalidation of everything
	doubt uint64            // the last call that failed and of which nobody has said whether it writes
	tools map[string]uint64 // the last one of the tools that match a glob
	exact map[staleCall]uint64
}

// staleCall names the calls of tools that match a glob with exactly these arguments.
type staleCall struct {
	tool string
	args digest
}

// maxEpochs bounds what invalidations are remembered one by one; beyond it everything is stale.
const maxEpochs = 1024

func (p *epochs) invalidateAll() {
	p.now++
	p.all = p.now
	p.tools, p.exact = nil, nil
}

func (p *epochs) invalidate(tool string) {
	if len(p.tools) >= maxEpochs {
		p.invalidateAll()
		return
	}
	if p.tools == nil {
		p.tools = map[string]uint64{}
	}
	p.now++
	p.tools[tool] = p.now
}

func (p *epochs) invalidateCall(tool string, args digest) {
	if len(p.exact) >= maxEpochs {
		p.invalidateAll()
		return
	}
	if p.exact == nil {
		p.exact = map[staleCall]uint64{}
	}
	p.now++
	p.exact[staleCall{tool, args}] = p.now
}

// stale reports whether something that concerns a result has happened since the epoch in which it began.
func (p *epochs) stale(begun uint64, tool string, args digest) bool {
	if begun < p.all {
		return true
	}
	if begun == p.now {
		return false
	}
	for glob, at := range p.tools {
		if begun < at && policy.Match(glob, tool) {
			return true
		}
	}
	for call, at := range p.exact {
		if begun < at && call.args == args && policy.Match(call.tool, tool) {
			return true
		}
	}
	return false
}

// lookUp returns the cached result of an operation that is fresh, and besides it whatever is there, fresh, doubtful or
// expired, as long as nothing has made it stale: it may stand in for a failure.
func (e *Engine) lookUp(op *operation) (fresh, any *cached) {
	found, ok := e.store.get(op.cacheKey).(*cached)
	if !ok {
		return nil, nil
	}
	if e.epochs.stale(found.begun, found.tool, found.args) {
		e.store.drop(op.cacheKey)
		e.meterCache(op, "invalidated")
		return nil, nil
	}
	if e.now.Before(found.expires) && found.begun >= e.epochs.doubt {
		return found, found
	}
	return nil, found
}

// outdated reports whether what an operation comes to was made stale, or doubtful, since an epoch.
func (e *Engine) outdated(begun uint64, op *operation) bool {
	return begun < e.epochs.doubt || e.epochs.stale(begun, op.tool.Name, e.argsOf(op))
}

// argsOf names the arguments of an operation.
func (e *Engine) argsOf(op *operation) digest {
	if op.argsKey == (digest{}) {
		op.argsKey = e.keyOf("args", "", op.arguments())
	}
	return op.argsKey
}

// fill stores the result of an operation for as long as policy says.
func (e *Engine) fill(op *operation, a *attempt, result []byte) {
	if !op.cacheable() || op.decided.ValidateResults == "enforce" && !op.tool.known {
		return // its schema has not been seen yet: it may be a bad one
	}
	ttl, rule := op.plan.CacheTTL(op.facts, result, e.now.Sub(op.admitted))
	e.takeEvalErrors(op)
	if ttl <= 0 || e.outdated(a.epoch, op) {
		return
	}
	c := &cached{result: clone(result), tool: op.tool.Name, args: e.argsOf(op), begun: a.epoch, stored: e.now, expires: e.now.Add(ttl)}
	if e.store.put(op.cacheKey, c, len(result)) {
		op.cache, op.cacheRule = "stored", rule
		e.meterCache(op, "stored")
	}
}

// invalidate makes stale what a call makes stale: when it is sent, and again when it ends, whatever it came to. A tool without
// annotations whose call was not accepted (yet) only casts doubt: what is cached is fetched anew if it can be, but still
// answers while the breaker is open.
func (e *Engine) invalidate(op *operation, accepted bool) {
	d := op.decided
	switch {
	case d.InvalidatesAll:
		e.epochs.invalidateAll()
	case d.InvalidatesStated:
		for _, i := range d.Invalidates {
			if i.Args == nil {
				e.epochs.invalidate(i.Tool)
			} else {
				e.epochs.invalidateCall(i.Tool, e.keyOf("args", "", i.Args))
			}
		}
	case op.known() == policy.EffectsNone || d.CacheStated:
	case op.known() == policy.EffectsUnannotated && !accepted:
		e.epochs.now++
		e.epochs.doubt = e.epochs.now
	default:
		e.epochs.invalidateAll()
	}
}

// clone copies bytes that outlive the event they came with; nil stays nil.
func clone(b []byte) []byte { return slices.Clone(b) }
