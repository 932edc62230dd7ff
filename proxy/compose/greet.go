package compose

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// greetTime is how long initialize waits for servers that are still starting while others are there: clients give up after 60 s.
const greetTime = 45 * time.Second

// greet passes the client's initialize on to all servers.
func (b *Board) greet(m *jsonrpc.Message) {
	b.modern, b.confirmed, b.listed, b.declared = false, nil, false, nil
	b.protocol = ""
	b.initialize, b.initID = bytes.Clone(m.Frame), m.ID
	for _, f := range slices.Clone(b.fans) {
		if f.id == nil { // ours, in the session before
			b.cancelParts(f, "the session begins anew")
			b.dropFan(f)
		}
	}
	f := &fan{id: bytes.Clone(m.ID.Of(m.Frame)), method: "initialize", deadline: b.now.Add(greetTime)}
	f.finish = b.greeted
	b.greeting = f
	b.start(f)
	for _, i := range b.order {
		member := b.members[i]
		member.agreed, member.shaking, member.missing, member.failures = false, true, false, 0
		member.gone = false
		member.probing, member.probeAt = false, time.Time{}
		b.ask(f, i, b.initialize, b.initID)
	}
}

// greetWithout has initialize answered without the servers that are still starting, if any other is there. Their handshake goes
// on, within their startup_timeout.
func (b *Board) greetWithout(f *fan) {
	if !f.anyResult() {
		f.deadline = b.now.Add(time.Second)
		return
	}
	for _, p := range slices.Clone(f.parts) {
		if p.settled {
			continue
		}
		late := &fan{method: f.method, open: 1}
		own := &part{fan: late, server: p.server, id: p.id, page: 1}
		late.parts = []*part{own}
		late.finish = func(*fan) { b.shookLate(own.server, own) }
		b.start(late)
		b.parts[own.id] = own
		p.id, p.late = "", true
		b.settle(p, nil, faultJSON(engine.CodeUnavailable, "unavailable", b.name(p.server), unavailableText(b.name(p.server), "it is still starting")))
	}
}

// greeted answers initialize once every server has, or will not.
func (b *Board) greeted(f *fan) {
	b.greeting = nil
	for _, p := range f.parts {
		if p.late {
			member := b.members[p.server]
			member.missing, member.detail = true, "it is still starting"
			b.log(engine.Record{Level: engine.LevelWarn, Event: "server_missing", Server: b.name(p.server), Detail: member.detail})
			continue
		}
		b.shook(p)
	}
	if f.anyResult() {
		b.answer(f.id, "result", b.mergedGreeting(f))
	} else {
		b.answer(f.id, "error", b.nobodyThere(f))
	}
	held := b.held
	b.held = nil
	for _, frame := range held {
		b.fromClient(frame, false)
	}
}

// nobodyThere is the error of an initialize that no server has answered: a server's own, or why each is missing.
func (b *Board) nobodyThere(f *fan) []byte {
	err := f.firstError()
	if len(f.parts) == 1 || !isAbsence(err) {
		return err
	}
	var why []string
	for _, p := range f.parts {
		why = append(why, messageOf(p.err))
	}
	text := strings.Join(why, " ")
	if len(text) > maxWhy {
		text = strings.ToValidUTF8(text[:maxWhy], "") + "…"
	}
	return faultJSON(codeOf(err), "unavailable", "", text)
}

// maxWhy bounds what an error says about all servers, in bytes.
const maxWhy = 4 << 10

// shook takes in how the handshake with a server went.
func (b *Board) shook(p *part) {
	member := b.members[p.server]
	member.shaking = false
	if p.err != nil {
		b.lost(p.server, messageOf(p.err))
		return
	}
	member.agreed, member.failures, member.probeAt = true, 0, time.Time{}
	capabilities, _ := jsonrpc.Lookup(p.result, whole(p.result), "capabilities")
	member.capabilities = capabilities.Of(p.result)
}

// mergedGreeting is the result of initialize for all servers together.
func (b *Board) mergedGreeting(f *fan) []byte {
	for _, p := range f.parts {
		v := textIn(p.result, "protocolVersion")
		if v != "" && (b.protocol == "" || v < b.protocol) { // versions are dates
			b.protocol = v
		}
	}
	return encode(struct {
		ProtocolVersion string         `json:"protocolVersion"`
		Capabilities    map[string]any `json:"capabilities"`
		ServerInfo      implementation `json:"serverInfo"`
		Instructions    string         `json:"instructions,omitempty"`
	}{b.protocol, b.mergedCapabilities(f), b.self(), b.mergedInstructions(f)})
}

