package compose

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// fromClient takes in a frame of the client, which is valid for this step only unless it is owned.
func (b *Board) fromClient(frame []byte, owned bool) {
	var m jsonrpc.Message
	if bad := jsonrpc.Parse(frame, &m); bad != nil {
		if bad.Batch && bad.Code == jsonrpc.CodeInvalidRequest && b.takesBatches() {
			b.clientBatch(frame)
			return
		}
		b.refuseFrame(bad)
		return
	}
	if !b.joinBatch(&m) {
		return
	}
	switch m.Kind {
	case jsonrpc.Request:
		b.clientAsks(&m, owned)
	case jsonrpc.Notification:
		b.clientNotifies(&m)
	default:
		b.clientAnswers(&m)
	}
}

// refuseFrame answers a frame that is no message.
func (b *Board) refuseFrame(p *jsonrpc.ParseError) {
	text := p.Message
	if p.Batch && !b.takesBatches() {
		text = "batches are not supported: send each message on a line of its own"
	}
	id := p.ID
	if b.isOpen(id) {
		id = nil // the client would take it for the answer to its own open request
	}
	b.answer(id, "error", faultJSON(p.Code, "bad_frame", "", text))
	b.log(engine.Record{Level: engine.LevelWarn, Event: "bad_frame", Detail: "from the client: " + text})
}

// clientTooBig takes in that a frame of the client is over the limit.
func (b *Board) clientTooBig(ev *engine.Event) {
	text := fmt.Sprintf("a message of %d bytes is over the limit: raise max_message_bytes", ev.Size)
	b.log(engine.Record{Level: engine.LevelWarn, Event: "message_too_large", Detail: "from the client: " + text})
	id, response, ok := jsonrpc.LooseID(ev.Frame, ev.Tail)
	fault := faultJSON(engine.CodeTooLarge, "too_large", "", text)
	switch {
	case response && ok:
		if q := b.takeQuestion(id); q != nil {
			b.send(q.server, bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), q.id, []byte(`,"error":`), fault, []byte("}")}, nil))
		}
	case !response && ok:
		b.answer(bytes.Clone(id), "error", fault)
	case !response:
		b.answer(nil, "error", fault)
	}
}

// clientAsks sends a request of the client where it belongs.
func (b *Board) clientAsks(m *jsonrpc.Message, owned bool) {
	method := string(m.Method)
	if !b.begun && method != "ping" {
		b.begin(m, method)
	}
	if method != "ping" && b.greeting != nil {
		if !b.holdBack(m.Frame) {
			b.refuse(m, engine.CodeRateLimited, "rate_limited", "too many requests before initialize was answered")
		}
		return
	}
	if b.told {
		b.answer(m.ID.Of(m.Frame), "error", shutdownFault())
		return
	}
	switch method {
	case "initialize":
		b.greet(m)
	case "ping":
		if b.modern { // which has none
			b.search(m, b.order)
			return
		}
		b.answer(m.ID.Of(m.Frame), "result", []byte("{}"))
	case "tools/call":
		b.byName(m, owned, m.Params, "tool")
	case "prompts/get":
		b.byName(m, owned, m.Params, "prompt")
	case "completion/complete":
		b.complete(m, owned)
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		b.byURI(m, owned)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list":
		b.list(m)
	case "logging/setLevel":
		b.setLevel(m)
	case "server/discover":
		b.discover(m)
	case "subscriptions/listen":
		b.listen(m)
	default:
		b.search(m, b.order)
	}
}

// begin takes in the first request. A client that does not begin with initialize speaks a revision without it.
func (b *Board) begin(m *jsonrpc.Message, method string) {
	b.begun = true
	if method == "initialize" {
		return
	}
	for _, i := range b.order {
		b.members[i].agreed = true
	}
	meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
	if _, ok := jsonrpc.Lookup(m.Frame, meta, "io.modelcontextprotocol/protocolVersion"); ok {
		b.modern = true
		b.meta = withoutToken(meta.Of(m.Frame))
	}
}

// refuse answers a request with an error of ours.
func (b *Board) refuse(m *jsonrpc.Message, code int, kind, text string) {
	b.answer(m.ID.Of(m.Frame), "error", faultJSON(code, kind, "", text))
}

// byName sends a request to the server in a name, which loses the part that tells it.
func (b *Board) byName(m *jsonrpc.Message, owned bool, holder jsonrpc.Span, what string) {
	span, _ := jsonrpc.Lookup(m.Frame, holder, "name")
	composed, ok := jsonrpc.Text(span.Of(m.Frame))
	if !ok {
		b.refuse(m, codeParams, "bad_params", string(m.Method)+": the name of the "+what+" must be a string")
		return
	}
	if b.learnsCut(m, holder, what, composed) {
		return
	}
	b.sendByName(m, owned, span, what, composed)
}

// sendByName sends a request to the server that the name at a place tells.
func (b *Board) sendByName(m *jsonrpc.Message, owned bool, span jsonrpc.Span, what, composed string) {
	o, known := b.names.resolve(composed)
	if !known {
		b.refuse(m, codeParams, "unknown_"+what, fmt.Sprintf("Unknown %s: %s. No server here has it: the names of all begin with that of their server (%q).",
			what, strconv.Quote(composed), b.names.prefixes[b.order[0]]+"…"))
		if what == "tool" {
			b.log(engine.Record{
				Level: engine.LevelWarn, Event: "tool_call_end", Tool: composed, RequestID: engine.LoggedID(m.ID.Of(m.Frame)),
				Status: "error", Code: codeParams, Kind: "unknown_tool", Delivery: "not_sent",
			})
		}
		return
	}
	edit := jsonrpc.Edit{At: span, New: jsonrpc.AppendQuoted(nil, o.name)}
	if owned { // the engine may keep a frame that is large, so it gets one of its own
		b.forward(o.server, m, jsonrpc.Splice(nil, m.Frame, edit), true)
		return
	}
	b.forward(o.server, m, b.hold(func(buf []byte) []byte { return jsonrpc.Splice(buf, m.Frame, edit) }), false)
}

