package policy

import (
	"slices"

	"github.com/bentabol/mcp-retry/schema"
)

// form is the kind of answer that a decision takes.
type form uint8

const (
	formWord     form = iota // one of some words
	formPath                 // "_meta.NAME", "arguments.NAME" or ""
	formText                 // a string
	formKey                  // string, list, map or number; null; false where dedup allows it
	formDuration             // a duration, or a number of seconds
	formCount                // an int
	formBool                 // a bool
	formGlobs                // a list of globs or of {tool, args}
	formNumber               // a float; only a literal
	formLimit                // a schema.RateLimit; only a literal
)

// question is what policy knows of a decision.
type question struct {
	decision schema.Decision
	phase    Phase
	form     form
	words    []string // of formWord
	constant bool     // a parameter of a machine: only a literal, and never under a when
}

// Indices into questions.
const (
	askEffects = iota
	askDeny
	askIdempotencyKey
	askIdempotencyTTL
	askOnConflict
	askOnAmbiguous
	askForwardKey
	askCacheKey
	askBreakerScope
	askRateLimitKey
	askCallTimeout
	askTotalTimeout
	askMaxCallTime
	askMaxRetries
	askInvalidates
	askValidate
	askRetry
	askRetryUnsafe
	askRetryDelay
	askBreakerFailure
	askCacheTTL
	askStaleIfError
	askBaseDelay
	askMaxDelay
	askJitter
	askBackoff
	askFailureThreshold
	askCooldown
	askHalfOpenProbes
	askLimit
)

var questions = [...]question{
	askEffects:        {schema.Effects, BeforeCall, formWord, effectsWords, false},
	askDeny:           {schema.Deny, BeforeCall, formText, nil, false},
	askIdempotencyKey: {schema.IdempotencyKey, BeforeCall, formKey, nil, false},
	askIdempotencyTTL: {schema.IdempotencyTTL, BeforeCall, formDuration, nil, false},
	askOnConflict:     {schema.OnConflict, BeforeCall, formWord, []string{"replay", "reject"}, false},
	askOnAmbiguous:    {schema.OnAmbiguous, BeforeCall, formWord, []string{"refuse", "run"}, false},
	askForwardKey:     {schema.ForwardKey, BeforeCall, formPath, nil, false},
	askCacheKey:       {schema.CacheKey, BeforeCall, formKey, nil, false},
	askBreakerScope:   {schema.BreakerScope, BeforeCall, formText, nil, false},
	askRateLimitKey:   {schema.RateLimitKey, BeforeCall, formText, nil, false},
	askCallTimeout:    {schema.CallTimeout, BeforeCall, formDuration, nil, false},
	askTotalTimeout:   {schema.TotalTimeout, BeforeCall, formDuration, nil, false},
	askMaxCallTime:    {schema.MaxCallTime, BeforeCall, formDuration, nil, false},
	askMaxRetries:     {schema.MaxRetries, BeforeCall, formCount, nil, false},
	askInvalidates:    {schema.Invalidates, BeforeCall, formGlobs, nil, false},
	askValidate:       {schema.Validate, BeforeCall, formWord, []string{"off", "warn", "enforce"}, false},
	askRetry:          {schema.Retry, AfterFailure, formBool, nil, false},
	askRetryUnsafe:    {schema.RetryUnsafe, AfterFailure, formBool, nil, false},
	askRetryDelay:     {schema.RetryDelay, AfterFailure, formDuration, nil, false},
	askBreakerFailure: {schema.BreakerFailure, AfterAttempt, formBool, nil, false},
	askCacheTTL:       {schema.CacheTTL, AfterSuccess, formDuration, nil, false},
	askStaleIfError:   {schema.StaleIfError, AfterLastFailure, formDuration, nil, false},

	askBaseDelay:        {schema.BaseDelay, BeforeCall, formDuration, nil, true},
	askMaxDelay:         {schema.MaxDelay, BeforeCall, formDuration, nil, true},
	askJitter:           {schema.Jitter, BeforeCall, formNumber, nil, true},
	askBackoff:          {schema.Backoff, BeforeCall, formWord, []string{"exponential", "linear", "constant"}, true},
	askFailureThreshold: {schema.FailureThreshold, BeforeCall, formCount, nil, true},
	askCooldown:         {schema.Cooldown, BeforeCall, formDuration, nil, true},
	askHalfOpenProbes:   {schema.HalfOpenProbes, BeforeCall, formCount, nil, true},
	askLimit:            {schema.Limit, BeforeCall, formLimit, nil, true},
}

// questionOf returns the index of the decision's question, or -1.
func questionOf(d schema.Decision) int {
	return slices.IndexFunc(questions[:], func(q question) bool { return q.decision == d })
}
