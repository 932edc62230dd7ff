package engine

import (
	"bytes"
	"fmt"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// fromServer takes in a frame of the server.
func (e *Engine) fromServer(gen uint64, frame []byte) {
	if gen != e.life.gen || e.life.state == down || e.life.state == stopping && !e.life.retiring {
		return
	}
	e.life.heard = e.now
	m := &e.msg
	fault := jsonrpc.Parse(frame, m)
	if fault != nil {
		if fixed, broken := jsonrpc.Repair(frame); broken {
			e.log(Record{Level: LevelWarn, Event: "bad_frame", Detail: "the server sent invalid UTF-8, which was replaced by U+FFFD"})
			frame = fixed
			fault = jsonrpc.Parse(frame, m)
		}
	}
	if fault != nil && fault.Code == codeInvalid && !fault.Batch {
		if cut, ok := withoutNull(frame); ok {
			frame = cut
			fault = jsonrpc.Parse(frame, m)
		}
	}
	if e.life.retiring && (fault != nil || e.pending[e.answersTo(m)].attempt == nil) {
		return // all that still counts of a life that is being ended is what its calls came to
	}
	switch {
	case fault != nil && fault.Batch && fault.Code == codeInvalid: // else it is a line like "[INFO] ready"
		e.serverBatch(gen, frame)
	case fault != nil:
		if !e.malformedAnswer(fault, frame) {
			e.noise(frame)
		}
	case m.Kind == jsonrpc.Request:
		e.serverAsks(m)
	case m.Kind == jsonrpc.Notification:
		e.serverNotification(m)
	default:
		e.meterAnswer(m)
		e.serverAnswered(m)
	}
}

// withoutNull returns a frame without the null that stands for the error beside a result, or for the result beside an error, as JSON-RPC
// 1.0 wants it. It reports whether there is one.
func withoutNull(frame []byte) (cut []byte, ok bool) {
	var null jsonrpc.Member
	nulls, values := 0, 0
	for member := range jsonrpc.Members(frame, whole(frame)) {
		if name := string(member.Key); name != "result" && name != "error" {
			continue
		}
		if string(member.Value.Of(frame)) == "null" {
			null, nulls = member, nulls+1
		} else {
			values++
		}
	}
	if nulls != 1 || values != 1 {
		return nil, false
	}
	return jsonrpc.Splice(nil, frame, jsonrpc.RemoveMember(frame, whole(frame), null)), true
}

// answersTo is our id of the request that a message answers; 0 = none.
func (e *Engine) answersTo(m *jsonrpc.Message) int64 {
	if !m.Kind.Response() {
		return 0
	}
	id, _ := jsonrpc.IntID(m.ID.Of(m.Frame))
	return id
}

// malformedAnswer settles the request that a frame answers which is JSON but no message of JSON-RPC, with both a result and an
// error, say, or which nests too deep. It reports whether the frame can be told to be such an answer.
func (e *Engine) malformedAnswer(fault *jsonrpc.ParseError, frame []byte) bool {
	raw := fault.ID
	if fault.TooDeep {
		loose, response, found := jsonrpc.LooseID(frame, frame)
		if !found || !response {
			return false
		}
		raw = loose
	} else if _, asks := jsonrpc.Lookup(frame, whole(frame), "method"); asks {
		return false
	}
	id, ok := jsonrpc.IntID(raw)
	p, known := e.pending[id]
	if !ok || !known || p.pass != nil && !p.pass.sent {
		return false
	}
	text := "it is no valid message of JSON-RPC (" + fault.Message + ")"
	e.log(Record{Level: LevelWarn, Event: "bad_frame", Detail: text})
	delete(e.pending, id)
	e.answerUnusable(p, CodeInvalidResult, text)
	return true
}

// answerUnusable settles a request of ours whose answer has come and is of no use.
func (e *Engine) answerUnusable(p pending, code int, text string) {
	switch {
	case p.attempt != nil:
		e.callAnswered(p.attempt, unusable(code, text, nil))
	case p.pass != nil:
		e.failPassing(p.pass, &fault{code: code, text: text})
	case p.own == ownTools:
		e.tools.asking = false
	case p.own == ownReplay:
		e.useless(text)
	}
}

// serverBatch takes in the messages of a batch one by one (MCP 2025-03-26 lets servers send them), up to maxBatch of them. What is
// none, or too many, is logged once, as noise.
func (e *Engine) serverBatch(gen uint64, frame []byte) {
	messages := 0
	var noise []byte
	for span := range jsonrpc.Elements(frame, whole(frame)) {
		element := span.Of(frame)
		if element[0] != '{' {
			if noise == nil {
				noise = element
			}
			continue
		}
		if messages++; messages > maxBatch {
			noise = fmt.Appendf(nil, "a batch of more than %d messages; the others were dropped", maxBatch)
			break
		}
		e.fromServer(gen, element)
	}
	if noise != nil {
		e.noise(noise)
	}
}

// noise logs what the server printed beside its messages. It never reaches the client.
func (e *Engine) noise(line []byte) {
	e.log(Record{Level: LevelWarn, Event: "noise", Detail: string(line[:min(len(line), 300)])})
	if framing := bytes.HasPrefix(bytes.ToLower(line[:min(len(line), 15)]), []byte("content-length:")); framing && !e.session.agreed {
		e.useless("it frames its messages with Content-Length headers, as language servers do; MCP wants one message per line")
	}
}

// serverAnswered takes in an answer of the server.
func (e *Engine) serverAnswered(m *jsonrpc.Message) {
	id, ok := jsonrpc.IntID(m.ID.Of(m.Frame))
	p, known := e.pending[id]
	if !ok || !known || p.pass != nil && !p.pass.sent {
		detail := "no request of ours is open under its id"
		if m.Kind == jsonrpc.Error {
			detail += "; it says: " + errorMessage(m)
		}
		e.log(Record{Level: LevelDebug, Event: "stray_answer", Detail: detail})
		return
	}
	delete(e.pending, id)
	e.life.heardAnswer(id)
	switch {
	case p.attempt != nil:
		e.callAnswered(p.attempt, classify(m))
	case p.pass != nil:
		e.answered(p.pass, m)
	case p.own == ownTools:
		e.toolsPage(m, p.page)
	case p.own == ownReplay:
		e.replayed(m)
	}
}

// callAnswered settles the attempt that an answer belongs to.
func (e *Engine) callAnswered(a *attempt, o outcome) {
	e.life.useful = true
	e.validate(a.op, &o)
	if a.op.running != a {
		e.late(a, &o)
		return
	}
	e.timers.stop(&a.timer)
	e.settle(a.op, a, o)
}

// serverTooBig takes in that a message of the server is over the limit: it ends only the request that it belongs to.
func (e *Engine) serverTooBig(ev *Event) {
	if ev.Gen != e.life.gen || e.life.state == down || e.life.state == stopping {
		return
	}
	text := tooLargeText("the server's message", ev.Size, e.server.MaxMessageBytes)
	e.log(Record{Level: LevelWarn, Event: "message_too_large", Detail: text})
	raw, response, found := jsonrpc.LooseID(ev.Frame, ev.Tail)
	if found && !response { // a question, for whose answer the server would wait
		e.refuseQuestion(&question{theirs: clone(raw)}, &fault{code: CodeTooLarge, text: text})
		return
	}
	id, ok := jsonrpc.IntID(raw)
	p, known := e.pending[id]
	if !found || !response || !ok || !known || p.pass != nil && !p.pass.sent {
		return
	}
	delete(e.pending, id)
	e.answerUnusable(p, CodeTooLarge, text)
}

// serverNotification takes in a notification of the server.
func (e *Engine) serverNotification(m *jsonrpc.Message) {
	method := string(m.Method)
	switch method {
	case "notifications/progress":
		e.serverProgress(m)
		return
	case "notifications/cancelled":
		e.serverCancelled(m)
		return
	case "notifications/tools/list_changed":
		e.tools.fetched, e.tools.changed = false, true
		e.epochs.invalidateAll()
	case "notifications/resources/list_changed", "notifications/resources/updated":
		e.epochs.invalidateAll()
	}
	if e.leaving {
		return
	}
	if e.modern {
		meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
		if span, ok := jsonrpc.Lookup(m.Frame, meta, subscriptionID); ok {
			e.subscribed(m, span)
			return
		}
	}
	e.toClient(m.Frame)
}

// subscribed passes a notification on under the name that its subscription has at the client. One of a subscription that is
// over is dropped: under our number it could be taken for another.
func (e *Engine) subscribed(m *jsonrpc.Message, name jsonrpc.Span) {
	id, _ := jsonrpc.IntID(name.Of(m.Frame))
	if p := e.pending[id].pass; p != nil && p.sent && p.method == "subscriptions/listen" {
		e.toClient(m.Frame, jsonrpc.Edit{At: name, New: p.id})
	}
}

// learnClient takes in what initialize tells of the client.
func (e *Engine) learnClient(m *jsonrpc.Message) {
	info, _ := jsonrpc.Lookup(m.Frame, m.Params, "clientInfo")
	e.client = peerInfo(m.Frame, info)
	version, _ := jsonrpc.Lookup(m.Frame, m.Params, "protocolVersion")
	e.client.Protocol, _ = jsonrpc.Text(version.Of(m.Frame))
}

// learnModernClient takes in what every request of a revision without a handshake tells of the client.
func (e *Engine) learnModernClient(frame []byte, meta jsonrpc.Span) {
	if e.client.Protocol != "" {
		return
	}
	info, _ := jsonrpc.Lookup(frame, meta, "io.modelcontextprotocol/clientInfo")
	e.client = peerInfo(frame, info)
	version, _ := jsonrpc.Lookup(frame, meta, "io.modelcontextprotocol/protocolVersion")
	e.client.Protocol, _ = jsonrpc.Text(version.Of(frame))
	e.peer.Protocol = e.client.Protocol
}

// learnServer takes in what the answer to initialize tells of the server.
func (e *Engine) learnServer(frame []byte, result jsonrpc.Span) {
	e.learnServerInfo(frame, result)
	version, _ := jsonrpc.Lookup(frame, result, "protocolVersion")
	e.peer.Protocol, _ = jsonrpc.Text(version.Of(frame))
	e.client.Protocol = e.peer.Protocol
	capabilities, _ := jsonrpc.Lookup(frame, result, "capabilities")
	tools, _ := jsonrpc.Lookup(frame, capabilities, "tools")
	changed, _ := jsonrpc.Lookup(frame, tools, "listChanged")
	e.session.listChanged = string(changed.Of(frame)) == "true"
}

func (e *Engine) learnServerInfo(frame []byte, result jsonrpc.Span) {
	info, ok := jsonrpc.Lookup(frame, result, "serverInfo")
	if !ok {
		meta, _ := jsonrpc.Lookup(frame, result, "_meta")
		info, _ = jsonrpc.Lookup(frame, meta, "io.modelcontextprotocol/serverInfo")
	}
	protocol := e.peer.Protocol
	e.peer = peerInfo(frame, info)
	e.peer.Name, e.peer.Protocol = e.server.Name, protocol
}

// peerInfo reads an Implementation of MCP.
func peerInfo(frame []byte, info jsonrpc.Span) policy.Peer {
	var p policy.Peer
	for member := range jsonrpc.Members(frame, info) {
		text, ok := jsonrpc.Text(member.Value.Of(frame))
		if !ok {
			continue
		}
		switch string(member.Key) {
		case "name":
			p.Name = text
		case "title":
			p.Title = text
		case "version":
			p.Version = text
		}
	}
	return p
}
