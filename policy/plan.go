package policy

import "time"

// Plan is what a policy says about one tool: for each decision the rules that may decide it, in order, up to the first
// that does so whatever the call. Decisions that come to a literal are settled in it.
type Plan struct {
	policy *Policy
	base   Before  // what does not depend on the call
	asks   []asked // decisions before the call that do depend on it, in the order of questions

	retry, retryUnsafe, retryDelay, breakerFailure, cacheTTL, staleIfError []candidate

	settled  timing // of the timeouts in base
	computes bool   // the timeouts depend on the call
	caches   bool   // whether the cache may fill depends on the call

	settledBy [len(questions)]*rule // which rules decided what is in base
}

// asked is one decision and the rules that may decide it.
type asked struct {
	ask        int
	candidates []candidate
}

// candidate is a rule that may decide a question.
type candidate struct {
	rule    *rule
	setting setting // its literal may come from an expression that needs only the names of tool and server
	always  bool    // its when holds for every call
}

// For returns what the policy says about the tool of that name. It costs microseconds and no look at any call; keep the
// plan. It can be used by many goroutines.
func (p *Policy) For(tool string) *Plan {
	named := Call{Tool: Tool{Name: tool}, Server: &Peer{Name: p.server.Name}}
	named.begin(len(p.rules))

	var lists [len(questions)][]candidate
	var closed [len(questions)]bool
	for i := range p.rules {
		r := &p.rules[i]
		if r.tools != "" && !Match(r.tools, tool) {
			continue
		}
		always := r.when == nil
		if r.when != nil && varsNamed.has(r.when.vars) {
			if v, err := r.when.eval(&named); err == nil {
				if holds, err := toBool(v); err == nil {
					if !holds {
						continue
					}
					always = true
				}
			}
		}
		for _, s := range r.decisions {
			if closed[s.ask] {
				continue
			}
			s.fold(&named)
			if saysNothing(&s) {
				continue
			}
			lists[s.ask] = append(lists[s.ask], candidate{rule: r, setting: s, always: always})
			closed[s.ask] = always && s.expr == nil && s.final() && (r.builtin || s.ask != askBreakerFailure)
		}
	}
	pl := &Plan{
		policy: p,
		retry:  lists[askRetry], retryUnsafe: lists[askRetryUnsafe], retryDelay: lists[askRetryDelay],
		breakerFailure: lists[askBreakerFailure], cacheTTL: lists[askCacheTTL], staleIfError: lists[askStaleIfError],
	}
	pl.settle(&lists)
	return pl
}

// fold replaces an expression that needs only names by its value.
func (s *setting) fold(named *Call) {
	if s.expr == nil || !varsNamed.has(s.expr.vars) {
		return
	}
	v, err := s.expr.eval(named)
	if err != nil {
		return // it will fail, and be reported, for each call
	}
	if literal, err := literalOf(&questions[s.ask], v); err == nil {
		s.literal, s.expr = literal, nil
	}
}

// saysNothing tells whether the setting leaves its decision to later rules, whatever the call.
func saysNothing(s *setting) bool {
	if s.expr != nil {
		return false
	}
	switch v := s.literal.(type) {
	case keyLiteral:
		return v.answer == keyNone && !s.required
	case string:
		return s.ask == askDeny && v == ""
	}
	return false
}

// final tells whether a literal leaves nothing for later rules to say.
func (s *setting) final() bool {
	list, ok := s.literal.([]invalidation)
	if !ok {
		return true
	}
	for _, item := range list {
		if item.args != nil {
			return false
		}
	}
	return true
}

// settle writes what is the same for every call into base and keeps the rest as asks.
func (pl *Plan) settle(lists *[len(questions)][]candidate) {
	b := &pl.base
	*b = undecided()
	for ask := range lists {
		list := lists[ask]
		if len(list) == 0 || questions[ask].phase != BeforeCall {
			continue
		}
		if first := &list[0]; first.always && first.setting.expr == nil && first.setting.final() {
			pl.settled.note(ask, first.rule)
			pl.settledBy[ask] = first.rule
			b.set(ask, first)
			continue
		}
		pl.asks = append(pl.asks, asked{ask, list})
		switch ask {
		case askCallTimeout, askTotalTimeout, askMaxCallTime, askMaxRetries:
			pl.computes = true
		}
	}
	if !pl.computes {
		pl.settled.total(b)
	}
	b.CacheMayFill, b.CacheStated = false, false
	for i := range pl.cacheTTL {
		if c := &pl.cacheTTL[i]; !c.always && c.rule.early {
			pl.caches = true
		}
	}
	if !pl.caches {
		pl.lookAtCache(nil, b)
	}
}

// set writes a literal into the decisions.
func (b *Before) set(ask int, c *candidate) {
	v, name := c.setting.literal, c.rule.name
	switch ask {
	case askEffects:
		b.Effects, b.EffectsRule = v.(string), name
	case askDeny:
		b.Deny, b.DenyRule = v.(string), name
	case askIdempotencyKey:
		b.setKey(v.(keyLiteral), c)
	case askIdempotencyTTL:
		b.IdempotencyTTL, b.IdempotencyStated = v.(time.Duration), !c.rule.builtin
	case askOnConflict:
		b.OnConflict = v.(string)
	case askOnAmbiguous:
		b.OnAmbiguous = v.(string)
	case askForwardKey:
		b.ForwardKey = v.(string)
	case askCacheKey:
		key := v.(keyLiteral)
		b.CacheKey, b.NoCache = key.text, key.answer == keyOff
	case askBreakerScope:
		b.BreakerScope = v.(string)
	case askRateLimitKey:
		b.RateLimitKey = v.(string)
	case askCallTimeout:
		b.CallTimeout = v.(time.Duration)
	case askTotalTimeout:
		b.TotalTimeout = v.(time.Duration)
	case askMaxCallTime:
		b.MaxCallTime = v.(time.Duration)
	case askMaxRetries:
		b.MaxRetries = v.(int)
	case askInvalidates:
		b.InvalidatesStated = true
		for _, item := range v.([]invalidation) {
			b.Invalidates = append(b.Invalidates, Invalidates{Tool: item.tool, Args: item.fixed})
		}
	case askValidate:
		b.ValidateResults = v.(string)
	case askBaseDelay:
		b.Backoff.Base = v.(time.Duration)
	case askMaxDelay:
		b.Backoff.Max = v.(time.Duration)
	case askJitter:
		b.Backoff.Jitter = v.(float64)
	case askBackoff:
		b.Backoff.Kind = v.(string)
	case askFailureThreshold:
		b.Breaker.Threshold = v.(int)
	case askCooldown:
		b.Breaker.Cooldown = v.(time.Duration)
	case askHalfOpenProbes:
		b.Breaker.Probes = v.(int)
	case askLimit:
		b.Limit, b.LimitOn = v.(*RateLimit), name
	}
}

// undecided are the decisions where no rule speaks, not even the built-in policy: what is usual, and nothing repeated.
func undecided() Before {
	return Before{
		OnConflict: "replay", BreakerScope: "server", ValidateResults: "off",
		CallTimeout: 30 * time.Second, MaxCallTime: 10 * time.Minute,
		Backoff: Backoff{Base: 500 * time.Millisecond, Max: 20 * time.Second, Jitter: 0.2, Kind: "exponential"},
		Breaker: Breaker{Threshold: 5, Cooldown: 30 * time.Second, Probes: 1},
	}
}
