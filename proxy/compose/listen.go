package compose

import (
	"bytes"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// subscriptionID names the subscription that a notification belongs to: it is the id of its subscriptions/listen (MCP
// 2026-07-28), which every engine restores to what the client gave.
const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// maxEarly bounds the notifications that wait for a subscription to be acknowledged.
const maxEarly = 100

// listen is a subscription of the client at all servers.
type listen struct {
	id      []byte // raw
	frame   []byte
	parts   map[int]bool   // servers where it is open
	waits   map[int]bool   // servers that have not acknowledged it
	granted map[string]any // what any has acknowledged
	acked   bool           // the client was told
	early   [][]byte       // what came before that
}

// listen passes a subscription on to all servers.
func (b *Board) listen(m *jsonrpc.Message) {
	l := &listen{
		id: bytes.Clone(m.ID.Of(m.Frame)), frame: bytes.Clone(m.Frame),
		parts: map[int]bool{}, waits: map[int]bool{}, granted: map[string]any{},
	}
	b.listens[jsonrpc.CanonicalID(l.id)] = l
	for _, i := range b.order {
		l.parts[i], l.waits[i] = true, true
		b.send(i, l.frame)
	}
}

// listenAgain opens the subscriptions at a server that has come back.
func (b *Board) listenAgain(server int) {
	for _, l := range b.listens {
		if !l.parts[server] {
			l.parts[server] = true
			b.send(server, l.frame)
		}
	}
}

// acknowledged takes in that a server grants a subscription. The client is told once all have, or will not.
func (b *Board) acknowledged(server int, m *jsonrpc.Message) bool {
	l := b.listenOf(m)
	if l == nil {
		return true
	}
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "notifications")
	var granted map[string]any
	decode(span.Of(m.Frame), &granted)
	for key, value := range granted {
		if list, ok := value.([]any); ok {
			old, _ := l.granted[key].([]any)
			granted[key] = append(old, list...)
		}
	}
	for key, value := range granted {
		if _, isList := value.([]any); isList || l.granted[key] != true {
			l.granted[key] = value
		}
	}
	delete(l.waits, server)
	b.acknowledge(l)
	return true
}

// acknowledge tells the client what a subscription has come to, if that is known.
func (b *Board) acknowledge(l *listen) {
	if l.acked || len(l.waits) > 0 || len(l.parts) == 0 {
		return
	}
	l.acked = true
	b.toClient([]byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+subscriptionID+`":`), l.id,
		[]byte(`},"notifications":`), encode(l.granted), []byte("}}"))
	for _, frame := range l.early {
		b.toClient(frame)
	}
	l.early = nil
}

// listenOf is the subscription that a notification belongs to, nil if none.
func (b *Board) listenOf(m *jsonrpc.Message) *listen {
	meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
	span, ok := jsonrpc.Lookup(m.Frame, meta, subscriptionID)
	if !ok {
		return nil
	}
	return b.listens[jsonrpc.CanonicalID(span.Of(m.Frame))]
}

// tooEarly keeps a notification of a subscription that the client does not know to be acknowledged: that must come first.
func (b *Board) tooEarly(m *jsonrpc.Message) bool {
	if len(b.listens) == 0 {
		return false
	}
	l := b.listenOf(m)
	if l == nil || l.acked {
		return false
	}
	if len(l.early) < maxEarly {
		l.early = append(l.early, bytes.Clone(m.Frame))
	}
	return true
}

// listenEnded takes in that a server has ended a subscription. For the client it goes on while another server has it open, or
// may come back.
func (b *Board) listenEnded(l *listen, server int, m *jsonrpc.Message) {
	delete(l.parts, server)
	delete(l.waits, server)
	absent := m.Kind == jsonrpc.Error && isAbsence(m.Err.Of(m.Frame))
	if absent && !b.leaving {
		b.lost(server, messageOf(m.Err.Of(m.Frame)))
	}
	if len(l.parts) > 0 || absent && l.acked && !b.leaving {
		b.acknowledge(l)
		return
	}
	delete(b.listens, jsonrpc.CanonicalID(l.id))
	b.toClient(m.Frame)
}
