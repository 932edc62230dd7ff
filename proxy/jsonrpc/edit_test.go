package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

func TestSpliceAndPieces(t *testing.T) {
	const frame = "0123456789"
	for _, tt := range []struct {
		name  string
		edits []Edit
		want  string
	}{
		{"none", nil, "0123456789"},
		{"replace", []Edit{{Span{2, 4}, []byte("ab")}}, "01ab456789"},
		{"grow and shrink", []Edit{{Span{0, 1}, []byte("abc")}, {Span{8, 10}, []byte("z")}}, "abc1234567z"},
		{"delete", []Edit{{Span{3, 7}, nil}}, "012789"},
		{"insert at both ends", []Edit{{Span{0, 0}, []byte("<")}, {Span{10, 10}, []byte(">")}}, "<0123456789>"},
		{"insert before a replacement", []Edit{{Span{5, 5}, []byte("+")}, {Span{5, 6}, []byte("-")}}, "01234+-6789"},
		{"touching", []Edit{{Span{2, 3}, []byte("a")}, {Span{3, 4}, []byte("b")}}, "01ab456789"},
		{"all", []Edit{{Span{0, 10}, nil}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Splice([]byte("> "), []byte(frame), tt.edits...); string(got) != "> "+tt.want {
				t.Errorf("Splice: got %q, want %q", got, "> "+tt.want)
			}
			pieces := Pieces([][]byte{[]byte("> ")}, []byte(frame), tt.edits...)
			if got := bytes.Join(pieces, nil); string(got) != "> "+tt.want {
				t.Errorf("Pieces: got %q, want %q", got, "> "+tt.want)
			}
			for _, p := range pieces {
				if len(p) == 0 {
					t.Error("Pieces: a piece is empty")
				}
			}
		})
	}
}

func TestPiecesCopiesNothing(t *testing.T) {
	frame, id := []byte(`{"id":1,"x":2}`), []byte("77")
	pieces := Pieces(nil, frame, Edit{At: Span{6, 7}, New: id})
	if len(pieces) != 3 || &pieces[0][0] != &frame[0] || &pieces[1][0] != &id[0] || &pieces[2][0] != &frame[7] {
		t.Errorf("pieces %q are not parts of the frame and the new id", pieces)
	}
}

