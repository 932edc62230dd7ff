package engine

import (
	"bytes"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// refuseFrame answers a frame that is no message. JSON-RPC 2.0, section 5.1: the id is null if it could not be told.
func (e *Engine) refuseFrame(frame []byte, p *jsonrpc.ParseError) {
	text := p.Message
	if p.Batch && !e.takesBatches() {
		text = "batches are not supported: send each message on a line of its own"
	}
	id := p.ID
	if p.Code == codeParse {
		id = idBesideFault(frame, p)
	}
	if e.isOpen(jsonrpc.CanonicalID(id)) {
		id = nil // a faulty answer to the server, say: the client would take ours for that of its own open request
	}
	e.answer(id, "error", e.hold(func(b []byte) []byte { return e.appendError(b, &fault{code: p.Code, text: text, kind: "bad_frame"}) }))
	e.log(Record{Level: LevelWarn, Event: "bad_frame", Detail: "from the client: " + text})
}

// idBesideFault finds the raw id of a request that is JSON but for bytes that are no UTF-8, or but for how deep it nests. nil = it is no
// such thing, or the bytes are in the id itself.
func idBesideFault(frame []byte, p *jsonrpc.ParseError) []byte {
	if p.TooDeep {
		if id, response, ok := jsonrpc.LooseID(frame, frame); ok && !response {
			return id
		}
		return nil
	}
	fixed, broken := jsonrpc.Repair(frame)
	if !broken {
		return nil
	}
	var m jsonrpc.Message
	if jsonrpc.Parse(fixed, &m) != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	if id := m.ID.Of(fixed); !bytes.ContainsRune(id, utf8.RuneError) {
		return id
	}
	return nil
}

// clientTooBig answers a request that is over the limit, if its id can be told.
func (e *Engine) clientTooBig(ev *Event) {
	id, response, ok := jsonrpc.LooseID(ev.Frame, ev.Tail)
	text := tooLargeText("a message", ev.Size, e.server.MaxMessageBytes)
	e.log(Record{Level: LevelWarn, Event: "message_too_large", Detail: "from the client: " + text})
	if response {
		if ours, isOurs := jsonrpc.IntID(id); ok && isOurs && e.asking[ours] != nil {
			e.refuseQuestion(e.asking[ours], &fault{code: CodeTooLarge, text: text})
		}
		return
	}
	if !ok || e.isOpen(jsonrpc.CanonicalID(id)) {
		id = nil // as for a frame that is none
	}
	e.answer(clone(id), "error", e.hold(func(b []byte) []byte { return e.appendError(b, &fault{code: CodeTooLarge, text: text}) }))
}
