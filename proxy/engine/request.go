package engine

import (
	"bytes"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// read finds what concerns us in the request. m was parsed from the same bytes as the operation's frame. A member that we
// read and that is repeated is refused: the server could read the other one, and so run what policy has not seen.
func (op *operation) read(m *jsonrpc.Message) (name jsonrpc.Span, bad *fault) {
	op.id, op.params = m.ID, m.Params
	op.args, op.meta, op.token = jsonrpc.Span{}, jsonrpc.Span{}, jsonrpc.Span{}
	var names, argses, metas int
	for member := range jsonrpc.Members(op.frame, op.params) {
		switch string(member.Key) {
		case "name":
			names++
			if name = member.Value; op.frame[name.Start] != '"' {
				return name, &fault{code: codeParams, text: "tools/call: params.name must be a string"}
			}
		case "arguments":
			argses++
			op.args = member.Value
		case "_meta":
			metas++
			op.meta = member.Value
			op.token, _ = progressToken(op.frame, op.meta)
		case "task", "inputResponses", "requestState":
			op.special = true
		}
	}
	switch {
	case max(names, argses, metas) > 1:
		return name, &fault{code: codeInvalid, text: "tools/call: params repeats name, arguments or _meta, so that peers may read it differently"}
	case names == 0:
		return name, &fault{code: codeParams, text: "tools/call without a tool name: params.name must be a string"}
	case !isObject(op.frame, op.args) || !isObject(op.frame, op.meta):
		return name, &fault{code: codeParams, text: "tools/call: params.arguments and params._meta must be objects"}
	}
	keys := times(op.frame, op.args, keyArgument)
	op.keyGiven = keys > 0
	if max(keys, times(op.frame, op.meta, "progressToken"), times(op.frame, op.meta, "idempotencyKey")) > 1 {
		return name, &fault{code: codeInvalid, text: "tools/call repeats its progress token or idempotency key, so that peers may read it differently"}
	}
	op.facts.Args, op.facts.Meta = objectAt(op.frame, op.args), objectAt(op.frame, op.meta)
	return name, nil
}

// isObject reports whether a member of the parameters is an object, or as good as absent.
func isObject(frame []byte, at jsonrpc.Span) bool {
	return at.Empty() || frame[at.Start] == '{' || frame[at.Start] == 'n'
}

// objectAt is the object at a place of the frame, nil if there is none.
func objectAt(frame []byte, at jsonrpc.Span) []byte {
	if at.Empty() || frame[at.Start] != '{' {
		return nil
	}
	return at.Of(frame)
}

// times counts the members of an object that have a name.
func times(frame []byte, object jsonrpc.Span, name string) int {
	n := 0
	if !mayName(object.Of(frame), name) {
		return n
	}
	for member := range jsonrpc.Members(frame, object) {
		if string(member.Key) == name {
			n++
		}
	}
	return n
}

// keyArgument is the argument in which clients that cannot set _meta put an idempotency key.
const keyArgument = "_idempotency_key"

// takeClientKey returns the JSON value of the idempotency key that the client gave in _meta.idempotencyKey or in
// arguments._idempotency_key, nil if none. The second is cut out of the request: the tool never asked for it.
func (op *operation) takeClientKey() []byte {
	var key []byte
	if span, ok := jsonrpc.Lookup(op.frame, op.meta, "idempotencyKey"); ok {
		key = given(span.Of(op.frame))
	}
	if !op.keyGiven {
		return key
	}
	for member := range jsonrpc.Members(op.frame, op.args) {
		if string(member.Key) == keyArgument {
			if key == nil {
				key = given(member.Value.Of(op.frame))
			}
			op.edit(jsonrpc.RemoveMember(op.frame, op.args, member))
			break
		}
	}
	return key
}

// mayName tells quickly that an object has no member of a name; true means that it is worth a look.
func mayName(object []byte, name string) bool {
	return bytes.Contains(object, []byte(name)) || bytes.IndexByte(object, '\\') >= 0
}

// given returns a key unless it is null or empty, which is no key.
func given(raw []byte) []byte {
	if s := string(raw); s == "null" || s == `""` {
		return nil
	}
	return raw
}

// forward puts the key where the server wants it.
func (op *operation) forward(key []byte) {
	place, name, ok := strings.Cut(op.decided.ForwardKey, ".")
	if !ok {
		return
	}
	object := op.args
	if place == "_meta" {
		object = op.meta
	}
	if objectAt(op.frame, object) == nil {
		value := slices.Concat([]byte("{"), jsonrpc.AppendQuoted(nil, name), []byte(":"), key, []byte("}"))
		if object.Empty() {
			op.edit(jsonrpc.InsertMember(op.frame, op.params, place, value))
		} else {
			op.edit(jsonrpc.Edit{At: object, New: value}) // it is null
		}
		return
	}
	if old, there := jsonrpc.Lookup(op.frame, object, name); there {
		op.edit(jsonrpc.Edit{At: old, New: key})
		return
	}
	op.edit(jsonrpc.InsertMember(op.frame, object, name, key))
}

// edit changes the request that will be sent. What was read of it stays valid, for it lies in the old frame.
func (op *operation) edit(change jsonrpc.Edit) {
	frame := jsonrpc.Splice(nil, op.frame, change)
	var m jsonrpc.Message
	if jsonrpc.Parse(frame, &m) == nil { // always: a member cut or added leaves the frame valid
		op.frame = frame
		op.read(&m)
	}
}
