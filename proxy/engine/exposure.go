package engine

import (
	"crypto/sha256"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// filters reports whether some tools of the server may not exist for the client.
func (e *Engine) filters() bool {
	f := &e.server.ToolFilter
	return f.Allow != nil || len(f.Deny) > 0
}

// exposed reports whether a tool exists for the client: deny wins, and without allow everything else does.
func (e *Engine) exposed(name string) bool {
	f := &e.server.ToolFilter
	for _, glob := range f.Deny {
		if policy.Match(glob, name) {
			return false
		}
	}
	if f.Allow == nil {
		return true
	}
	for _, glob := range f.Allow {
		if policy.Match(glob, name) {
			return true
		}
	}
	return false
}

// exposedEntry reports whether an entry of tools/list is to be shown. Of an entry that repeats its name, each must be: nobody knows
// which one the client reads.
func (e *Engine) exposedEntry(frame []byte, entry jsonrpc.Span) bool {
	named := false
	for member := range jsonrpc.Members(frame, entry) {
		if string(member.Key) != "name" {
			continue
		}
		name, ok := jsonrpc.Text(member.Value.Of(frame))
		if !ok || !e.exposed(name) {
			return false
		}
		named = true
	}
	return named
}

// cutHidden appends the edits that cut out of an answer to tools/list what does not exist for the client. The rest stays byte for
// byte, a cursor to the next page included; a page may become empty.
func (e *Engine) cutHidden(edits []jsonrpc.Edit, frame []byte, result jsonrpc.Span) []jsonrpc.Edit {
	for member := range jsonrpc.Members(frame, result) {
		if string(member.Key) == "tools" {
			edits = e.cutHiddenEntries(edits, frame, member.Value)
		}
	}
	return edits
}

// cutHiddenEntries cuts each entry with the comma before it, or as long as none was kept, up to the entry that follows.
func (e *Engine) cutHiddenEntries(edits []jsonrpc.Edit, frame []byte, array jsonrpc.Span) []jsonrpc.Edit {
	var before, cut jsonrpc.Span // the entry before this one; what is cut at the front, open at its end
	kept, cutting := false, false
	for entry := range jsonrpc.Elements(frame, array) {
		hidden := !e.exposedEntry(frame, entry)
		switch {
		case hidden && kept:
			edits = append(edits, jsonrpc.Edit{At: jsonrpc.Span{Start: before.End, End: entry.End}})
		case hidden && !cutting:
			cut, cutting = entry, true
		case hidden:
			cut.End = entry.End
		case cutting:
			edits = append(edits, jsonrpc.Edit{At: jsonrpc.Span{Start: cut.Start, End: entry.Start}})
			kept, cutting = true, false
		default:
			kept = true
		}
		before = entry
	}
	if cutting {
		edits = append(edits, jsonrpc.Edit{At: cut})
	}
	return edits
}

// digestTools adds what the client sees of a page of tools to a digest: it tells whether the list has changed for the client.
func (e *Engine) digestTools(sum digest, frame []byte, array jsonrpc.Span) digest {
	if !e.filters() {
		return sha256.Sum256(append(sum[:], array.Of(frame)...))
	}
	for entry := range jsonrpc.Elements(frame, array) {
		if e.exposedEntry(frame, entry) {
			sum = sha256.Sum256(append(sum[:], entry.Of(frame)...))
		}
	}
	return sum
}
