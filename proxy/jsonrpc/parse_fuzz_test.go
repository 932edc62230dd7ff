package jsonrpc

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"
)

// FuzzParse holds Parse against encoding/json: the same frames are JSON, the same of them are messages, with the same
// raw values.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1.5e-3,true,null]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`,
		`{"result":{"content":[{"type":"text","text":"\u00e9\ud83d\ude00\n"}]},"jsonrpc":"2.0","id":"é"}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Größe"}}`,
		`{"jsonrpc":"2.0","\u0069d":1,"id":2,"method":"m"}`,
		` { "jsonrpc" : "2.0" , "id" : -0.0 , "method" : "m" , "params" : [ ] } `,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\x97\"}",
		`{"jsonrpc":"2.0","id":1,"method":7,"result":0}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		var m Message
		err := Parse(frame, &m)
		if !bytes.Equal(frame, before) {
			t.Fatal("Parse changed the frame")
		}
		isJSON := json.Valid(frame) && utf8.Valid(frame) && !bytes.ContainsAny(frame, "\r\n")
		if notJSON := err != nil && err.Code == CodeParseError; notJSON == isJSON {
			t.Fatalf("Parse(%q): %v, but it is JSON: %v", frame, err, isJSON)
		}
		if !isJSON {
			return
		}
		want, ok := reference(t, frame)
		if ok != (err == nil) {
			t.Fatalf("Parse(%q): %v, but it is a message: %v", frame, err, ok)
		}
		if ok && resolve(&m) != want {
			t.Errorf("Parse(%q)\n got %+v\nwant %+v", frame, resolve(&m), want)
		}
		if !ok && err.ID != nil && string(err.ID) != want.id {
			t.Errorf("Parse(%q) blames id %s", frame, err.ID)
		}
		if ok && m.Params.Of(frame) != nil {
			checkMembers(t, frame, m.Params)
		}
	})
}

// reference reads a frame, which is JSON, by encoding/json. If it is no message, only the id of the result counts.
func reference(t *testing.T, frame []byte) (p parsed, ok bool) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(frame))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return p, false
	}
	values := map[string]string{}
	repeated := false
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		switch key := name.(string); key {
		case "jsonrpc", "id", "method", "params", "result", "error":
			_, again := values[key]
			repeated = repeated || again
			values[key] = string(raw)
		}
	}
	text := func(raw string) (s string, ok bool) {
		return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal([]byte(raw), &s) == nil
	}
	isID := func(raw string) bool {
		var number json.Number
		_, isText := text(raw)
		return isText || raw != "null" && len(raw) > 0 && raw[0] != '"' && json.Unmarshal([]byte(raw), &number) == nil
	}
	p = parsed{id: values["id"], params: values["params"], result: values["result"], error: values["error"]}
	if version, _ := text(values["jsonrpc"]); version != "2.0" || repeated || p.id != "" && p.id != "null" && !isID(p.id) {
		return p, false
	}
	if rawMethod, has := values["method"]; has {
		var isText bool
		p.method, isText = text(rawMethod)
		p.kind = Notification
		if p.id != "" {
			p.kind = Request
		}
		paramsOK := p.params == "" || p.params == "null" || p.params[0] == '{' || p.params[0] == '['
		return p, isText && paramsOK && p.id != "null" && p.result == "" && p.error == ""
	}
	switch {
	case p.result != "" && p.error == "":
		p.kind = Result
		return p, p.id != ""
	case p.result == "" && p.error != "":
		p.kind = Error
		return p, true
	}
	return p, false
}

// checkMembers holds Members and Elements against encoding/json.
func checkMembers(t *testing.T, frame []byte, at Span) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(at.Of(frame)))
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	next := func() string {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	switch token {
	case json.Delim('{'):
		for m := range Members(frame, at) {
			name, err := d.Token()
			if err != nil {
				t.Fatalf("%s: Members yields %q, one too many", frame, m.Key)
			}
			if value := next(); name != string(m.Key) || value != string(m.Value.Of(frame)) {
				t.Errorf("%s: member %q: %s, want %q: %s", frame, m.Key, m.Value.Of(frame), name, value)
			}
		}
	case json.Delim('['):
		for s := range Elements(frame, at) {
			if value := next(); value != string(s.Of(frame)) {
				t.Errorf("%s: element %s, want %s", frame, s.Of(frame), value)
			}
		}
	}
	if d.More() {
		t.Errorf("%s: Members or Elements stops early", frame)
	}
}
