package schema

import "time"

// Defaults of settings that a file does not state. Those that are decisions stand last but one in the rules of every server,
// in a rule named "defaults", so that what explain prints is what decides.
const (
	DefaultCallTimeout = 30 * time.Second  // one attempt without an answer or progress
	DefaultMaxCallTime = 600 * time.Second // one call, progress or not

	DefaultMaxRetries = 3
	DefaultBaseDelay  = 500 * time.Millisecond // before the first retry
	DefaultMaxDelay   = 20 * time.Second       // longest computed wait
	DefaultJitter     = 0.2                    // ±20 %
	DefaultBackoff    = "exponential"

	DefaultFailureThreshold = 5 // failures in a row that open a breaker
	DefaultCooldown         = 30 * time.Second
	DefaultHalfOpenProbes   = 1

	// The wrap command and files in mcp-shield's spelling retry less often and from a longer wait, as mcp-shield does.
	WrapMaxRetries = 2
	WrapBaseDelay  = time.Second

	DefaultStartupTimeout  = 60 * time.Second // spawn to initialize answered
	DefaultRestart         = "on_demand"
	DefaultMaxMessageBytes = 64 << 20
	DefaultErrors          = "protocol"
	DefaultSeparator       = "__" // between the name of a server and that of its tool

	DefaultCacheMaxEntries = 10_000
	DefaultCacheMaxBytes   = 64 << 20

	// A retry budget is off unless stated; these complete one that is stated in part.
	DefaultBudgetRatio     = 0.2
	DefaultBudgetPerSecond = 0.5
	DefaultBudgetBurst     = 20
)

// jitterTrue is what jitter: true means: ±50 %.
const jitterTrue = 0.5

// defaultRule is the rule that states the numeric defaults, with the retries of the file's dialect.
func defaultRule(maxRetries int64, baseDelay time.Duration) Rule {
	literal := func(d Decision, v any) Setting { return Setting{Decision: d, Literal: v} }
	return Rule{Name: "defaults", Origin: "built-in", Decides: []Setting{
		literal(CallTimeout, DefaultCallTimeout),
		literal(MaxCallTime, DefaultMaxCallTime),
		literal(MaxRetries, maxRetries),
		literal(BaseDelay, baseDelay),
		literal(MaxDelay, DefaultMaxDelay),
		literal(Jitter, DefaultJitter),
		literal(Backoff, DefaultBackoff),
		literal(FailureThreshold, int64(DefaultFailureThreshold)),
		literal(Cooldown, DefaultCooldown),
		literal(HalfOpenProbes, int64(DefaultHalfOpenProbes)),
		literal(Validate, "off"),
	}}
}

// newServer is a server for which a file states nothing.
func newServer(name string) *Server {
	return &Server{
		Name:             name,
		StartupTimeout:   DefaultStartupTimeout,
		Restart:          DefaultRestart,
		MaxMessageBytes:  DefaultMaxMessageBytes,
		Errors:           DefaultErrors,
		TrustAnnotations: true,
		CacheLimit:       CacheLimit{MaxEntries: DefaultCacheMaxEntries, MaxBytes: DefaultCacheMaxBytes},
	}
}
