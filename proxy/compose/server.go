package compose

import (
	"bytes"
	"strings"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// fromEngine takes in a frame that an engine has for the client.
func (b *Board) fromEngine(server int, a engine.Action) {
	var m jsonrpc.Message
	if jsonrpc.Parse(b.joined(a.Data), &m) != nil {
		return // engines send messages only
	}
	switch m.Kind {
	case jsonrpc.Request:
		b.serverAsks(server, &m)
		return
	case jsonrpc.Notification:
		if b.serverNotifies(server, &m) {
			return
		}
	default:
		key := jsonrpc.CanonicalID(m.ID.Of(m.Frame))
		if p := b.parts[key]; p != nil && p.server == server {
			b.partAnswered(p, &m)
			return
		}
		if strings.HasPrefix(key, partPrefix) {
			return // nobody waits for it any more
		}
		if l := b.listens[key]; l != nil && l.parts[server] {
			b.listenEnded(l, server, &m)
			return
		}
		if at, open := b.open[key]; open && at == server {
			delete(b.open, key)
			b.respond(m.ID.Of(m.Frame), Action{Server: server, Action: a, borrowed: true})
			if why, ok := unstartable(&m); ok {
				b.lost(server, why)
				b.gone(server, "")
			}
			return
		}
	}
	b.out = append(b.out, Action{Server: server, Action: a, borrowed: true})
}

// joined returns the pieces of a frame as one, valid until the next step.
func (b *Board) joined(pieces [][]byte) []byte {
	if len(pieces) == 1 {
		return pieces[0]
	}
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	if size > 1<<20 {
		return bytes.Join(pieces, nil)
	}
	return b.hold(func(buf []byte) []byte {
		for _, p := range pieces {
			buf = append(buf, p...)
		}
		return buf
	})
}

// serverNotifies looks at a notification of a server. It returns true if it is not to pass as it is.
func (b *Board) serverNotifies(server int, m *jsonrpc.Message) bool {
	switch string(m.Method) {
	case "notifications/cancelled":
		return b.serverCancels(server, m)
	case "notifications/subscriptions/acknowledged":
		return b.acknowledged(server, m)
	case "notifications/progress":
		span, _ := jsonrpc.Lookup(m.Frame, m.Params, "progressToken")
		return b.parts[jsonrpc.CanonicalID(span.Of(m.Frame))] != nil
	}
	return b.tooEarly(m)
}
