package engine

import (
	"bytes"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// tool is what is known of a tool of the server.
type tool struct {
	policy.Tool
	known  bool // its entry in tools/list was seen, or the server has no list
	listed bool // its entry in tools/list was seen
	plan   *policy.Plan

	output outputSchema // of its results, if they are validated
}

// Bounds of the tools that are remembered: a client can make up names without end, and so can a server.
const (
	maxTools     = 4096
	maxToolBytes = 16 << 20 // of their names, titles and schemas
)

// toolTable knows the tools of the server from the answers to tools/list that pass.
type toolTable struct {
	byName  map[string]*tool
	bytes   int  // of the texts in byName
	fetched bool // a whole list was seen since the last change
	asking  bool // a list of our own is on its way
	changed bool // the server said so since we asked
	none    bool // the server has no tools/list: no tool has annotations

	meta    []byte // _meta for the pages of our own list; nil with a handshake
	reading digest // of the pages of the list that is being read
	list    digest // of the last whole list; zero = none was seen
}

func (t *toolTable) init() { t.byName = map[string]*tool{} }

// named is get for a name as the client wrote it, a JSON string.
func (t *toolTable) named(raw []byte, e *Engine) *tool {
	if known := t.byName[string(raw[1:len(raw)-1])]; known != nil && bytes.IndexByte(raw, '\\') < 0 {
		return known
	}
	name, _ := jsonrpc.Text(raw)
	return t.get(name, e)
}

// get returns what is known of a tool, which may be nothing but its name.
func (t *toolTable) get(name string, e *Engine) *tool {
	if known := t.byName[name]; known != nil {
		return known
	}
	fresh := &tool{Tool: policy.Tool{Name: name}, known: t.none, plan: e.policy.For(name)}
	fresh.Effects = fresh.AnnotatedEffects(e.server.TrustAnnotations)
	if t.room(len(name)) && e.exposed(name) { // of what does not exist for the client, nothing need be known
		t.byName[name] = fresh
		t.bytes += len(name)
	}
	return fresh
}

// room reports whether another tool may be remembered, with so many bytes of text.
func (t *toolTable) room(bytes int) bool {
	return len(t.byName) < maxTools && t.bytes+bytes <= maxToolBytes
}

// fit counts a text of a tool in the place of the one before, and returns its length: 0 if there is no room for it.
func (t *toolTable) fit(before, after int) int {
	t.bytes -= before
	if t.bytes+after > maxToolBytes {
		after = 0
	}
	t.bytes += after
	return after
}

// learnTools asks the server for its tools if nobody has done so: without annotations, a call that went wrong could not be
// judged. The call itself does not wait for it.
func (e *Engine) learnTools(meta []byte) {
	t := &e.tools
	if t.fetched || t.asking || t.none || !e.mayAsk() {
		return
	}
	t.asking, t.changed = true, false
	t.meta = nil
	if e.modern {
		t.meta = protocolMeta(meta)
	}
	e.requestTools(1, nil)
}

// mayAsk reports whether the server may be asked something of ours now: it is up, and its handshake is over.
func (e *Engine) mayAsk() bool {
	return e.ready() && (e.modern || e.session.agreed && e.session.confirmed)
}

// learnToolsOfCalls asks for the tools once the handshake is over, if calls have come before that.
func (e *Engine) learnToolsOfCalls() {
	if len(e.calls) > 0 {
		e.learnTools(nil)
	}
}

// protocolMeta is what every request of a revision without a handshake must carry in _meta, taken from a request of the client.
func protocolMeta(meta []byte) []byte {
	b := []byte("{")
	for member := range jsonrpc.Members(meta, whole(meta)) {
		if bytes.HasPrefix(member.Key, []byte("io.modelcontextprotocol/")) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			b = append(b, member.Pair.Of(meta)...)
		}
	}
	return append(b, '}')
}

// maxPages bounds the pages of a list of ours: a server may invent cursors without end.
const maxPages = 1000

// requestTools sends a tools/list of our own.
func (e *Engine) requestTools(page int, cursor []byte) {
	params := []byte("{")
	if cursor != nil {
		params = append(append(params, `"cursor":`...), cursor...)
	}
	if e.tools.meta != nil {
		if cursor != nil {
			params = append(params, ',')
		}
		params = append(append(params, `"_meta":`...), e.tools.meta...)
	}
	e.request(pending{own: ownTools, page: page}, "tools/list", append(params, '}'))
}

