package compose

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

const (
	maxPages = 1000     // of one server's list: it may invent cursors without end
	maxList  = 64 << 20 // bytes of one server's list
)

// lists says which member of a result holds what is listed.
var lists = map[string]string{
	"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	"tasks/list": "tasks",
}

// item is an entry of a list.
type item struct {
	raw []byte // as the client gets it
	key string // the URI, or the template; "" = none
}

// list asks all servers for what they have.
func (b *Board) list(m *jsonrpc.Message) {
	f := &fan{id: bytes.Clone(m.ID.Of(m.Frame)), method: string(m.Method), params: paramsOf(m), deadline: b.now.Add(listTime)}
	if _, there := jsonrpc.Lookup(m.Frame, m.Params, "cursor"); there {
		b.refuse(m, codeParams, "bad_params", f.method+": unknown cursor: the list has one page")
		return
	}
	b.listed = true
	f.list = lists[f.method]
	f.finish = b.listDone
	for _, i := range b.order {
		if member := b.members[i]; !member.agreed && !b.triedJustNow(member) {
			b.probe(i)
		}
	}
	frame, idAt := frameOf(f.method, f.params)
	b.askAll(f, frame, idAt)
}

// collect takes in a page of a server's list. It returns true if there is another, and asks for it.
func (b *Board) collect(p *part, m *jsonrpc.Message) (more bool) {
	f := p.fan
	entries, _ := jsonrpc.Lookup(m.Frame, m.Result, f.list)
	for span := range jsonrpc.Elements(m.Frame, entries) {
		if it, ok := b.entry(p, bytes.Clone(span.Of(m.Frame))); ok {
			p.items = append(p.items, it)
			p.size += len(it.raw)
		}
	}
	cursor, _ := jsonrpc.Lookup(m.Frame, m.Result, "nextCursor")
	next := cursor.Of(m.Frame)
	if len(next) == 0 || next[0] != '"' || p.page >= maxPages || p.size > maxList || b.told || b.members[p.server].retired {
		return false
	}
	p.page++
	params := f.params
	if params == nil {
		params = []byte("{}")
	}
	params = jsonrpc.Splice(nil, params, jsonrpc.InsertMember(params, whole(params), "cursor", next))
	frame, idAt := frameOf(f.method, params)
	b.request(p, frame, idAt)
	return true
}

// entry is an entry of a server's list as the client gets it: with the server in its name, if it has one that must be unique.
func (b *Board) entry(p *part, raw []byte) (item, bool) {
	switch p.fan.list {
	case "resources":
		return item{raw, textIn(raw, "uri")}, true
	case "resourceTemplates":
		return item{raw, textIn(raw, "uriTemplate")}, true
	case "tasks":
		return item{raw: raw}, true
	}
	span, _ := jsonrpc.Lookup(raw, whole(raw), "name")
	name, ok := jsonrpc.Text(span.Of(raw))
	if !ok {
		return item{}, false
	}
	composed, cut := b.names.compose(p.server, name)
	if cut {
		b.log(engine.Record{
			Level: engine.LevelWarn, Event: "name_cut", Server: b.name(p.server), Tool: name,
			Detail: "it is " + strconv.Quote(composed) + " at the client, since a name has " + strconv.Itoa(maxName) + " bytes at most",
		})
	}
	return item{raw: jsonrpc.Splice(nil, raw, jsonrpc.Edit{At: span, New: jsonrpc.AppendQuoted(nil, composed)})}, true
}

// listDone answers a request for a list.
func (b *Board) listDone(f *fan) {
	for _, p := range f.parts {
		if p.err != nil {
			b.leftOut(p, f.method)
		} else {
			b.members[p.server].failures = 0
		}
	}
	f.parts = slices.DeleteFunc(f.parts, func(p *part) bool { return b.members[p.server].retired })
	if len(f.parts) > 0 && !f.anyResult() {
		b.answer(f.id, "error", f.firstError())
		return
	}
	result := []byte(`{"` + f.list + `":[`)
	first := true
	for _, it := range b.unique(f) {
		if !first {
			result = append(result, ',')
		}
		first = false
		result = append(result, it.raw...)
	}
	result = append(result, ']')
	if b.modern {
		result = append(result, b.cacheHints(f)...)
	}
	b.answer(f.id, "result", append(result, '}'))
}

// unique lists the entries of all servers, in the order of the file. Of equal resources the first stays, and whose they are is
// remembered.
func (b *Board) unique(f *fan) []item {
	var all []item
	owners := map[string][]int{}
	var templates []template
	for _, p := range f.parts {
		for _, it := range p.items {
			if it.key == "" {
				all = append(all, it)
				continue
			}
			have := owners[it.key]
			switch {
			case len(have) == 0:
				templates = append(templates, newTemplate(it.key, p.server))
			case have[0] == p.server: // it names one twice
				all = append(all, it)
				continue
			default:
				if have[len(have)-1] != p.server {
					owners[it.key] = append(have, p.server)
					b.logShared(it.key, have[0], p.server)
				}
				continue
			}
			owners[it.key] = []int{p.server}
			all = append(all, it)
		}
	}
	switch f.list {
	case "resources":
		b.uris = owners
	case "resourceTemplates":
		b.templates = templates
	}
	return all
}

// cacheHints are the members that a list has in MCP 2026-07-28: the shortest life and the narrowest scope of all pages.
func (b *Board) cacheHints(f *fan) string {
	ttl, scope := int64(-1), "public"
	for _, p := range f.parts {
		if p.result == nil {
			ttl = 0 // what is missing may come back at any time
			continue
		}
		span, _ := jsonrpc.Lookup(p.result, whole(p.result), "ttlMs")
		own, _ := jsonrpc.IntID(span.Of(p.result))
		if ttl < 0 || own < ttl {
			ttl = own
		}
		if textIn(p.result, "cacheScope") != scope {
			scope = "private"
		}
	}
	return `,"resultType":"complete","ttlMs":` + strconv.FormatInt(max(ttl, 0), 10) + `,"cacheScope":"` + scope + `"`
}