// implementation says who somebody is.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

func (b *Board) self() implementation {
	version := b.version
	if version == "" {
		version = "unknown"
	}
	return implementation{"mcp-retry", version}
}

// mergedInstructions says what the servers want the model to know, each under its name.
func (b *Board) mergedInstructions(f *fan) string {
	var text strings.Builder
	for _, p := range f.parts {
		own := textIn(p.result, "instructions")
		if strings.TrimSpace(own) == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString("# " + b.name(p.server) + " (its tools begin with " + b.names.prefixes[p.server] + ")\n\n" + own)
	}
	return text.String()
}

// discover passes server/discover on to all servers.
func (b *Board) discover(m *jsonrpc.Message) {
	f := &fan{id: bytes.Clone(m.ID.Of(m.Frame)), method: "server/discover", deadline: b.now.Add(listTime)}
	f.finish = b.discovered
	frame, idAt := frameOf(f.method, paramsOf(m))
	b.start(f)
	for _, i := range b.order {
		b.ask(f, i, frame, idAt)
	}
}

// discovered answers server/discover for all servers together.
func (b *Board) discovered(f *fan) {
	var versions []string
	first := true
	for _, p := range f.parts {
		if p.err != nil {
			b.leftOut(p, f.method)
			continue
		}
		var r struct{ SupportedVersions []string }
		decode(p.result, &r)
		if first {
			versions, first = r.SupportedVersions, false
		} else {
			versions = intersection(versions, r.SupportedVersions)
		}
		capabilities, _ := jsonrpc.Lookup(p.result, whole(p.result), "capabilities")
		b.members[p.server].capabilities = capabilities.Of(p.result)
	}
	if first {
		b.answer(f.id, "error", f.firstError())
		return
	}
	b.answer(f.id, "result", encode(struct {
		ResultType        string                    `json:"resultType"`
		SupportedVersions []string                  `json:"supportedVersions"`
		Capabilities      map[string]any            `json:"capabilities"`
		Instructions      string                    `json:"instructions,omitempty"`
		TTL               int                       `json:"ttlMs"`
		Scope             string                    `json:"cacheScope"`
		Meta              map[string]implementation `json:"_meta"`
	}{"complete", versions, b.mergedCapabilities(f), b.mergedInstructions(f), 0, "private",
		map[string]implementation{"io.modelcontextprotocol/serverInfo": b.self()}}))
}

func intersection(a, other []string) []string {
	both := []string{}
	for _, v := range a {
		for _, w := range other {
			if v == w {
				both = append(both, v)
			}
		}
	}
	return both
}

// setLevel passes the least level of log messages on to all servers that log.
func (b *Board) setLevel(m *jsonrpc.Message) {
	b.logLevel = paramsOf(m)
	f := &fan{id: bytes.Clone(m.ID.Of(m.Frame)), method: "logging/setLevel", deadline: b.now.Add(listTime)}
	f.finish = func(f *fan) {
		if len(f.parts) > 0 && !f.anyResult() {
			b.answer(f.id, "error", f.firstError())
			return
		}
		b.answer(f.id, "result", []byte("{}"))
	}
	frame, idAt := frameOf(f.method, b.logLevel)
	b.askAll(f, frame, idAt)
}

// askAll begins a fan with a part for every server that declares what it takes.
func (b *Board) askAll(f *fan, frame []byte, idAt jsonrpc.Span) {
	b.start(f)
	for _, i := range b.order {
		if b.asks(i, f.method) {
			b.ask(f, i, frame, idAt)
		}
	}
	if len(f.parts) == 0 {
		b.dropFan(f)
		f.finish(f)
	}
}

// leftOut takes in that a server did not answer what all were asked.
func (b *Board) leftOut(p *part, method string) {
	if isAbsence(p.err) {
		b.lost(p.server, messageOf(p.err))
		if codeOf(p.err) == engine.CodeUnavailable {
			b.gone(p.server, method)
		}
		return
	}
	level := engine.LevelWarn
	if codeOf(p.err) == codeNoMethod {
		level = engine.LevelDebug
	}
	b.log(engine.Record{Level: level, Event: "server_left_out", Server: b.name(p.server), Code: codeOf(p.err), Detail: method + ": " + messageOf(p.err)})
}
