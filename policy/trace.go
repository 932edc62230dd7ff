package policy

import (
	"slices"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/bentabol/mcp-retry/schema"
)

// Decided is a decision as it was taken, for those who explain it: see [Call.Observe]. It is valid while that is told of it.
type Decided struct {
	Decision schema.Decision
	Rule     string // that decided; "" = none did, and what is usual holds
	// Value is what it came to: string, bool, int, float64, time.Duration, [Key], []Invalidates or *RateLimit; nil = nothing
	// was stated.
	Value any

	call *Call
	plan *Plan
	ask  int
	by   *rule
}

// Key is the JSON text of a key that a rule decided; empty = none.
type Key string

// Fate is what became of a rule that was asked for a decision.
type Fate uint8

const (
	Took        Fate = iota // it decided
	OtherTool               // it is for other tools
	WhenFalse               // its condition does not hold
	WhenFailed              // its condition could not be evaluated, which counts as false
	ValueFailed             // its value could not be evaluated, and the next rule was asked
	NoOpinion               // its value leaves the decision to the next rule: null, or no reason to deny
)

// String says it in words that follow the name of the rule.
func (f Fate) String() string {
	return [...]string{"decided", "is for other tools", "its when is false", "its when failed", "its value failed", "has no opinion"}[f]
}

// Considered is a rule that was asked for a decision.
type Considered struct {
	Rule   string
	Pos    schema.Pos
	Fate   Fate
	When   *Evaluated   // nil = it has none
	Values []*Evaluated // of what it states, if that was asked and is no literal
}

// Evaluated is an expression with what it and its parts came to.
type Evaluated struct {
	Expr  *schema.Expr
	Value string // as CEL would write it, shortened
	Err   string // why it failed; "" = it did not
	Parts []Part // as they follow in the text; empty if the expression is a single name or value
}

// Part is a part of an expression.
type Part struct {
	Offset  int    // of its first byte in the text of the expression
	Text    string // in normal spelling
	Value   string // as CEL would write it, shortened; "" = it was not evaluated
	Whole   bool   // it is all of the expression
	Boolean bool   // its outcomes are true and false
	Outcome Outcome
}

// Outcome is what a part that is a condition came to.
type Outcome uint8

const (
	NotReached Outcome = iota // the rest of the expression made it superfluous
	True
	False
	Failed
)

// Considered lists the rules that state the decision, from the top down to the one that decided, each with the values of its
// expressions. It evaluates them again, with every step recorded, on what the decision was taken on.
func (d Decided) Considered() []Considered {
	if d.ask == askEffects {
		decided := d.call.Tool.Effects
		d.call.Tool.Effects = d.call.Tool.AnnotatedEffects(d.plan.policy.server.TrustAnnotations)
		defer func() { d.call.Tool.Effects = decided }()
	}
	var list []Considered
	for i := range d.plan.policy.rules {
		r := &d.plan.policy.rules[i]
		at := slices.IndexFunc(r.decisions, func(s setting) bool { return s.ask == d.ask })
		if at < 0 {
			continue
		}
		list = append(list, d.consider(r, &r.decisions[at]))
		if r == d.by {
			break
		}
	}
	return list
}

func (d Decided) consider(r *rule, s *setting) Considered {
	c := Considered{Rule: r.name, Pos: d.plan.policy.server.Rules[r.index].Pos, Fate: Took}
	if r.tools != "" && !Match(r.tools, d.call.Tool.Name) {
		c.Fate = OtherTool
		return c
	}
	if r.when != nil {
		c.When = evaluated(d.call, r.whenText)
		switch {
		case c.When.Err != "":
			c.Fate = WhenFailed
		case c.When.Value != "true":
			c.Fate = WhenFalse
		}
		if c.Fate != Took {
			return c
		}
	}
	if s.text != nil {
		c.Values = append(c.Values, evaluated(d.call, s.text))
	}
	if items, ok := s.literal.([]invalidation); ok {
		for _, item := range items {
			if item.args != nil {
				c.Values = append(c.Values, evaluated(d.call, item.text))
			}
		}
	}
	if r == d.by {
		return c
	}
	c.Fate = NoOpinion
	for _, v := range c.Values {
		if v.Err != "" {
			c.Fate = ValueFailed
		}
	}
	return c
}