func TestRemoveMember(t *testing.T) {
	for _, tt := range []struct{ obj, key, want string }{
		{`{"a":1}`, "a", `{}`},
		{`{ "a":1 }`, "a", `{  }`},
		{`{"a":1,"b":2,"c":3}`, "a", `{"b":2,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "b", `{"a":1,"c":3}`},
		{`{"a":1,"b":2,"c":3}`, "c", `{"a":1,"b":2}`},
		{`{ "a" : 1 , "b" : {"x":[1]} , "c" : 3 }`, "b", `{ "a" : 1 , "c" : 3 }`},
		{`{ "a" : 1 , "b" : 2 }`, "b", `{ "a" : 1  }`},
		{`{"a":"x,y","b":","}`, "b", `{"a":"x,y"}`},
		{`{"\u0061":1,"b":2}`, "a", `{"b":2}`},
	} {
		frame := []byte(`[` + tt.obj + `,0]`) // an object need not begin its frame
		obj := Span{1, 1 + len(tt.obj)}
		for m := range Members(frame, obj) {
			if string(m.Key) == tt.key {
				if got := string(Splice(nil, frame, RemoveMember(frame, obj, m))); got != `[`+tt.want+`,0]` {
					t.Errorf("%s without %s is %s, want %s", tt.obj, tt.key, got, tt.want)
				}
			}
		}
	}
}

func TestInsertMember(t *testing.T) {
	for _, tt := range []struct{ obj, want string }{
		{`{}`, `{"k\n":[1]}`},
		{`{ }`, `{"k\n":[1] }`},
		{`{"a":1}`, `{"a":1,"k\n":[1]}`},
		{`{"a":{} }`, `{"a":{},"k\n":[1] }`},
		{`{"a":"{"}`, `{"a":"{","k\n":[1]}`},
	} {
		frame := []byte(`[` + tt.obj + `,0]`)
		edit := InsertMember(frame, Span{1, 1 + len(tt.obj)}, "k\n", []byte(`[1]`))
		if got := string(Splice(nil, frame, edit)); got != `[`+tt.want+`,0]` {
			t.Errorf("%s with k is %s, want %s", tt.obj, got, tt.want)
		}
	}
}

func TestB17AndB34OtherBytesStayAsTheyCame(t *testing.T) {
	const head, tail = `{"jsonrpc":"2.0", "id": `, ` ,"result":{"structuredContent":{"a":1915883588174806058,"b":12345678901234567890,` +
		`"c":0.1,"d":1.0,"e":1E5,"f":-0,"g":"a<b && c>d \u003c ` + "\u2028" + ` \/"},"unknown":[ 1 , 2 ]},"extra":null}`
	m := mustParse(t, head+`"client-1"`+tail)
	got := string(Splice(nil, m.Frame, Edit{At: m.ID, New: []byte("42")}))
	if want := head + `42` + tail; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestB33OneResultUnderManyIDs(t *testing.T) {
	m := mustParse(t, `{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`)
	for _, id := range []string{`5`, `"x"`, `8`, `9007199254740993`, `"\u00e9"`} {
		again := mustParse(t, string(Splice(nil, m.Frame, Edit{At: m.ID, New: []byte(id)})))
		if got := resolve(again); got.id != id || got.result != `{"content":[]}` {
			t.Errorf("id %s came out as %+v", id, got)
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`), "7")
	f.Add([]byte(`{"jsonrpc":"2.0", "id" : "é" ,"result":{"a":[1,{"b":2}]},"z":0}`), "a\"\\\xff")
	f.Add([]byte(`{"error":{"code":1,"message":"\u0000"},"jsonrpc":"2.0","id":null}`), "")
	f.Add([]byte(`{"params":{ "a" : 1 , "b":{} , "\u0061":[] } ,"method":"m","jsonrpc":"2.0"}`), "_meta")
	f.Fuzz(func(t *testing.T, frame []byte, text string) {
		var m Message
		if Parse(frame, &m) != nil {
			return
		}
		value := AppendQuoted(nil, text)
		if !m.ID.Empty() {
			edit := Edit{At: m.ID, New: value}
			got := Splice(nil, frame, edit)
			if !bytes.Equal(got, bytes.Join(Pieces(nil, frame, edit), nil)) {
				t.Errorf("Splice and Pieces differ")
			}
			var again Message
			if err := Parse(got, &again); err != nil {
				t.Fatalf("%s: with another id: %v", got, err)
			}
			want := resolve(&m)
			want.id = string(value)
			if resolve(&again) != want {
				t.Errorf("%s: with another id: %+v", got, resolve(&again))
			}
			if !bytes.HasPrefix(got, frame[:m.ID.Start]) || !bytes.HasSuffix(got, frame[m.ID.End:]) {
				t.Errorf("%s: other bytes changed", got)
			}
		}
		for _, obj := range []Span{{bytes.IndexByte(frame, '{'), bytes.LastIndexByte(frame, '}') + 1}, m.Params, m.Result} {
			if raw := obj.Of(frame); raw == nil || raw[0] != '{' {
				continue
			}
			all := pairs(frame, obj)
			i := 0
			for member := range Members(frame, obj) {
				edit := RemoveMember(frame, obj, member)
				got, in := edited(t, frame, obj, edit)
				if want := slices.Delete(slices.Clone(all), i, i+1); !slices.Equal(pairs(got, in), want) {
					t.Errorf("%s without %q has members %q", frame, member.Key, pairs(got, in))
				}
				i++
			}
			got, in := edited(t, frame, obj, InsertMember(frame, obj, text, value))
			want := append(slices.Clone(all), string(value)+":"+string(value))
			if !slices.Equal(pairs(got, in), want) {
				t.Errorf("%s with %q has members %q", frame, text, pairs(got, in))
			}
		}
	})
}

// edited applies an edit inside obj and returns the new frame, which must be JSON, and the new place of obj.
func edited(t *testing.T, frame []byte, obj Span, edit Edit) ([]byte, Span) {
	t.Helper()
	got := Splice(nil, frame, edit)
	if !json.Valid(got) {
		t.Fatalf("%s: edited: not JSON: %s", frame, got)
	}
	if !bytes.HasPrefix(got, frame[:obj.Start]) || !bytes.HasSuffix(got, frame[obj.End:]) {
		t.Errorf("%s: edited: other bytes changed: %s", frame, got)
	}
	return got, Span{obj.Start, obj.End + len(got) - len(frame)}
}

// pairs returns the raw members of an object.
func pairs(frame []byte, obj Span) []string {
	var all []string
	for m := range Members(frame, obj) {
		all = append(all, string(m.Pair.Of(frame)))
	}
	return all
}
