package policy

import "time"

// Before is everything that is decided before the first attempt. The fields named …Rule hold the name of the rule that decided.
type Before struct {
	Effects     string
	EffectsRule string

	Deny     string // why the call is refused; "" = it is not
	DenyRule string

	Key         []byte // JSON text of the key that a rule decided (string, list or map); nil = no rule's opinion
	NoDedup     bool   // a rule said false: no deduplication at all
	KeyRule     string
	KeyRequired bool   // the key erred or was null, and the rule says required: the call is refused with KeyError
	KeyError    string // why the key could not be computed

	IdempotencyTTL    time.Duration
	IdempotencyStated bool   // whether any rule but the built-in ones stated idempotency_ttl
	OnConflict        string // "replay" or "reject"
	OnAmbiguous       string // "refuse", "run", or "" = by the kind of key
	ForwardKey        string // "_meta.NAME", "arguments.NAME" or ""

	CacheKey     []byte // JSON text of the key that a rule decided; nil = tool and arguments
	NoCache      bool   // cache_key erred: neither read nor fill the cache
	CacheMayFill bool   // some rule could give this tool a cache TTL: worth looking into the cache
	CacheStated  bool   // a TTL other than a literal 0 is stated for this tool by a rule: replays and invalidation treat it as cached

	BreakerScope string // key of the breaker; the server's own is "server"; "" = no breaker
	RateLimitKey string // "" = one bucket per tool

	CallTimeout  time.Duration // one attempt without an answer or progress
	TotalTimeout time.Duration // the whole call; computed where not stated (DESIGN: 55 s, or the sum of attempts and longest waits)
	MaxCallTime  time.Duration // absolute, progress or not
	MaxRetries   int

	Invalidates       []Invalidates // what the call makes stale
	InvalidatesStated bool          // false: the built-in rule holds (a tool that may write makes its server's results stale)
	InvalidatesAll    bool          // the expression erred: the server's whole cache

	Backoff Backoff
	Breaker Breaker
	Limit   *RateLimit // nil = no limit
	LimitOn string     // which setting the limit comes from: two tools under one glob have a bucket each

	ValidateResults string // off, warn, enforce

	keyBuffer   []byte // what Key and CacheKey are parts of; reused
	staleBuffer []Invalidates
}

// Backoff says how long to wait before the n-th retry.
type Backoff struct {
	Base, Max time.Duration
	Jitter    float64 // 0.2 = ±20 %
	Kind      string  // exponential, linear, constant
}

// Breaker are the parameters of a circuit breaker.
type Breaker struct {
	Threshold int           // consecutive failures that open it
	Cooldown  time.Duration // how long it stays open
	Probes    int           // trial calls while half-open
}

// RateLimit is a token bucket; see schema.RateLimit.
type RateLimit struct {
	Calls   int
	Per     time.Duration
	Burst   int
	MaxWait time.Duration
}

// Invalidates names cached results that become stale.
type Invalidates struct {
	Tool string // glob
	Args []byte // JSON object: only results of calls with exactly these arguments; nil = whatever their arguments
}

// Retry is what is decided after a failed attempt.
type Retry struct {
	Retry       bool
	Rule        string        // that decided Retry
	Unsafe      bool          // an unsafe tool may be re-sent though its delivery is unknown
	Delay       time.Duration // replaces the computed back-off if DelayStated
	DelayStated bool
}
