package policytest

import (
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// behind says which decisions an expectation depends on.
var behind = map[string][]schema.Decision{
	"status":          {schema.Deny, schema.Retry, schema.RetryUnsafe, schema.StaleIfError},
	"attempts":        {schema.Retry, schema.RetryUnsafe, schema.RetryDelay, schema.MaxRetries},
	"executions":      {schema.Retry, schema.RetryUnsafe, schema.IdempotencyKey},
	"delays":          {schema.RetryDelay, schema.Retry},
	"took":            {schema.RetryDelay, schema.CallTimeout, schema.TotalTimeout},
	"cached":          {schema.CacheTTL, schema.CacheKey, schema.Invalidates},
	"cache_ttl":       {schema.CacheTTL},
	"deduplicated":    {schema.IdempotencyKey, schema.IdempotencyTTL, schema.OnConflict, schema.OnAmbiguous},
	"idempotency_key": {schema.IdempotencyKey},
	"breaker":         {schema.BreakerScope, schema.BreakerFailure},
	"denied":          {schema.Deny},
	"error":           {schema.Retry, schema.RetryUnsafe},
	"result":          {schema.CacheTTL, schema.StaleIfError},
}

// because returns the decisions behind what an expectation is about, of the last time that each was taken.
func (c *Call) because(key string) []Decision {
	group, rest, _ := strings.Cut(key, ".")
	wanted := behind[group]
	if group == "rules" {
		wanted = []schema.Decision{schema.Decision(rest)}
	}
	var why []Decision
	for _, d := range wanted {
		last := c.last(d)
		if last == nil {
			continue
		}
		if d == schema.RetryUnsafe || d == schema.RetryDelay {
			if retry := c.last(schema.Retry); retry != nil && retry.Attempt > last.Attempt {
				continue // it was asked after an earlier attempt
			}
		}
		why = append(why, *last)
	}
	return why
}

// last is the last time that a decision was taken, or nil.
func (c *Call) last(d schema.Decision) *Decision {
	for i := len(c.Decisions) - 1; i >= 0; i-- {
		if c.Decisions[i].Decision == d {
			return &c.Decisions[i]
		}
	}
	return nil
}
