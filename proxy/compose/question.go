package compose

import (
	"bytes"
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// question is a request of a server at the client, under a number of ours: every engine numbers its own.
type question struct {
	server int
	id     []byte // raw, the engine's
	token  []byte // raw, of the progress that the server wants to hear of; nil = none
}

// serverAsks passes a request of a server on to the client.
func (b *Board) serverAsks(server int, m *jsonrpc.Message) {
	b.lastQuestion++
	q := &question{server: server, id: bytes.Clone(m.ID.Of(m.Frame))}
	b.questions[b.lastQuestion] = q
	number := strconv.AppendInt(nil, b.lastQuestion, 10)
	edits := []jsonrpc.Edit{{At: m.ID, New: number}}
	meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
	if token, ok := jsonrpc.Lookup(m.Frame, meta, "progressToken"); ok {
		q.token = bytes.Clone(token.Of(m.Frame))
		edits = append(edits, jsonrpc.Edit{At: token, New: number})
		if token.Start < m.ID.Start {
			edits[0], edits[1] = edits[1], edits[0]
		}
	}
	b.toClient(jsonrpc.Pieces(nil, m.Frame, edits...)...)
}

// takeQuestion returns the question that has an id at the client, and forgets it; nil = none has.
func (b *Board) takeQuestion(id []byte) *question {
	n, ok := jsonrpc.IntID(id)
	if !ok {
		return nil
	}
	q := b.questions[n]
	delete(b.questions, n)
	return q
}

// clientAnswers hands an answer of the client to the server that asked.
func (b *Board) clientAnswers(m *jsonrpc.Message) {
	if q := b.takeQuestion(m.ID.Of(m.Frame)); q != nil {
		b.send(q.server, jsonrpc.Splice(nil, m.Frame, jsonrpc.Edit{At: m.ID, New: q.id}))
	}
}

// clientProgress hands word of progress to the server that wants it.
func (b *Board) clientProgress(m *jsonrpc.Message) {
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "progressToken")
	n, _ := jsonrpc.IntID(span.Of(m.Frame))
	if q := b.questions[n]; q != nil && q.token != nil {
		b.send(q.server, jsonrpc.Splice(nil, m.Frame, jsonrpc.Edit{At: span, New: q.token}))
	}
}

// serverCancels passes on that a server takes a request back: one of its own at the client, or a subscription of the client.
func (b *Board) serverCancels(server int, m *jsonrpc.Message) bool {
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "requestId")
	id := span.Of(m.Frame)
	if l := b.listens[jsonrpc.CanonicalID(id)]; l != nil && l.parts[server] {
		b.listenEnded(l, server, m)
		return true
	}
	for n, q := range b.questions {
		if q.server == server && jsonrpc.SameID(q.id, id) {
			delete(b.questions, n)
			b.toClient(jsonrpc.Pieces(nil, m.Frame, jsonrpc.Edit{At: span, New: strconv.AppendInt(nil, n, 10)})...)
			return true
		}
	}
	return true // what it was about is over
}