// forward sends a request of the client to one server, under the client's own id.
func (b *Board) forward(server int, m *jsonrpc.Message, frame []byte, owned bool) {
	member := b.members[server]
	id := m.ID.Of(m.Frame)
	if !member.agreed {
		b.await(server, frame)
		return
	}
	b.open[jsonrpc.CanonicalID(id)] = server
	b.tell(server, engine.Event{Kind: engine.FromClient, Frame: frame, Owned: owned})
}

// await has a request wait for a server that could not be initialized, and tries that again.
func (b *Board) await(server int, frame []byte) {
	member := b.members[server]
	if b.leaving || !member.shaking && b.triedJustNow(member) {
		b.turnAwayMissing(server, waiter{frame, b.now}, member.detail)
		return
	}
	if !mayWait(len(member.waiting), sizeOf(member.waiting), frame) {
		b.turnAway(server, waiter{frame, b.now}, engine.CodeRateLimited, "rate_limited",
			"Too many requests wait for the server "+strconv.Quote(b.name(server))+" to start.")
		return
	}
	member.waiting = append(member.waiting, waiter{bytes.Clone(frame), b.now})
	b.probe(server)
}

// complete sends a request for completions to the server of the prompt or resource that it refers to.
func (b *Board) complete(m *jsonrpc.Message, owned bool) {
	ref, _ := jsonrpc.Lookup(m.Frame, m.Params, "ref")
	if _, ok := jsonrpc.Lookup(m.Frame, ref, "name"); ok {
		b.byName(m, owned, ref, "prompt")
		return
	}
	span, _ := jsonrpc.Lookup(m.Frame, ref, "uri")
	uri, _ := jsonrpc.Text(span.Of(m.Frame))
	b.toOwners(m, owned, uri)
}

// byURI sends a request to the server that has the resource.
func (b *Board) byURI(m *jsonrpc.Message, owned bool) {
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "uri")
	uri, ok := jsonrpc.Text(span.Of(m.Frame))
	if !ok {
		b.refuse(m, codeParams, "bad_params", string(m.Method)+": params.uri must be a string")
		return
	}
	b.toOwners(m, owned, uri)
}

// toOwners sends a request to the server that has a resource; of several, to the first that does not say it does not know it.
func (b *Board) toOwners(m *jsonrpc.Message, owned bool, uri string) {
	switch servers := b.whose(uri); len(servers) {
	case 0:
		b.search(m, b.order)
	case 1:
		b.forward(servers[0], m, m.Frame, owned)
	default:
		b.search(m, servers)
	}
}

// clientNotifies passes a notification of the client on.
func (b *Board) clientNotifies(m *jsonrpc.Message) {
	switch string(m.Method) {
	case "notifications/cancelled":
		b.clientCancels(m)
		return
	case "notifications/progress":
		b.clientProgress(m)
		return
	}
	if b.greeting != nil {
		if !b.holdBack(m.Frame) {
			b.log(engine.Record{Level: engine.LevelWarn, Event: "noise", Detail: "notifications of the client are dropped: too many before initialize was answered"})
		}
		return
	}
	if string(m.Method) == "notifications/initialized" {
		b.confirmed = bytes.Clone(m.Frame)
	}
	for _, i := range b.order {
		if b.members[i].agreed {
			b.send(i, m.Frame)
		}
	}
}

// clientCancels takes in that the client wants no answer to a request any more.
func (b *Board) clientCancels(m *jsonrpc.Message) {
	span, _ := jsonrpc.Lookup(m.Frame, m.Params, "requestId")
	id := span.Of(m.Frame)
	key := jsonrpc.CanonicalID(id)
	b.unbatch(id)
	if l := b.listens[key]; l != nil {
		delete(b.listens, key)
		for i := range b.members {
			if l.parts[i] {
				b.send(i, m.Frame)
			}
		}
		return
	}
	if server, ok := b.open[key]; ok {
		delete(b.open, key)
		b.send(server, m.Frame)
		return
	}
	if f := b.fanOf(id); f != nil {
		if f != b.greeting { // MCP lifecycle: initialize must not be cancelled
			b.cancelParts(f, "the client cancelled the request")
			b.dropFan(f)
		}
		return
	}
	same := func(frame []byte) bool { return jsonrpc.SameID(idOf(frame), id) }
	b.held = slices.DeleteFunc(b.held, same)
	for i, member := range b.members {
		member.waiting = slices.DeleteFunc(member.waiting, func(w waiter) bool {
			if !same(w.frame) {
				return false
			}
			b.withdraw(i, w)
			return true
		})
	}
}

// idOf is the id of a request, nil if the frame is none.
func idOf(frame []byte) []byte {
	var m jsonrpc.Message
	if jsonrpc.Parse(frame, &m) != nil || m.Kind != jsonrpc.Request {
		return nil
	}
	return m.ID.Of(frame)
}
