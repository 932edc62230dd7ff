package policy

import "time"

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
