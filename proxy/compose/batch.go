package compose

import (
	"bytes"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// batch is several messages of the client in one frame, whose requests are answered in one frame too, as an [engine.Engine] does it
// for a client of its own: engines get the messages one by one.
type batch struct {
	taking    bool            // its messages are being taken in
	open      map[string]bool // ids of requests that have no answer yet, canonical
	responses []response
	size      int64 // of the frame that they will make
	until     time.Time
}

// response is an answer that waits for the others of its batch.
type response struct {
	key   string // its id, canonical
	frame []byte
}

// takesBatches reports whether client and servers have agreed on the revision that has batches.
func (b *Board) takesBatches() bool { return b.protocol == "2025-03-26" }

// clientBatch takes in the messages of a batch, each as if it had come alone.
func (b *Board) clientBatch(frame []byte) {
	wrong := "a batch within a batch"
	if b.taking() == nil {
		wrong = engine.WrongBatch(frame)
	}
	if wrong != "" {
		b.refuseFrame(&jsonrpc.ParseError{Code: jsonrpc.CodeInvalidRequest, Message: "invalid message: " + wrong})
		return
	}
	batch := &batch{taking: true, open: map[string]bool{}, until: b.now.Add(engine.BatchPatience)}
	b.batches = append(b.batches, batch)
	for span := range jsonrpc.Elements(frame, whole(frame)) {
		b.fromClient(span.Of(frame), false)
	}
	batch.taking = false
	b.sendIfComplete(batch)
}

// taking is the batch that is being taken in; nil = none is.
func (b *Board) taking() *batch {
	if n := len(b.batches); n > 0 && b.batches[n-1].taking {
		return b.batches[n-1]
	}
	return nil
}

// joinBatch counts a message among those of the batch that is being taken in, if one is. It reports whether the message may be there.
func (b *Board) joinBatch(m *jsonrpc.Message) bool {
	batch := b.taking()
	if batch == nil || m.Kind != jsonrpc.Request {
		return true
	}
	id := m.ID.Of(m.Frame)
	if string(m.Method) == "initialize" {
		b.refuseFrame(&jsonrpc.ParseError{Code: jsonrpc.CodeInvalidRequest, Message: "initialize must not be part of a batch", ID: id})
		return false
	}
	if !b.isOpen(id) { // else nobody could tell whose answer it is that comes first
		batch.open[jsonrpc.CanonicalID(id)] = true
	}
	return true
}

// isOpen reports whether a request of the client with that id has no answer yet.
func (b *Board) isOpen(id []byte) bool {
	key := jsonrpc.CanonicalID(id)
	if _, open := b.open[key]; open || b.fanOf(id) != nil {
		return true
	}
	return slices.ContainsFunc(b.batches, func(batch *batch) bool { return batch.open[key] })
}

// respond has the client get the response to its request of that raw id: at once, or with the others of its batch. What answers no
// request belongs to the batch that is being taken in.
func (b *Board) respond(id []byte, a Action) {
	if len(b.batches) == 0 {
		b.out = append(b.out, a)
		return
	}
	key := jsonrpc.CanonicalID(id)
	in := b.taking()
	if i := slices.IndexFunc(b.batches, func(batch *batch) bool { return batch.open[key] }); i >= 0 {
		in = b.batches[i]
		delete(in.open, key)
	}
	if in == nil {
		b.out = append(b.out, a)
		return
	}
	frame := bytes.Join(a.Data, nil)
	size := int64(len(frame)) + 2
	if in.size+size > b.maxFrame() {
		b.sendBatch(in)
	}
	in.responses = append(in.responses, response{key, frame})
	in.size += size
	b.sendIfComplete(in)
}

// maxFrame is the size of the largest message that any server may send.
func (b *Board) maxFrame() (most int64) {
	for _, i := range b.order {
		most = max(most, b.members[i].Config.MaxMessageBytes)
	}
	return most
}

// unbatch takes in that the client wants no answer to its request of that raw id any more, or has not got it yet.
func (b *Board) unbatch(id []byte) {
	key := jsonrpc.CanonicalID(id)
	for _, batch := range slices.Clone(b.batches) {
		delete(batch.open, key)
		batch.responses = slices.DeleteFunc(batch.responses, func(r response) bool { return r.key == key })
		b.sendIfComplete(batch)
	}
}

// sendIfComplete ends a batch that waits for nothing more.
func (b *Board) sendIfComplete(in *batch) {
	if !in.taking && len(in.open) == 0 {
		b.breakUp(in)
	}
}

// breakUp sends the responses of a batch that have come by now. Others will be frames of their own.
func (b *Board) breakUp(in *batch) {
	b.batches = slices.DeleteFunc(b.batches, func(other *batch) bool { return other == in })
	b.sendBatch(in)
}

func (b *Board) sendBatch(in *batch) {
	if len(in.responses) == 0 {
		return // it was of notifications
	}
	separator := []byte("[")
	var pieces [][]byte
	for _, r := range in.responses {
		pieces = append(pieces, separator, r.frame)
		separator = []byte(",")
	}
	in.responses, in.size = nil, 0
	b.toClient(append(pieces, []byte("]"))...)
}
