package jsonrpc

import (
	"slices"
	"strings"
	"testing"
)

// whole is the span of all of s, which has no white space around it.
func whole(s string) Span { return Span{0, len(s)} }

func TestMembersYieldsDecodedNamesAndAbsoluteSpans(t *testing.T) {
	frame := `{"jsonrpc":"2.0","id":1,"method":"m","params":{ "a" : [1, {"b":"}"}] ,"\u00e4\"":"x\"y", "n":-1.5e3,"t":true,"a":{} }}`
	m := mustParse(t, frame)
	var got [][3]string
	for x := range Members(m.Frame, m.Params) {
		got = append(got, [3]string{string(x.Key), string(x.Pair.Of(m.Frame)), string(x.Value.Of(m.Frame))})
	}
	want := [][3]string{
		{`a`, `"a" : [1, {"b":"}"}]`, `[1, {"b":"}"}]`},
		{`ä"`, `"\u00e4\"":"x\"y"`, `"x\"y"`},
		{`n`, `"n":-1.5e3`, `-1.5e3`},
		{`t`, `"t":true`, `true`},
		{`a`, `"a":{}`, `{}`},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestMembersCanBeLeftEarly(t *testing.T) {
	frame := `{"a":1,"b":2}`
	for m := range Members([]byte(frame), whole(frame)) {
		if string(m.Key) != "a" {
			t.Errorf("went on to %q", m.Key)
		}
		break
	}
}

func TestElements(t *testing.T) {
	for arr, want := range map[string][]string{
		`[]`:      nil,
		`[ ]`:     nil,
		`{"a":1}`: nil,
		`5`:       nil,
		``:        nil,
		"[1]":     {"1"},
		"[ \"],\" ,[ 2,3 ] , {\"a\":[]},null\t,\n-1 ]": {`"],"`, `[ 2,3 ]`, `{"a":[]}`, `null`, `-1`},
	} {
		var got []string
		for s := range Elements([]byte(arr), whole(arr)) {
			got = append(got, string(s.Of([]byte(arr))))
		}
		if !slices.Equal(got, want) {
			t.Errorf("Elements(%s) = %q, want %q", arr, got, want)
		}
	}
}

func TestLookup(t *testing.T) {
	obj := `{"name":"a","\u006eame":"b","Name":"c","arguments":{"name":"d"},"":0}`
	for key, want := range map[string]string{
		"name": `"a"`, "Name": `"c"`, "arguments": `{"name":"d"}`, "": `0`, "nam": "", "name\x00": "",
	} {
		s, ok := Lookup([]byte(obj), whole(obj), key)
		if got := string(s.Of([]byte(obj))); got != want || ok != (want != "") {
			t.Errorf("Lookup(%q) = %q, %v; want %q", key, got, ok, want)
		}
	}
}

func TestMembersOfWhatIsNoObject(t *testing.T) {
	for _, s := range []string{``, `{`, `{}`, `{ }`, `[]`, `["a"]`, `"a"`, `1`, `null`} {
		for m := range Members([]byte(s), whole(s)) {
			t.Errorf("Members(%s) yields %q", s, m.Key)
		}
		if _, ok := Lookup([]byte(s), whole(s), "a"); ok {
			t.Errorf("Lookup in %s finds something", s)
		}
	}
	for _, s := range []Span{{}, {5, 2}, {-1, 3}, {0, 99}} {
		for m := range Members([]byte(`{"a":1}`), s) {
			t.Errorf("Members at %v yields %q", s, m.Key)
		}
	}
}

func TestMembersStopsAtBrokenJSON(t *testing.T) {
	for _, s := range []string{
		`{"a":1,`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1,b:2}`, `{"a":1,"b"}`, `{"a":1,"b":}`, `{"a":1,"b":[`, `{"a":1,"\u12":2}`, `{"a":1,"\":2}`, `{"a":1,"b`,
	} {
		n := 0
		for range Members([]byte(s), whole(s)) {
			n++
		}
		if n != 1 {
			t.Errorf("Members(%s) yields %d members, want 1", s, n)
		}
	}
}

func TestMembersPassesLongEscapedTextInOneGo(t *testing.T) {
	// Looking for the closing quote anew after each escape would take hours.
	for _, unit := range []string{`\n`, `\\`, `\"`, `{`, `\u0041`} {
		frame := `{"a":{"b":"` + strings.Repeat(unit, 4<<20) + `"},"c":1}`
		if s, ok := Lookup([]byte(frame), whole(frame), "c"); !ok || string(s.Of([]byte(frame))) != "1" {
			t.Errorf("after text of %s: %v, %v", unit, s, ok)
		}
	}
}

func TestMembersDoesNotAllocate(t *testing.T) {
	frame := []byte(`{"a":1,"b":{"c":[1,2,3]},"d":"x\ny"}`)
	var sum int
	if n := testing.AllocsPerRun(100, func() {
		for m := range Members(frame, Span{0, len(frame)}) {
			sum += len(m.Key)
		}
		for s := range Elements(frame, Span{14, 21}) {
			sum += s.Start
		}
		if _, ok := Lookup(frame, Span{0, len(frame)}, "d"); !ok {
			t.Fatal("no d")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
