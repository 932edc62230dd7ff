package engine

import (
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// session is what the client and the server have agreed on, as far as a new life of the server must be told again.
type session struct {
	begun       bool         // the first request of the client came
	initialize  []byte       // its initialize request; nil = none
	initID      jsonrpc.Span // in initialize
	agreed      bool         // the server answered it with a result
	confirmed   bool         // the client sent notifications/initialized
	listChanged bool         // the server declared tools.listChanged
	relisting   bool         // the tools are listed again after a restart, to see whether they differ
	former      *former      // what counts again if this initialize is refused; nil = nothing

	logLevel      []byte            // params of the last logging/setLevel
	subscriptions map[string][]byte // params of resources/subscribe, by their uri
}

// former is what a client and a server had agreed on that greet each other anew.
type former struct {
	session session
	client  policy.Peer
}

// pending is a request of ours that the server has not answered.
type pending struct {
	attempt *attempt // of a call
	pass    *passing // a request of the client that is passed on
	own     ownRequest
	page    int // of the list of tools, from 1
}

// ownRequest is a question that the engine asks for itself.
type ownRequest uint8

const (
	notOwn     ownRequest = iota
	ownTools              // tools/list
	ownReplay             // initialize, for a new life of the server
	ownIgnored            // its answer does not matter
)

// passing is a request of the client, other than a call, on its way to the server and back.
type passing struct {
	id        []byte // raw, as the client wrote it
	token     []byte // raw progress token; nil = none
	ours      int64
	method    string
	firstPage bool   // of tools/list
	params    []byte // of what a new life of the server must be told again
	progress  float64
	moved     bool
	sent      bool
}

// fromClient takes in a frame of the client.
func (e *Engine) fromClient(frame []byte, owned bool) {
	m := &e.msg
	if fault := jsonrpc.Parse(frame, m); fault != nil {
		if fault.Batch && fault.Code == codeInvalid && e.takesBatches() {
			e.clientBatch(frame)
			return
		}
		e.refuseFrame(frame, fault)
		return
	}
	if e.batch != nil && !e.joinBatch(m) {
		return
	}
	if !e.session.begun && m.Kind == jsonrpc.Request {
		e.session.begun = true
		e.modern = string(m.Method) != "initialize" && hasProtocolVersion(m)
	}
	switch m.Kind {
	case jsonrpc.Request:
		switch string(m.Method) {
		case "tools/call":
			e.admit(m, owned)
		default:
			e.passOn(m)
		}
	case jsonrpc.Notification:
		e.clientNotification(m)
	default:
		e.clientAnswered(m)
	}
}

// hasProtocolVersion reports whether a request carries its protocol version with it, as those of revisions without a
// handshake do.
func hasProtocolVersion(m *jsonrpc.Message) bool {
	meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
	_, ok := jsonrpc.Lookup(m.Frame, meta, "io.modelcontextprotocol/protocolVersion")
	return ok
}

// passOn hands a request other than a call to the server, under an id of ours, and its answer back.
func (e *Engine) passOn(m *jsonrpc.Message) {
	p := &passing{id: clone(m.ID.Of(m.Frame)), method: string(m.Method)}
	meta, _ := jsonrpc.Lookup(m.Frame, m.Params, "_meta")
	token, hasToken := progressToken(m.Frame, meta)
	if hasToken {
		p.token = clone(token.Of(m.Frame))
	}
	switch p.method {
	case "initialize":
		e.modern = false // whatever the client tried first
		before := e.session.former
		if e.session.agreed {
			before = &former{e.session, e.client}
			before.session.former = nil
		}
		e.session = session{begun: true, initialize: clone(m.Frame), initID: m.ID, former: before}
		e.learnClient(m)
	case "tools/list":
		_, more := jsonrpc.Lookup(m.Frame, m.Params, "cursor")
		p.firstPage = !more
	case "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		p.params = withoutMeta(m.Frame, m.Params)
	}
	if e.modern {
		e.learnModernClient(m.Frame, meta)
	}
	key := jsonrpc.CanonicalID(p.id)
	e.passing[key] = append(e.passing[key], p)
	p.ours = e.nextID()
	e.pending[p.ours] = pending{pass: p}
	number := e.number(p.ours)
	edits := []jsonrpc.Edit{{At: m.ID, New: number}}
	if hasToken {
		edits = append(edits, jsonrpc.Edit{At: token, New: number})
		if token.Start < m.ID.Start {
			edits[0], edits[1] = edits[1], edits[0]
		}
	}
	switch {
	case e.ready():
		e.sendPassing(p, m.Frame, edits...)
	case e.gone():
		e.failPassing(p, &fault{code: CodeUnavailable, kind: kindExit, text: unavailableText(e.server.Name, e.goneText(), "no")})
	default:
		e.await(queued{pass: p, frame: jsonrpc.Splice(nil, m.Frame, edits...)})
	}
}

// sendPassing writes a request that is passed on to the server. Only initialize has a deadline of ours.
func (e *Engine) sendPassing(p *passing, frame []byte, edits ...jsonrpc.Edit) {
	p.sent = true
	if p.method == "initialize" {
		e.life.state, e.life.greets = greeting, p
		e.timers.arm(&e.life.timer, e.now.Add(e.server.StartupTimeout))
	}
	e.toServer(p.ours, frame, edits...)
}

// progressToken finds the token under which a request wants progress: a string or a number.
func progressToken(frame []byte, meta jsonrpc.Span) (jsonrpc.Span, bool) {
	span, ok := jsonrpc.Lookup(frame, meta, "progressToken")
	if !ok || strings.IndexByte("{[tfn", frame[span.Start]) >= 0 {
		return jsonrpc.Span{}, false
	}
	return span, true
}

// withoutMeta returns a copy of params without their _meta, in which the client's progress token is.
func withoutMeta(frame []byte, params jsonrpc.Span) []byte {
	for member := range jsonrpc.Members(frame, params) {
		if string(member.Key) == "_meta" {
			edit := jsonrpc.RemoveMember(frame, params, member)
			return slices.Concat(frame[params.Start:edit.At.Start], frame[edit.At.End:params.End])
		}
	}
	return clone(params.Of(frame))
}

// settlePassing forgets a request that was passed on: it has its answer, or will get none.
func (e *Engine) settlePassing(p *passing) {
	delete(e.pending, p.ours)
	if !p.sent {
		e.life.queue = slices.DeleteFunc(e.life.queue, func(q queued) bool { return q.pass == p })
	}
	key := jsonrpc.CanonicalID(p.id)
	rest := e.passing[key]
	for i, other := range rest {
		if other == p {
			rest = append(rest[:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(e.passing, key)
	} else {
		e.passing[key] = rest
	}
	if l := &e.life; l.greets == p {
		if l.greets = e.initializing(); l.greets == nil {
			e.timers.stop(&l.timer)
		}
	}
}

// failPassing answers a request that was passed on with an error of ours.
func (e *Engine) failPassing(p *passing, f *fault) {
	e.settlePassing(p)
	e.refuse(p.id, f)
	e.greeted()
}

// answered takes in the server's answer to a request that was passed on.
func (e *Engine) answered(p *passing, m *jsonrpc.Message) {
	e.settlePassing(p)
	defer e.greeted()
	edits := [2]jsonrpc.Edit{{At: m.ID, New: p.id}}
	n := 1
	if p.method == "subscriptions/listen" {
		n = e.renameSubscription(edits[:], m.Frame, m.Result, p.id)
	}
	if m.Kind == jsonrpc.Result {
		e.learn(p, m)
	} else if p.method == "tools/list" {
		e.learnError(m)
	} else if p.method == "initialize" && e.initializing() == nil {
		e.greetingRefused()
	}
	if p.method == "tools/list" && m.Kind == jsonrpc.Result && e.filters() {
		all := e.cutHidden(edits[:n:n], m.Frame, m.Result)
		slices.SortFunc(all, func(a, b jsonrpc.Edit) int { return a.At.Start - b.At.Start })
		e.passAnswer(p.id, m.Frame, all...)
		return
	}
	e.passAnswer(p.id, m.Frame, edits[:n]...)
}

// greetingRefused goes back to what was agreed on before. If that is nothing, there is nothing that a new life could be told, and the
// client may go on in another era.
func (e *Engine) greetingRefused() {
	before := e.session.former
	if before == nil {
		before = &former{}
	}
	e.session, e.client = before.session, before.client
}

// passAnswer passes an answer of the server on to the client's request of that raw id.
func (e *Engine) passAnswer(id, frame []byte, edits ...jsonrpc.Edit) {
	mark := len(e.pieces)
	e.pieces = jsonrpc.Pieces(e.pieces, frame, edits...)
	e.respond(id, mark)
}

// renameSubscription adds the edit that gives a subscription its name at the client, which is the id of the request that
// opened it (MCP 2026-07-28, subscriptions/listen).
func (e *Engine) renameSubscription(edits []jsonrpc.Edit, frame []byte, holder jsonrpc.Span, id []byte) int {
	meta, _ := jsonrpc.Lookup(frame, holder, "_meta")
	span, ok := jsonrpc.Lookup(frame, meta, subscriptionID)
	if !ok {
		return 1
	}
	edits[1] = jsonrpc.Edit{At: span, New: id}
	if span.Start < edits[0].At.Start {
		edits[0], edits[1] = edits[1], edits[0]
	}
	return 2
}

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// learn remembers what an answer that passes tells about the session.
func (e *Engine) learn(p *passing, m *jsonrpc.Message) {
	s := &e.session
	switch p.method {
	case "initialize":
		s.agreed, s.former, e.life.agreed = true, nil, true
		e.learnServer(m.Frame, m.Result)
		e.greeted()
		e.learnToolsOfCalls()
	case "server/discover":
		e.learnServerInfo(m.Frame, m.Result)
	case "tools/list":
		e.learnPage(m.Frame, m.Result, p.firstPage)
	case "logging/setLevel":
		s.logLevel = p.params
	case "resources/subscribe", "resources/unsubscribe":
		if p.params == nil {
			return
		}
		uri, _ := jsonrpc.Lookup(p.params, whole(p.params), "uri")
		name := string(uri.Of(p.params))
		if p.method == "resources/unsubscribe" {
			delete(s.subscriptions, name)
		} else if len(s.subscriptions) < maxSubscriptions {
			if s.subscriptions == nil {
				s.subscriptions = map[string][]byte{}
			}
			s.subscriptions[name] = p.params
		}
	}
}

// maxSubscriptions bounds the resource subscriptions that are restored after a restart.
const maxSubscriptions = 1000
