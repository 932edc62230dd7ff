package schema

import "time"

// Config is a config file in normal form.
type Config struct {
	File    string    // as the user named it; "" if there is no file (mcp-retry wrap)
	Servers []*Server // in the order of the file

	// Separator stands between the name of a server and that of its tool or prompt where all servers are behind one endpoint.
	// "" = [DefaultSeparator].
	Separator string

	secrets []Pos // where it holds what nobody should read: see Mask
}

// Server returns the server of that name, or nil.
func (c *Config) Server(name string) *Server {
	for _, s := range c.Servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Server is one entry of servers: how to start it, and the rules that decide what happens to its calls.
type Server struct {
	Name string
	Pos  Pos // of its name in the file

	Command string            // program to start; never given to a shell
	Args    []string          // its arguments, exactly
	Env     map[string]string // added to our own environment, which is inherited
	Cwd     string            // "" = ours

	StartupTimeout   time.Duration // spawn to initialize answered
	Restart          string        // "on_demand" or "never"
	MaxMessageBytes  int64         // largest frame in either direction
	Errors           string        // how errors of our own are reported: "protocol" or "result" (isError)
	TrustAnnotations bool          // whether hints of the server that loosen count
	MarkResults      bool          // whether a result that was not just fetched says so in its _meta
	MaxConcurrency   int           // calls that may be at the server at a time; 0 = any number

	Budget     *Budget // nil = no retry budget
	CacheLimit CacheLimit
	ToolFilter ToolFilter

	Rules []Rule // all of them, the first that decides wins; the built-in policy stands last

	written written // how it is started, before variables were replaced: what may be shown
}

// Budget is a token bucket that bounds the retries of a server: a first attempt that succeeds adds Ratio, each second
// adds PerSecond, a retry costs 1 and one after an unknown delivery 2; it never holds more than Burst. (Finagle's RetryBudget.)
type Budget struct {
	Ratio     float64
	PerSecond float64
	Burst     float64
}

// CacheLimit bounds what cached and kept results may take together; the oldest go first.
type CacheLimit struct {
	MaxEntries int
	MaxBytes   int64
}

// ToolFilter says which tools exist for the client. Deny wins over Allow.
type ToolFilter struct {
	Allow []string // globs; nil = all, empty but not nil = none
	Deny  []string // globs

	AllowPos, DenyPos []Pos // where each glob stands
}

// Rule is one rule in normal form.
type Rule struct {
	Name    string    // unique within the server: the name given, or made of the place ("tools.search_*.retry")
	Origin  string    // path of the place it was written at: "servers.github.policy.0", "defaults.cache", "built-in"
	Pos     Pos       // of its first line; zero for the built-in policy
	Tools   string    // glob or exact name that the tool must match; "" = every tool
	ToolsAt Pos       // of Tools in the file; zero where that is ""
	When    *Expr     // nil = always
	Decides []Setting // at most one per decision, in the order of the file; none of a rule that has but a condition
}

// Setting is what a rule states for one decision.
type Setting struct {
	Decision Decision
	Pos      Pos   // of the key
	Expr     *Expr // a CEL expression, or nil: then Literal holds
	Literal  any   // bool, int64, string, []string, time.Duration, float64, RateLimit, []Invalidation or nil (null): see [Decision]
	Required bool  // beside idempotency_key: a call whose key errs is refused
}

// RateLimit is a token bucket: Calls per Per, at most Burst at once; an attempt waits up to MaxWait for its token.
type RateLimit struct {
	Calls   int
	Per     time.Duration
	Burst   int           // 0 = Calls
	MaxWait time.Duration // 0 = refuse at once
}

// Invalidation names cached results to drop: those of tools that match the glob Tool.
type Invalidation struct {
	Pos  Pos // of Tool
	Tool string
	Args *Expr // nil = whatever their arguments; else a CEL map: only results of calls with these arguments
}

// Decision is one question that policy answers for a call. Its constants' comments name the type of a literal.
type Decision string

const (
	Effects        Decision = "effects"          // string: none, idempotent, unsafe, unannotated
	Deny           Decision = "deny"             // string: why, "" = not denied (as a literal only "" or via CEL)
	IdempotencyKey Decision = "idempotency_key"  // nil (null), false, or an expression
	IdempotencyTTL Decision = "idempotency_ttl"  // time.Duration
	OnConflict     Decision = "on_conflict"      // string: replay, reject
	OnAmbiguous    Decision = "on_ambiguous"     // string: refuse, run
	ForwardKey     Decision = "forward_key"      // string: "_meta.NAME" or "arguments.NAME"
	CacheKey       Decision = "cache_key"        // only an expression
	BreakerScope   Decision = "breaker_scope"    // only an expression ("" as a literal = no breaker)
	RateLimitKey   Decision = "rate_limit_key"   // only an expression
	CallTimeout    Decision = "call_timeout"     // time.Duration
	TotalTimeout   Decision = "total_timeout"    // time.Duration
	MaxCallTime    Decision = "max_call_time"    // time.Duration
	MaxRetries     Decision = "max_retries"      // int64
	Retry          Decision = "retry"            // bool
	RetryUnsafe    Decision = "retry_unsafe"     // bool
	RetryDelay     Decision = "retry_delay"      // time.Duration
	BreakerFailure Decision = "breaker_failure"  // bool
	CacheTTL       Decision = "cache_ttl"        // time.Duration
	StaleIfError   Decision = "stale_if_error"   // time.Duration
	Invalidates    Decision = "invalidates"      // []Invalidation
	Validate       Decision = "validate_results" // string: off, warn, enforce

	// Parameters of the named machines: always literals, and never under a when.
	BaseDelay        Decision = "retry.base_delay"                  // time.Duration
	MaxDelay         Decision = "retry.max_delay"                   // time.Duration
	Jitter           Decision = "retry.jitter"                      // float64: 0.2 = ±20 %
	Backoff          Decision = "retry.backoff"                     // string: exponential, linear, constant
	FailureThreshold Decision = "circuit_breaker.failure_threshold" // int64
	Cooldown         Decision = "circuit_breaker.cooldown_seconds"  // time.Duration
	HalfOpenProbes   Decision = "circuit_breaker.half_open_probes"  // int64
	Limit            Decision = "rate_limit"                        // RateLimit
)