// learnPage takes in a page of the server's tools.
func (e *Engine) learnPage(frame []byte, result jsonrpc.Span, first bool) (next []byte) {
	t := &e.tools
	if first {
		t.reading = digest{}
	}
	for member := range jsonrpc.Members(frame, result) {
		switch string(member.Key) {
		case "tools":
			for entry := range jsonrpc.Elements(frame, member.Value) {
				e.learnTool(frame, entry)
			}
			t.reading = e.digestTools(t.reading, frame, member.Value)
		case "nextCursor":
			if frame[member.Value.Start] == '"' {
				next = clone(member.Value.Of(frame))
			}
		}
	}
	if next == nil {
		t.fetched, t.list = true, t.reading
	}
	return next
}

// learnTool takes in one entry of tools/list.
func (e *Engine) learnTool(frame []byte, entry jsonrpc.Span) {
	var name string
	info := policy.Tool{OpenWorld: true, Destructive: true} // the defaults of MCP's ToolAnnotations
	var annotations, output jsonrpc.Span
	for member := range jsonrpc.Members(frame, entry) {
		raw := member.Value.Of(frame)
		switch string(member.Key) {
		case "name":
			name, _ = jsonrpc.Text(raw)
		case "title":
			info.Title, _ = jsonrpc.Text(raw)
		case "annotations":
			annotations = member.Value
		case "outputSchema":
			output = member.Value
		}
	}
	if name == "" || !e.exposed(name) || e.tools.byName[name] == nil && !e.tools.room(len(name)) {
		return
	}
	for member := range jsonrpc.Members(frame, annotations) {
		raw := member.Value.Of(frame)
		yes := string(raw) == "true"
		hint := yes || string(raw) == "false"
		switch string(member.Key) {
		case "title":
			if info.Title == "" {
				info.Title, _ = jsonrpc.Text(raw)
			}
			continue
		case "readOnlyHint":
			info.ReadOnly = yes
		case "destructiveHint":
			info.Destructive = yes || !hint
		case "idempotentHint":
			info.Idempotent = yes
		case "openWorldHint":
			info.OpenWorld = yes || !hint
		default:
			continue
		}
		info.Annotated = info.Annotated || hint
	}
	t := e.tools.get(name, e)
	info.Title = info.Title[:e.tools.fit(len(t.Title), len(info.Title))]
	info.Name = name
	info.Effects = info.AnnotatedEffects(e.server.TrustAnnotations)
	t.Tool, t.known, t.listed = info, true, true
	if e.validates {
		text := output.Of(frame)
		if string(text) == "null" {
			text = nil // that is how some say that there is none
		}
		t.output.learn(text[:e.tools.fit(len(t.output.text), len(text))])
	}
}

// noTools takes in that the server has no tools/list.
func (t *toolTable) noTools() {
	t.none = true
	for _, one := range t.byName {
		one.known = true
	}
}

// toolsPage takes in the answer to a tools/list of our own.
func (e *Engine) toolsPage(m *jsonrpc.Message, page int) {
	t := &e.tools
	if m.Kind == jsonrpc.Error {
		t.asking = false
		e.learnError(m)
		return
	}
	before := t.list
	if next := e.learnPage(m.Frame, m.Result, page == 1); next != nil && page < maxPages {
		e.requestTools(page+1, next)
		return
	}
	t.asking = false
	if t.changed {
		t.fetched = false // the next call asks again
	}
	if e.session.relisting {
		e.session.relisting = false
		if before != (digest{}) && before != t.list && e.session.listChanged {
			mark := len(e.pieces)
			e.pieces = append(e.pieces, toolsChanged)
			e.emit(ToClient, mark, 0, 0)
		}
	}
}

var toolsChanged = []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)

// learnError takes in that tools/list failed: if the server does not know the method, it has no annotations to tell.
func (e *Engine) learnError(m *jsonrpc.Message) {
	if span, ok := jsonrpc.Lookup(m.Frame, m.Err, "code"); ok {
		if code, ok := jsonrpc.IntID(span.Of(m.Frame)); ok && code == -32601 {
			e.tools.noTools()
		}
	}
}
