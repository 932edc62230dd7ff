package policy

import "time"

// Words for the effects of a tool: what a second execution would do.
const (
	EffectsNone        = "none"        // it only reads
	EffectsIdempotent  = "idempotent"  // the second execution changes nothing more
	EffectsUnsafe      = "unsafe"      // annotated, but neither
	EffectsUnannotated = "unannotated" // no annotations seen
)

// Tool is what expressions see as tool.
type Tool struct {
	Name, Title string
	Effects     string // what expressions see; Before sets it: as decided by a rule, else as annotated
	Annotated   bool
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	OpenWorld   bool
}

// Peer is what expressions see as client and server. For the server, Name is its name in the config.
type Peer struct {
	Name, Title, Version, Protocol string
}

// Failure is what expressions see as error. The zero value stands for success.
type Failure struct {
	Kind       string        // timeout exit spawn transport rpc tool malformed overloaded cancelled; "" after success
	Code       int64         // of a JSON-RPC error; 0 if none
	Message    string        // of a JSON-RPC error, or our own words
	Data       []byte        // raw JSON of error.data; nil if none. error.data is null then
	Text       string        // all text of an isError result, blocks joined by newlines; else Message
	Delivery   string        // not_sent rejected unknown answered
	Transient  bool          // transport failures and JSON-RPC −32603, −32000…−32003
	RetryAfter time.Duration // the server's hint; 0 if it gave none
}

// Call is one call as expressions see it. The caller fills the exported fields; decoded values and the answers of when are
// kept in it, so that a value is decoded once and a condition is evaluated once per phase. Reset makes it fit for reuse.
type Call struct {
	Tool   Tool
	Server *Peer
	Client *Peer
	Args   []byte    // raw JSON of params.arguments, an object; nil = none (expressions see an empty map)
	Meta   []byte    // raw JSON of params._meta, an object; nil = none
	Now    time.Time // wall time of admission

	// Errors are the run-time failures of expressions so far; the caller takes them out.
	Errors []EvalError

	// Observe, if it is not nil, is told of each decision as it is taken. It is for explanations and costs time.
	Observe func(Decided)

	memo memo
}

// EvalError is an expression that failed at run time: the decision fell to its careful side.
type EvalError struct {
	Decision string // "retry", …; "when" for a condition
	Rule     string
	Message  string // positioned in the config where possible
}
