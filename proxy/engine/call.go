package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
	"golang.org/x/time/rate"
)

// call is one tools/call of the client: somebody who waits for an answer. It gets exactly one, or none once cancelled.
type call struct {
	id         []byte // raw token, as the client wrote it
	key        string // of the id among the open calls
	earlier    *call  // that is open under the same id
	token      []byte // raw progress token; nil = the client wants no progress
	progress   float64
	progressed bool // whether any progress was passed on
	admitted   time.Time
	answered   bool       // or cancelled: it is over
	seq        uint64     // order of admission
	own        *operation // what policy decided of it
	op         *operation // what it waits for: its own, or the one it joined
	deadline   timer      // of a call that joined; that of the leader is the operation's
}

// operation is what identical calls share: the attempts to get one result. It outlives its calls as long as an attempt may
// still be answered and that answer is wanted.
type operation struct {
	first call
	calls []*call // who waits, in the order they came

	// The request, kept as it came, for it may be sent again. All spans lie in frame.
	frame    []byte
	buffer   []byte // in which the frame lies, if it is ours
	id       jsonrpc.Span
	params   jsonrpc.Span
	args     jsonrpc.Span
	meta     jsonrpc.Span
	token    jsonrpc.Span // value of _meta.progressToken
	keyGiven bool         // there is an idempotency key among the arguments
	special  bool         // a task, or the continuation of one that needed input: never joined, kept or cached
	tool     *tool
	plan     *policy.Plan
	facts    *policy.Call
	decided  *policy.Before
	admitted time.Time
	deadline time.Time // of the leader: no attempt, wait or restart for it beyond that
	limit    time.Time // nothing at all beyond it, progress or not

	keyed    keying
	key      digest // names the operation among those in flight and kept: if explicit; else see keyOfOperation
	argsKey  digest // of the arguments alone: if the key is explicit; else see argsOf
	cacheKey digest // if the policy may cache the result

	// Of an operation in flight that is keyed.
	found bool       // a repeat finds it
	print uint64     // fingerprint of its tool and arguments, if implicit
	alike *operation // the next one of the same fingerprint

	state     opState
	timer     timer                     // of the wait for the next attempt, a rate token, or the server
	goes      func(*Engine, *operation) // what comes after the wait
	permit    permit                    // of the breaker, until the attempt is sent
	rate      *rate.Reservation         // of the limiter, until the attempt is sent
	limiter   *limiter                  // in whose line it stands; nil = in none
	placed    bool                      // it holds a place at the server, until the attempt is sent
	running   *attempt
	attempt1  attempt
	open      []*attempt // sent, given up, and still listened to
	attempts  int        // made so far, re-sends of what was never delivered not counted
	resends   int        // of what was never delivered
	committed bool       // the client was asked something: never sent again
	ran       bool       // an attempt was answered as by a server that had begun to do it
	lost      int        // attempts that may have taken effect and can no longer be answered
	settling  outcome    // of the attempt that is being settled
	last      outcome    // of the last attempt that was settled
	endedBy   string

	cache, cacheRule string // for the log
	dedup            string
	rule             string
	free             bool // it lies ready for reuse
}

// keying says what names an operation.
type keying uint8

const (
	unkeyed  keying = iota // nothing: it is never joined and its result never kept
	implicit               // its tool and arguments
	explicit               // a key of the client or of a rule
)

// opState is where an operation stands.
type opState uint8

const (
	idle    opState = iota // it has not begun, and may never: the call has joined another, or had its answer at once
	waiting                // for its next attempt: back-off, a rate token, or the server to be up
	sending                // an attempt is at the server
	ended                  // its calls are answered (or gone); it may still be listened for
)

// attempt is one send of an operation to the server.
type attempt struct {
	id     int64 // our id of the request, and its progress token
	op     *operation
	number int
	gen    uint64 // life of the server it was sent to
	sent   time.Time
	epoch  uint64 // of the cache, when it was sent
	permit permit
	placed bool // it takes up a place at the server
	timer  timer
	idle   time.Time // call_timeout ends it then

	cancelled  bool      // the server was told that nobody waits for it
	overdue    time.Time // it has timed out then, and is being taken back if it was not written; zero = not
	progressed bool      // it may go on beyond total_timeout
	questions  int       // to the client, open: its timer stands still
	asked      time.Time // since when
}

// cacheable reports whether the result may be cached at all.
func (op *operation) cacheable() bool {
	return op.decided.CacheMayFill && !op.decided.NoCache && !op.special
}

// effects is what a second execution would do, given how sure we are of the first: a tool that is not known yet, or one
// without annotations that is called with a key, counts as unsafe while nobody knows whether it ran; a tool whose server
// honours the key that is forwarded to it may run as often as you like.
func (op *operation) effects(delivery string) string {
	effects := op.known()
	switch {
	case op.forwardsKey():
		if effects == policy.EffectsUnsafe || effects == policy.EffectsUnannotated {
			return policy.EffectsIdempotent
		}
	case effects == policy.EffectsUnannotated && delivery == deliveryUnknown && (op.keyed == explicit || !op.tool.known):
		return policy.EffectsUnsafe
	}
	return effects
}

// known is the effects of the operation as far as they are known by now: the tools may have been listed since the call was
// admitted.
func (op *operation) known() string {
	if op.decided.EffectsRule == "" && !op.special {
		return op.tool.Effects
	}
	return op.decided.Effects
}

func (op *operation) forwardsKey() bool { return op.decided.ForwardKey != "" && op.keyed == explicit }

// wantsLate reports whether an answer that comes after we gave up is wanted so much that the attempt is not cancelled at
// the server, and that a repeat waits for it instead of running again.
func (op *operation) wantsLate() bool {
	return op.keyed != unkeyed && !op.forwardsKey() &&
		(op.keyed == explicit || op.effects(deliveryUnknown) == policy.EffectsUnsafe ||
			op.known() == policy.EffectsUnannotated && op.decided.IdempotencyStated && op.decided.IdempotencyTTL > 0)
}

// without returns the calls without one of them.
func without(calls []*call, c *call) []*call {
	for i, other := range calls {
		if other == c {
			return append(calls[:i], calls[i+1:]...)
		}
	}
	return calls
}

// forget takes an attempt out of those that are listened to.
func (op *operation) forget(a *attempt) {
	for i, other := range op.open {
		if other == a {
			op.open = append(op.open[:i], op.open[i+1:]...)
			return
		}
	}
}
