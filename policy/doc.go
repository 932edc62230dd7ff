// Package policy compiles the rules of a server and decides, for each call, what they say.
//
//	schema.Server ─ Compile ─► Policy ─ For(tool) ─► Plan ─┬ Before(call)                      before the first attempt
//	                (all CEL errors, positioned)           ├ AfterAttempt(call, failure, …)    retry? unsafe too? how long to wait?
//	                                                       ├ BreakerFailure(call, failure, …)  after every attempt
//	                                                       ├ CacheTTL(call, result, …)         after success
//	                                                       └ StaleIfError(call, failure)       after the last failure
//
// For each decision the first rule from the top whose tool glob and when hold, and which states that decision, decides it.
// (deny is the exception: the first non-empty answer of any rule.) What depends on the tool alone, its name and its
// hints, is settled once, in the [Plan]: a rule whose when is false whatever the call is not asked again, and a decision that comes to
// a literal costs nothing per call. So a call costs what the rules cost that can match it, however many there are.
//
// Each phase has a CEL environment of its own, so a variable that is not known yet is a compile error, not a silent false.
// tool, error, client and server are typed; args, meta and result are dynamic and decoded lazily from the raw JSON, and
// integers stay integers. A rule's when is compiled in the earliest phase of the decisions that it states.
//
// An expression that fails at run time never fails the call: each decision falls to its careful side, and the failure is
// appended to [Call.Errors] for the caller to log and count. Every expression has a cost limit.
//
// A [Policy] and its [Plan]s are immutable and safe for concurrent use; a [Call] is not.
package policy
