package policy

// IDs of the findings of [Lint]. They are stable: a file may silence one by its ID, and a catalogue explains each.
// None of them is a [schema.Error]: what Lint finds works, and is probably not what was meant (a warning) or is worth
// knowing (a note).
const (
	// Conditions and rules that say nothing.

	LintNever    = "condition-never"  // warning: a condition, or a part of one, holds for no call; a note for a plain when: false
	LintAlways   = "condition-always" // warning: a condition, or a part of one, holds for every call
	LintShadowed = "rule-shadowed"    // warning: rules above decide, whenever this one holds, all that it states (or one setting of it)
	LintCost     = "cel-cost"         // warning: an expression may exceed the limit of cost, and then fails

	// Retry.

	LintRetryUnsafe      = "retry-unsafe"      // warning: a tool with unsafe effects is sent again though it may have been executed
	LintRetryUnsafeIdle  = "retry-unsafe-idle" // warning: retry_unsafe: true, but no rule says retry there, so it does nothing
	LintRetryAnswered    = "retry-answered"    // warning: a tool with unsafe effects is sent again after the server answered with an error
	LintRetryUnannotated = "retry-unannotated" // note: tools without annotations are sent again after a timeout; a warning where a tool's name says that it writes
	LintRetryHopeless    = "retry-hopeless"    // warning: errors are retried that a repeat cannot mend: 401, 403, invalid parameters, no such method
	LintNoJitter         = "retry-no-jitter"   // warning: retries without jitter: all clients come back at the same moment

	// Time.

	LintAboveBound = "above-bound"     // warning: a duration longer than what bounds it: an expression's value, or max_wait above total_timeout
	LintWorstCase  = "worst-case-time" // warning: of the attempts fewer than half, or no second one, fit into total_timeout; a note if some do not fit
	LintOutlasts   = "outlasts-client" // note: without a total_timeout, a call may take longer than clients wait

	// Cache.

	LintCacheWrites      = "cache-writes"      // warning: results are cached of a tool that does more than read, or of every tool
	LintCacheUnannotated = "cache-unannotated" // warning for cache.default_ttl, else a note: results are cached of tools of which nobody has said that they only read
	LintStaleLong        = "stale-too-long"    // warning: stale_if_error above 24 hours

	// Keys: idempotency_key and cache_key.

	LintKeyConstant = "key-constant" // warning: the key is the same for every call
	LintKeyVolatile = "key-volatile" // warning: the key holds a time, a nonce or an id that is new for each call, so no two are equal; a note where such an id is all of the key
	LintKeyConcat   = "key-concat"   // warning: the key joins several values to one string, so different calls may have the same; a list keeps them apart

	// Breaker and rate limit.

	LintBreakerOneCall = "breaker-in-one-call"     // warning: the attempts of one call open the breaker before they are through; a note if only the last is lost
	LintBreakerAnswers = "breaker-counts-answers"  // warning: every isError result counts as a failure of the server
	LintScopeUnbounded = "breaker-scope-unbounded" // warning: breaker_scope takes any value of an argument; a note where the argument may well have few
	LintLimitUnbounded = "rate-key-unbounded"      // the same of rate_limit_key

	// With a snapshot of the server's tools.

	LintNoTool       = "no-such-tool"     // warning: a glob or a tool's name matches no tool of the server
	LintNoArgument   = "no-such-argument" // warning: an argument that no tool under the rule has
	LintArgUnguarded = "args-unguarded"   // warning: an argument that a call may leave out is read without has() or args.?name; a note in deny, which then refuses the call
	LintDeadRule     = "rule-no-tool"     // warning: a condition that holds for none of the server's tools
)
