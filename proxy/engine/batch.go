package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// batch is several messages of the client in one frame, whose requests are answered in one frame too (JSON-RPC 2.0, section 6; MCP
// 2025-03-26: "Implementations [...] MUST support receiving JSON-RPC batches"; no revision before or since has them). An answer does
// not wait for the others for longer than batchPatience, or than its call may take: what is there then goes out, and the rest
// alone, as it comes.
type batch struct {
	open      int        // requests that have no answer yet, and one more while the messages are taken in
	responses []response // that wait for those
	size      int64      // of the frame that they will make
	until     time.Time  // then they wait no longer
	timer     timer      // of that
}

// batchPatience is how long the answers of a batch wait for each other.
const batchPatience = 5 * time.Second

// maxBatch is how many messages there may be in one frame. What comes of them, an error for each at the worst, is made at once, and is many
// times larger than the least of them.
const maxBatch = 10_000

// response is an answer that waits until its batch is complete.
type response struct {
	key   string // of the request's id
	frame []byte
}

// takesBatches reports whether the client and the server have agreed on the revision that has batches.
func (e *Engine) takesBatches() bool { return e.peer.Protocol == "2025-03-26" }

// clientBatch takes in the messages of a batch, each as if it had come alone. Whether the server would take batches does not matter.
func (e *Engine) clientBatch(frame []byte) {
	if e.batch != nil {
		e.refuseFrame(frame, &jsonrpc.ParseError{Code: codeInvalid, Message: "invalid message: a batch within a batch"})
		return
	}
	if wrong := wrongBatch(frame); wrong != "" {
		e.refuseFrame(frame, &jsonrpc.ParseError{Code: codeInvalid, Message: "invalid message: " + wrong})
		return
	}
	b := &batch{open: 1, until: e.now.Add(batchPatience)}
	b.timer.fire = func(e *Engine) { e.breakUp(b) }
	e.batch = b
	for span := range jsonrpc.Elements(frame, whole(frame)) {
		e.fromClient(span.Of(frame), false)
	}
	e.batch = nil
	if e.release(b); b.open > 0 {
		e.timers.arm(&b.timer, b.until)
	}
}

// wrongBatch says why a batch is refused as a whole; "" = it is not.
func wrongBatch(frame []byte) string {
	elements := 0
	for range jsonrpc.Elements(frame, whole(frame)) {
		if elements++; elements > maxBatch {
			return fmt.Sprintf("a batch of more than %d messages; send fewer at a time", maxBatch)
		}
	}
	if elements == 0 {
		return "a batch without a message"
	}
	return ""
}

// breakUp sends the responses of a batch that have come by now. The others will be frames of their own.
func (e *Engine) breakUp(b *batch) {
	maps.DeleteFunc(e.batches, func(_ string, other *batch) bool { return other == b })
	e.sendBatch(b)
}

// joinBatch counts a message among those of the batch that is being taken in. It reports whether the message may be one of a batch.
func (e *Engine) joinBatch(m *jsonrpc.Message) bool {
	if m.Kind != jsonrpc.Request {
		return true
	}
	id := m.ID.Of(m.Frame)
	if string(m.Method) == "initialize" {
		e.refuseFrame(m.Frame, &jsonrpc.ParseError{Code: codeInvalid, Message: "initialize must not be part of a batch", ID: id})
		return false
	}
	key := jsonrpc.CanonicalID(id)
	if !e.isOpen(key) { // else nobody could tell whose answer it is that comes first
		e.batches[key] = e.batch
		e.batch.open++
	}
	return true
}

// batchOf is the batch to which a response belongs, which is counted as answered; nil = it is a frame of its own. What is no message
// has no id that could be told, or none that is open, and belongs to the batch in which it stands.
func (e *Engine) batchOf(id []byte) *batch {
	key := jsonrpc.CanonicalID(id)
	b := e.batches[key]
	if b == nil {
		return e.batch
	}
	delete(e.batches, key)
	b.open--
	return b
}

// addResponse puts the response that is made of the pieces added since mark among those of a batch. A frame does not grow beyond the
// limit of one: what is there then goes out before.
func (e *Engine) addResponse(b *batch, id []byte, mark int) {
	frame := slices.Concat(e.pieces[mark:]...)
	e.pieces = e.pieces[:mark]
	size := int64(len(frame)) + 2
	if b.size+size > e.server.MaxMessageBytes {
		e.sendBatch(b)
	}
	b.responses = append(b.responses, response{jsonrpc.CanonicalID(id), frame})
	b.size += size
	if b.open == 0 {
		e.timers.stop(&b.timer)
		e.sendBatch(b)
	}
}

// unanswered takes in that a request of the client, by the key of its id, will get no answer.
func (e *Engine) unanswered(key string) {
	if b := e.batches[key]; b != nil {
		delete(e.batches, key)
		e.release(b)
	}
}

// unsend drops the response to a request of which the client says, by the key of its id, that it wants none: the request was answered,
// but not its batch.
func (e *Engine) unsend(key string) {
	drop := func(b *batch) {
		b.responses = slices.DeleteFunc(b.responses, func(r response) bool { return r.key == key })
	}
	for _, b := range e.batches {
		drop(b)
	}
	if e.batch != nil {
		drop(e.batch)
	}
}

// release counts one thing less that a batch waits for.
func (e *Engine) release(b *batch) {
	if b.open--; b.open == 0 {
		e.timers.stop(&b.timer)
		e.sendBatch(b)
	}
}

// sendBatch sends the responses of a batch, if there are any: a batch of notifications has none.
func (e *Engine) sendBatch(b *batch) {
	if len(b.responses) == 0 {
		return
	}
	mark := len(e.pieces)
	for i, response := range b.responses {
		separator := []byte(",")
		if i == 0 {
			separator = []byte("[")
		}
		e.pieces = append(e.pieces, separator, response.frame)
	}
	e.pieces = append(e.pieces, []byte("]"))
	e.emit(ToClient, mark, 0, 0)
	b.responses, b.size = nil, 0
}