// observe tells of a decision that a candidate took; nil = none did.
func (c *Call) observe(pl *Plan, ask int, by *rule, value any) {
	d := Decided{Decision: questions[ask].decision, Value: value, call: c, plan: pl, ask: ask, by: by}
	if by != nil {
		d.Rule = by.name
	}
	c.Observe(d)
}

// decidedBy notes which rule decided something before the call, if somebody observes.
func (c *Call) decidedBy(ask int, r *rule) {
	if c.Observe != nil {
		c.memo.deciders[ask] = r
	}
}

// took is the rule of a candidate, which may be nil.
func took(cand *candidate) *rule {
	if cand == nil {
		return nil
	}
	return cand.rule
}

// observeBefore tells of everything that was decided before the first attempt.
func (pl *Plan) observeBefore(c *Call, t *table, b *Before) {
	for ask, by := range c.memo.deciders {
		if questions[ask].phase == BeforeCall {
			c.observe(pl, ask, by, b.value(ask))
		}
	}
	if !b.CacheMayFill { // else it is asked once there is a result
		c.observe(pl, askCacheTTL, took(t.lookAtCache(c, b)), time.Duration(0))
	}
}

// value is what was decided for a question; nil if nothing was stated.
func (b *Before) value(ask int) any {
	switch ask {
	case askEffects:
		return b.Effects
	case askDeny:
		return b.Deny
	case askIdempotencyKey:
		return Key(b.Key)
	case askIdempotencyTTL:
		return b.IdempotencyTTL
	case askOnConflict:
		return b.OnConflict
	case askOnAmbiguous:
		return b.OnAmbiguous
	case askForwardKey:
		return b.ForwardKey
	case askCacheKey:
		return Key(b.CacheKey)
	case askBreakerScope:
		return b.BreakerScope
	case askRateLimitKey:
		return b.RateLimitKey
	case askCallTimeout:
		return b.CallTimeout
	case askTotalTimeout:
		return b.TotalTimeout
	case askMaxCallTime:
		return b.MaxCallTime
	case askMaxRetries:
		return b.MaxRetries
	case askInvalidates:
		return b.Invalidates
	case askValidate:
		return b.ValidateResults
	case askBaseDelay:
		return b.Backoff.Base
	case askMaxDelay:
		return b.Backoff.Max
	case askJitter:
		return b.Backoff.Jitter
	case askBackoff:
		return b.Backoff.Kind
	case askFailureThreshold:
		return b.Breaker.Threshold
	case askCooldown:
		return b.Breaker.Cooldown
	case askHalfOpenProbes:
		return b.Breaker.Probes
	case askLimit:
		return b.Limit
	}
	return nil
}

// Stated is a rule of a policy with the expressions in it, for those who ask which of them tests reach.
type Stated struct {
	Rule      string
	Pos       schema.Pos
	Builtin   bool
	Decisions []schema.Decision
	When      *Evaluated   // not evaluated: its parts have no values; nil = it has none
	Values    []*Evaluated // of the decisions that are expressions
}

// Stated lists the rules of the policy in their order.
func (p *Policy) Stated() []Stated {
	list := make([]Stated, len(p.rules))
	for i := range p.rules {
		r := &p.rules[i]
		s := Stated{Rule: r.name, Pos: p.server.Rules[i].Pos, Builtin: r.builtin}
		if r.when != nil {
			s.When = unevaluated(r.whenText)
		}
		for _, set := range r.decisions {
			s.Decisions = append(s.Decisions, questions[set.ask].decision)
			if set.text != nil {
				s.Values = append(s.Values, unevaluated(set.text))
			}
			if items, ok := set.literal.([]invalidation); ok {
				for _, item := range items {
					if item.args != nil {
						s.Values = append(s.Values, unevaluated(item.text))
					}
				}
			}
		}
		list[i] = s
	}
	return list
}

// asWritten is a value of CEL as a person would write it, shortened.
func asWritten(v ref.Val) string { return shorten(inWords(v), 80) }
