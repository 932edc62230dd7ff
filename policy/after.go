package policy

import (
	"time"

	"github.com/google/cel-go/common/types/ref"
)

// enter begins a phase of the call. Where none has gone before, the effects are those of the annotations.
func (pl *Plan) enter(c *Call, f *Failure, result []byte, attempt int, elapsed time.Duration) *table {
	if c.Tool.Effects == "" {
		c.Tool.Effects = c.Tool.AnnotatedEffects(pl.policy.server.TrustAnnotations)
	}
	t := pl.later(c)
	if m := &c.memo; m.table != t {
		m.plan, m.table, m.whenBefore = pl, t, m.whenBefore[:0] // the slots are others
	}
	c.enter(t.slots, f, result, attempt, elapsed)
	return t
}

// AfterAttempt decides what follows a failed attempt. attempt counts from 1; elapsed is the time since the call was
// admitted. Whether an unsafe tool may be re-sent and how long to wait are asked only if the answer is to retry. An
// expression that errs means no.
func (pl *Plan) AfterAttempt(c *Call, f *Failure, attempt int, elapsed time.Duration) Retry {
	t := pl.enter(c, f, nil, attempt, elapsed)
	var r Retry
	cand, yes, _ := first(c, t.retry, toBool)
	if cand != nil {
		r.Retry, r.Rule = yes, cand.rule.name
	}
	if c.Observe != nil {
		c.observe(pl, askRetry, took(cand), r.Retry)
	}
	if !r.Retry {
		return r
	}
	cand, r.Unsafe, _ = first(c, t.retryUnsafe, toBool)
	if c.Observe != nil {
		c.observe(pl, askRetryUnsafe, took(cand), r.Unsafe)
	}
	for i := range t.retryDelay {
		cand := &t.retryDelay[i]
		if !c.applies(cand) {
			continue
		}
		if d, ok := answerOf(c, cand, toDuration); ok {
			r.Delay, r.DelayStated = d, true
			if c.Observe != nil {
				c.observe(pl, askRetryDelay, cand.rule, d)
			}
			break
		}
	}
	return r
}

// BreakerFailure decides whether an attempt counts as a failure for the breaker. f is zero (or nil) after a success; result is the raw
// JSON of the result, nil if there is none. Where a rule errs the built-in policy decides.
func (pl *Plan) BreakerFailure(c *Call, f *Failure, result []byte) (failed bool, rule string) {
	if c.Observe == nil && c.Tool.Effects != "" && (f == nil || f.Kind == "") {
		if t := pl.later(c); len(t.breakerFailure) > 0 && t.breakerFailure[0].success != unasked {
			return t.breakerFailure[0].success == holds, t.breakerFailure[0].rule.name
		}
	}
	t := pl.enter(c, f, result, 0, 0)
	erred := false
	for i := range t.breakerFailure {
		cand := &t.breakerFailure[i]
		if erred && !cand.rule.builtin || !c.applies(cand) {
			continue
		}
		if failed, ok := answerOf(c, cand, toBool); ok {
			if c.Observe != nil {
				c.observe(pl, askBreakerFailure, cand.rule, failed)
			}
			return failed, cand.rule.name
		}
		erred = true
	}
	return f != nil && f.Transient, ""
}

// CacheTTL decides how long a result is kept: 0 = not at all, also where the rule errs.
func (pl *Plan) CacheTTL(c *Call, result []byte, elapsed time.Duration) (ttl time.Duration, rule string) {
	t := pl.enter(c, nil, result, 0, elapsed)
	return pl.decideDuration(c, askCacheTTL, t.cacheTTL)
}

// StaleIfError decides how long past its TTL a kept result may stand in for the failure: 0 = not at all, also where the
// rule errs.
func (pl *Plan) StaleIfError(c *Call, f *Failure) (d time.Duration, rule string) {
	t := pl.enter(c, f, nil, 0, 0)
	return pl.decideDuration(c, askStaleIfError, t.staleIfError)
}

func (pl *Plan) decideDuration(c *Call, ask int, list []candidate) (time.Duration, string) {
	cand, d, _ := first(c, list, toDuration)
	if c.Observe != nil {
		c.observe(pl, ask, took(cand), d)
	}
	if cand == nil {
		return 0, ""
	}
	return d, cand.rule.name
}

// first returns the answer of the first candidate that applies; the zero value, and false, if its expression errs.
func first[T any](c *Call, list []candidate, convert func(ref.Val) (T, error)) (*candidate, T, bool) {
	for i := range list {
		if cand := &list[i]; c.applies(cand) {
			v, ok := answerOf(c, cand, convert)
			if !ok {
				var zero T
				return cand, zero, false
			}
			return cand, v, true
		}
	}
	var zero T
	return nil, zero, false
}

// answerOf is the candidate's literal or the value of its expression.
func answerOf[T any](c *Call, cand *candidate, convert func(ref.Val) (T, error)) (T, bool) {
	if cand.setting.expr == nil {
		v, ok := cand.setting.literal.(T)
		return v, ok
	}
	return value(c, cand, convert)
}

func isZero(literal any) bool {
	d, ok := literal.(time.Duration)
	return ok && d == 0
}
