package engine

import (
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// Observer is told what log records leave out, for policy tests and explanations. Its functions are called during Step, may
// not call the engine, and each may be nil. request is the raw JSON id of the client's call.
type Observer struct {
	// Decided is told of each decision about a call, as it is taken; d is valid until it returns.
	Decided func(request string, d policy.Decided)
	// Keyed is told of the explicit idempotency key of a call, as JSON text.
	Keyed func(request string, key []byte)
	// Sent is told which of the ToServer actions is an attempt of which call.
	Sent func(request string, tag int64)
}

// observed lets the observer hear of an operation that begins.
func (e *Engine) observed(op *operation) {
	if o := e.observer; o != nil && o.Decided != nil {
		request := string(op.first.id)
		op.facts.Observe = func(d policy.Decided) { o.Decided(request, d) }
	}
}

func (e *Engine) observeKey(op *operation, key []byte) {
	if o := e.observer; o != nil && o.Keyed != nil {
		o.Keyed(string(op.first.id), key)
	}
}

func (e *Engine) observeSent(op *operation, a *attempt) {
	if o := e.observer; o != nil && o.Sent != nil {
		o.Sent(string(op.first.id), a.id)
	}
}

// MetaError is the key in the _meta of a result under which errors of ours stand, if the config has them told by results:
// {code, data}, as in a JSON-RPC error.
const MetaError = metaError

// LoggedID is an id of the client, raw, as the RequestID of a [Record] shows it.
func LoggedID(id []byte) string { return loggedID(id) }

// BatchPatience is how long the answers of a batch wait for each other.
const BatchPatience = batchPatience

// WrongBatch says why a batch of the client, which is JSON, is refused as a whole; "" = it is not.
func WrongBatch(frame []byte) string { return wrongBatch(frame) }

// WaitRange is between what the computed wait before a retry lies, from 1; the seed of the engine decides where.
func WaitRange(b policy.Backoff, retry int) (shortest, longest time.Duration) {
	return backoff(b, retry, 0), backoff(b, retry, 1)
}
