package compose

import (
	"bytes"
	"encoding/json"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// textIn is the text of a member of an object, "" if it has none.
func textIn(object []byte, key string) string {
	span, _ := jsonrpc.Lookup(object, whole(object), key)
	text, _ := jsonrpc.Text(span.Of(object))
	return text
}

// paramsOf is a copy of the parameters of a request without its progress token, nil if they are no object: several servers
// would report the progress of different things under one token.
func paramsOf(m *jsonrpc.Message) []byte {
	raw := m.Params.Of(m.Frame)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	meta, ok := jsonrpc.Lookup(raw, whole(raw), "_meta")
	if !ok {
		return bytes.Clone(raw)
	}
	return jsonrpc.Splice(nil, raw, jsonrpc.Edit{At: meta, New: withoutToken(meta.Of(raw))})
}

// withoutToken is a copy of a _meta object without its progress token.
func withoutToken(meta []byte) []byte {
	for member := range jsonrpc.Members(meta, whole(meta)) {
		if string(member.Key) == "progressToken" {
			return jsonrpc.Splice(nil, meta, jsonrpc.RemoveMember(meta, whole(meta), member))
		}
	}
	return bytes.Clone(meta)
}

// decode reads JSON, numbers as they are written.
func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(into)
}

// encode is the JSON text of a value that has one.
func encode(v any) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("{}")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
