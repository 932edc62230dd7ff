package policy

import (
	"time"

	"github.com/google/cel-go/common/types/ref"
)

// AnnotatedEffects returns the effects that the server's hints amount to: none for a read-only tool, idempotent, unsafe
// for one that is annotated but neither, unannotated without hints. Where the hints are not trusted every tool is
// unsafe, because a hint can only loosen.
func (t *Tool) AnnotatedEffects(trust bool) string {
	switch {
	case !trust:
		return EffectsUnsafe
	case !t.Annotated:
		return EffectsUnannotated
	case t.ReadOnly:
		return EffectsNone
	case t.Idempotent:
		return EffectsIdempotent
	}
	return EffectsUnsafe
}

// Before decides all that is decided before the first attempt and writes it to b, whose earlier content is lost. It begins
// a call: answers that c kept are forgotten. The decided effects are written to c.Tool.Effects first, because every
// other expression sees them there; where no rule decides them they are those of the tool's annotations.
//
// b shares Limit and, where it is literal, Invalidates with the plan: they are read-only. Key and CacheKey are valid until
// b is used again.
func (pl *Plan) Before(c *Call, b *Before) {
	keys, stale := b.keyBuffer[:0], b.staleBuffer[:0]
	if cap(keys) > 16<<10 {
		keys = nil // one huge key should not cost memory for ever
	}
	t := pl.byHints(&c.Tool)
	*b = t.base
	c.Tool.Effects = b.Effects
	if b.Effects == "" {
		c.Tool.Effects = c.Tool.AnnotatedEffects(pl.policy.server.TrustAnnotations)
	}
	c.memo.plan, c.memo.table = pl, t
	c.begin(t.slots)
	if c.Observe != nil {
		c.memo.deciders = append(c.memo.deciders[:0], t.settledBy[:]...)
	}
	if len(t.asks) > 0 && t.asks[0].ask == askEffects {
		t.decideEffects(c, b)
	}
	b.Effects = c.Tool.Effects

	b.keyBuffer, b.staleBuffer = keys, stale
	if len(t.asks) > 0 {
		times := t.settled
		for i := range t.asks {
			c.decide(b, &t.asks[i], &times)
		}
		if t.computes {
			times.total(b)
		}
	}
	if t.caches {
		t.lookAtCache(c, b)
	}
	if c.Observe != nil {
		pl.observeBefore(c, t, b)
	}
}

func (t *table) decideEffects(c *Call, b *Before) {
	list := t.asks[0].candidates
	for i := range list {
		cand := &list[i]
		if !c.applies(cand) {
			continue
		}
		effects, ok := EffectsUnsafe, true
		if cand.setting.expr == nil {
			effects = cand.setting.literal.(string)
		} else if effects, ok = value(c, cand, toEffects); !ok {
			effects = EffectsUnsafe
		}
		b.EffectsRule = cand.rule.name
		c.decidedBy(askEffects, cand.rule)
		if effects != c.Tool.Effects {
			c.Tool.Effects, c.memo.effects = effects, effects
			clear(c.memo.whenBefore) // answers that saw the annotated effects
		}
		return
	}
}

func toEffects(v ref.Val) (string, error) { return toWord(v, questions[askEffects].words) }

// decide asks the candidates for one decision, from the top.
func (c *Call) decide(b *Before, q *asked, times *timing) {
	if q.ask == askEffects {
		return
	}
	for i := range q.candidates {
		cand := &q.candidates[i]
		if !c.applies(cand) {
			continue
		}
		if cand.setting.expr == nil && cand.setting.final() {
			b.set(q.ask, cand)
		} else if !b.evaluate(c, q.ask, cand) {
			continue
		}
		times.note(q.ask, cand.rule)
		c.decidedBy(q.ask, cand.rule)
		return
	}
}

// evaluate asks one candidate whose answer depends on the call. It reports false if the next one is to be asked.
func (b *Before) evaluate(c *Call, ask int, cand *candidate) bool {
	switch ask {
	case askDeny:
		why, ok := value(c, cand, toText)
		if !ok {
			why = "the rule that may deny this call could not be evaluated: " + c.Errors[len(c.Errors)-1].Message
		}
		if why == "" {
			return false
		}
		b.Deny, b.DenyRule = why, cand.rule.name
		return true
	case askIdempotencyKey:
		return b.evaluateKey(c, cand)
	case askCacheKey:
		return b.evaluateCacheKey(c, cand)
	case askInvalidates:
		b.evaluateInvalidates(c, cand)
		return true
	case askBreakerScope:
		scope, ok := value(c, cand, toText)
		if !ok {
			scope = "server"
		}
		b.BreakerScope = scope
		return true
	case askRateLimitKey:
		b.RateLimitKey, _ = value(c, cand, toText)
		return true
	case askOnAmbiguous:
		word, ok := value(c, cand, toOnAmbiguous)
		if !ok {
			word = "refuse"
		}
		b.OnAmbiguous = word
		return true
	case askOnConflict:
		return put(&b.OnConflict, c, cand, toOnConflict)
	case askForwardKey:
		return put(&b.ForwardKey, c, cand, toPath)
	case askValidate:
		return put(&b.ValidateResults, c, cand, toValidate)
	case askIdempotencyTTL:
		if !put(&b.IdempotencyTTL, c, cand, toDuration) {
			return false
		}
		b.IdempotencyStated = !cand.rule.builtin
		return true
	case askCallTimeout:
		return put(&b.CallTimeout, c, cand, toTimeout)
	case askTotalTimeout:
		return put(&b.TotalTimeout, c, cand, toTimeout)
	case askMaxCallTime:
		return put(&b.MaxCallTime, c, cand, toTimeout)
	case askMaxRetries:
		return put(&b.MaxRetries, c, cand, toCount)
	}
	return false
}

// put stores the candidate's value; an error counts as if it had stated none.
func put[T string | int | time.Duration](to *T, c *Call, cand *candidate, convert func(ref.Val) (T, error)) bool {
	v, ok := value(c, cand, convert)
	if ok {
		*to = v
	}
	return ok
}

func toOnConflict(v ref.Val) (string, error)  { return toWord(v, questions[askOnConflict].words) }
func toOnAmbiguous(v ref.Val) (string, error) { return toWord(v, questions[askOnAmbiguous].words) }
func toValidate(v ref.Val) (string, error)    { return toWord(v, questions[askValidate].words) }
