package jsonrpc

import (
	"strings"
	"testing"
)

// parsed is a Message with its spans resolved.
type parsed struct {
	kind                              Kind
	id, method, params, result, error string
}

func resolve(m *Message) parsed {
	return parsed{
		kind:   m.Kind,
		id:     string(m.ID.Of(m.Frame)),
		method: string(m.Method),
		params: string(m.Params.Of(m.Frame)),
		result: string(m.Result.Of(m.Frame)),
		error:  string(m.Err.Of(m.Frame)),
	}
}

func mustParse(t testing.TB, frame string) *Message {
	t.Helper()
	m := new(Message)
	if err := Parse([]byte(frame), m); err != nil {
		t.Fatalf("Parse(%q): %v", frame, err)
	}
	return m
}

func TestParseAccepts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		frame string
		want  parsed
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			parsed{kind: Request, id: "1", method: "ping"}},
		{"params object", `{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1,{"y":null}]}}`,
			parsed{kind: Request, id: `"a"`, method: "m", params: `{"x":[1,{"y":null}]}`}},
		{"params array", `{"jsonrpc":"2.0","id":1,"method":"m","params":[]}`,
			parsed{kind: Request, id: "1", method: "m", params: "[]"}},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
			parsed{kind: Request, id: "1", method: "m", params: "null"}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			parsed{kind: Notification, method: "notifications/initialized"}},
		{"result", `{"result":{},"jsonrpc":"2.0","id":5}`,
			parsed{kind: Result, id: "5", result: "{}"}},
		{"null result", `{"jsonrpc":"2.0","id":5,"result":null}`,
			parsed{kind: Result, id: "5", result: "null"}},
		{"error", `{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"x"}}`,
			parsed{kind: Error, id: "5", error: `{"code":-1,"message":"x"}`}},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-1,"message":"x"}}`,
			parsed{kind: Error, error: `{"code":-1,"message":"x"}`}},
		{"white space", " \t{ \"jsonrpc\"\t: \"2.0\" , \"id\" : 7 , \"method\" : \"m\" , \"params\" : { } } ",
			parsed{kind: Request, id: "7", method: "m", params: "{ }"}},
		{"escaped names and method", `{"json\u0072pc":"2\u002e0","\u0069d":1,"method":"tools\/c\u00e4ll"}`,
			parsed{kind: Request, id: "1", method: "tools/cäll"}},
		{"unknown members", `{"jsonrpc":"2.0","x":1,"id":1,"x":[2],"method":"m","ID":3,"Method":"other"}`,
			parsed{kind: Request, id: "1", method: "m"}},
		{"envelope names inside values", `{"jsonrpc":"2.0","id":1,"result":{"id":2,"method":"m","id":3}}`,
			parsed{kind: Result, id: "1", result: `{"id":2,"method":"m","id":3}`}},
		{"fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`,
			parsed{kind: Request, id: "1.5", method: "m"}},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`,
			parsed{kind: Request, id: "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := resolve(mustParse(t, tt.frame)); got != tt.want {
				t.Errorf("Parse(%q)\n got %+v\nwant %+v", tt.frame, got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const head = `{"jsonrpc":"2.0",`
	for _, tt := range []struct {
		name  string
		frame string
		code  int
		id    string
		text  string // part of the message
	}{
		{"empty", ``, CodeParseError, "", "unexpected end"},
		{"truncated", head + `"id":1,"method":"m`, CodeParseError, "", "unexpected end"},
		{"trailing comma", head + `"id":1,}`, CodeParseError, "", `'}'`},
		{"leading comma", `{,"id":1}`, CodeParseError, "", `','`},
		{"trailing data", head + `"id":1,"method":"m"}{}`, CodeParseError, "", `'{' at byte 37`},
		{"control character", head + "\"id\":1,\"method\":\"a\x01b\"}", CodeParseError, "", "control character"},
		{"line feed between tokens", head + "\n\"id\":1,\"method\":\"m\"}", CodeParseError, "", "line break"},
		{"carriage return between tokens", head + "\"id\":1,\r\"method\":\"m\"}", CodeParseError, "", "line break inside the frame at byte 24"},
		{"carriage return in params", head + "\"id\":1,\"method\":\"m\",\"params\":[\r]}", CodeParseError, "", "line break"},
		{"bad escape", head + `"id":1,"method":"\x41"}`, CodeParseError, "", "invalid escape"},
		{"bad number", head + `"id":01,"method":"m"}`, CodeParseError, "", `'1'`},
		{"byte order mark", "\xEF\xBB\xBF{}", CodeParseError, "", "unexpected character"},

		{"number", `5`, CodeInvalidRequest, "", "not a JSON object"},
		{"string", `"x"`, CodeInvalidRequest, "", "not a JSON object"},
		{"empty object", `{}`, CodeInvalidRequest, "", "jsonrpc"},
		{"no version", `{"id":1,"method":"m"}`, CodeInvalidRequest, "1", "jsonrpc"},
		{"wrong version", `{"jsonrpc":"1.0","id":"x","method":"m"}`, CodeInvalidRequest, `"x"`, "jsonrpc"},
		{"number as version", `{"jsonrpc":2.0,"id":1,"method":"m"}`, CodeInvalidRequest, "1", "jsonrpc"},
		{"other case", `{"JSONRPC":"2.0","id":1,"method":"m"}`, CodeInvalidRequest, "1", "jsonrpc"},
		{"method in other case", head + `"id":1,"Method":"m"}`, CodeInvalidRequest, "1", "no method"},
		{"nothing to do", head + `"id":1}`, CodeInvalidRequest, "1", "no method"},
		{"null id", head + `"id":null,"method":"m"}`, CodeInvalidRequest, "", "null"},
		{"object as id", head + `"id":{},"method":"m"}`, CodeInvalidRequest, "", "id"},
		{"boolean as id", head + `"id":true,"result":1}`, CodeInvalidRequest, "", "id"},
		{"method not a string", head + `"id":1,"method":7}`, CodeInvalidRequest, "1", "method"},
		{"null method", head + `"id":1,"method":null}`, CodeInvalidRequest, "1", "method"},
		{"params a string", head + `"id":1,"method":"m","params":"x"}`, CodeInvalidRequest, "1", "params"},
		{"params a number", head + `"method":"m","params":0}`, CodeInvalidRequest, "", "params"},
		{"method and result", head + `"id":1,"method":"m","result":1}`, CodeInvalidRequest, "1", "beside"},
		{"method and error", head + `"id":1,"method":"m","error":{}}`, CodeInvalidRequest, "1", "beside"},
		{"result and error", head + `"id":1,"error":{},"result":1}`, CodeInvalidRequest, "1", "beside"},
		{"result without id", head + `"result":1}`, CodeInvalidRequest, "", "id"},

		{"repeated method", head + `"id":1,"method":"a","method":"a"}`, CodeInvalidRequest, "1", "repeated"},
		{"repeated by an escape", head + `"id":1,"method":"a","m\u0065thod":"b"}`, CodeInvalidRequest, "1", "repeated"},
		{"repeated id", head + `"id":1,"method":"a","id":1}`, CodeInvalidRequest, "", "repeated"},
		{"repeated jsonrpc", head + `"id":1,"method":"a","jsonrpc":"2.0"}`, CodeInvalidRequest, "1", "repeated"},
		{"repeated params", head + `"id":1,"params":{},"method":"a","params":{}}`, CodeInvalidRequest, "1", "repeated"},
		{"repeated result", head + `"id":1,"result":1,"result":2}`, CodeInvalidRequest, "1", "repeated"},
		{"repeated error", head + `"id":1,"error":{},"error":{}}`, CodeInvalidRequest, "1", "repeated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Message
			err := Parse([]byte(tt.frame), &m)
			if err == nil {
				t.Fatalf("Parse(%q) = %+v, want an error", tt.frame, resolve(&m))
			}
			if err.Code != tt.code || string(err.ID) != tt.id || err.Batch {
				t.Errorf("Parse(%q): code %d, id %q, batch %v; want %d, %q, false", tt.frame, err.Code, err.ID, err.Batch, tt.code, tt.id)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("Parse(%q): %q does not name %q", tt.frame, err, tt.text)
			}
		})
	}
}

func TestParseNamesBatches(t *testing.T) {
	for frame, code := range map[string]int{
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: CodeInvalidRequest,
		` []`:                          CodeInvalidRequest,
		`[{"jsonrpc":"2.0","id":1,"m`:  CodeParseError,
		`[{"jsonrpc":"2.0"}] trailing`: CodeParseError,
	} {
		err := Parse([]byte(frame), new(Message))
		if err == nil || !err.Batch || err.Code != code || err.ID != nil {
			t.Errorf("Parse(%q) = %+v, want a batch refused with %d", frame, err, code)
		}
	}
}

func TestParseOverwritesTheWholeMessage(t *testing.T) {
	m := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`)
	if err := Parse([]byte(`{"jsonrpc":"2.0","error":{}}`), m); err != nil {
		t.Fatal(err)
	}
	if got, want := resolve(m), (parsed{kind: Error, error: "{}"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseChecksNestedValues(t *testing.T) {
	for value, valid := range map[string]bool{
		`0`: true, `-0`: true, `-0.0e-0`: true, `1E+5`: true, `10.25`: true, `1e5`: true,
		`+1`: false, `.5`: false, `5.`: false, `-`: false, `1e`: false, `1e+`: false, `00`: false, `0x1`: false, `1.e5`: false,
		`true`: true, `false`: true, `null`: true, `tru`: false, `truee`: false, `True`: false, `nul`: false, `NaN`: false, `Infinity`: false,
		`""`: true, `"\"\\\/\b\f\n\r\t\u00e4\uD83D\uDE00"`: true, `"\ud800"`: true,
		`"\u12"`: false, `"\u12g4"`: false, `"\U1234"`: false, `"\'"`: false, `"`: false, `"\"`: false, `'a'`: false,
		"\"tab\there\"": false, "\"\x7f\"": true, "\"\u2028\u2029\uFEFF\"": true,
		"\"\xff\"": false, "\"\xc0\x80\"": false, "\"\xed\xa0\x80\"": false, "\"\xf4\x90\x80\x80\"": false, "\"\xe2\x82\"": false,
		`[]`: true, `[ ]`: true, `[1,2]`: true, `[1 2]`: false, `[1,]`: false, `[,1]`: false, `[`: false, `]`: false, `[}`: false,
		`{}`: true, `{ }`: true, `{"a":1,"a":2}`: true, `{"a":1,}`: false, `{"a"}`: false, `{"a":}`: false, `{a:1}`: false, `{1:1}`: false, `{"a" 1}`: false, `{]`: false,
		`[[[]],{"a":[{"b":{}}]}]`: true, `[[[]],{"a":[{"b":{}]}]`: false,
		`[1]]`: false, `{}}`: false, `/**/1`: false, `undefined`: false, "": false,
		`"` + strings.Repeat("aä", 50) + `"`: true, `"` + strings.Repeat("a", 50) + "\x1f" + `"`: false,
	} {
		err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":`+value+`}`), new(Message))
		if valid != (err == nil) {
			t.Errorf("value %q: error %v, want valid = %v", value, err, valid)
		}
		if err != nil && err.Code != CodeParseError {
			t.Errorf("value %q: code %d", value, err.Code)
		}
	}
}

func TestParseFindsFaultsAtEveryOffset(t *testing.T) {
	// The string scanner works on eight bytes at a time: a fault must be seen wherever it stands in a word.
	for length := range 40 {
		for at := range length {
			for _, fault := range []string{"\x00", "\x1f", "\n", "\xff", `\q`, `"`} {
				text := strings.Repeat("a", at) + fault + strings.Repeat("b", length-at)
				frame := `{"jsonrpc":"2.0","id":1,"result":"` + text + `"}`
				if err := Parse([]byte(frame), new(Message)); err == nil {
					t.Fatalf("Parse(%q) accepted", frame)
				}
			}
		}
	}
}

func TestParseBoundsDepth(t *testing.T) {
	frame := func(depth int) []byte { // of the whole frame
		open, shut := strings.Repeat(`[{"a":`, depth/2), strings.Repeat(`}]`, depth/2)
		return []byte(`{"jsonrpc":"2.0","id":1,"result":` + open + `0` + shut + `}`)
	}
	if err := Parse(frame(maxDepth-1), new(Message)); err != nil {
		t.Errorf("depth %d: %v", maxDepth-1, err)
	}
	err := Parse(frame(maxDepth+2), new(Message))
	if err == nil || err.Code != CodeParseError || !strings.Contains(err.Message, "deep") || !err.TooDeep {
		t.Errorf("depth %d: error %v", maxDepth+2, err)
	}
	if err := Parse([]byte(`{"a":[}`), new(Message)); err == nil || err.TooDeep {
		t.Errorf("what is no JSON: %v", err)
	}
	if err := Parse([]byte(strings.Repeat("[", 10<<20)), new(Message)); err == nil || !err.Batch {
		t.Errorf("ten million brackets: %v", err)
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,"\u00e4",true]}}}`)
	var m Message
	if n := testing.AllocsPerRun(100, func() {
		if Parse(frame, &m) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}

func TestB10NoiseIsNotAMessage(t *testing.T) {
	for _, line := range []string{
		"Server listening on port 3000", "options {", `  "name": "x",`, "}", "\x1b[32mINFO\x1b[0m ready", "undefined", "Content-Length: 120",
	} {
		if err := Parse([]byte(line), new(Message)); err == nil || err.Code != CodeParseError {
			t.Errorf("Parse(%q) = %v, want a parse error", line, err)
		}
	}
}

func TestB12InvalidUTF8IsAParseError(t *testing.T) {
	for _, frame := range []string{
		"\xFF\xFE",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\xFE\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"m\xFF\":1,\"method\":\"m\"}",
	} {
		if err := Parse([]byte(frame), new(Message)); err == nil || err.Code != CodeParseError || err.ID != nil {
			t.Errorf("Parse(%q) = %+v, want a parse error without id", frame, err)
		}
	}
	err := Parse([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"0123456789\xFF\"}"), new(Message))
	if want := "invalid JSON: invalid UTF-8 at byte 44"; err == nil || err.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestB21LargeIDsKeepTheirLiteral(t *testing.T) {
	for _, id := range []string{
		"9007199254740992", "9007199254740993", "-9223372036854775808", "9223372036854775807", "18446744073709551615", "1e400",
	} {
		m := mustParse(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"m"}`)
		if got := string(m.ID.Of(m.Frame)); got != id {
			t.Errorf("id %s came out as %s", id, got)
		}
	}
}

func TestB26AndB27ResponsesWithNullID(t *testing.T) {
	for frame, kind := range map[string]Kind{
		`{"jsonrpc":"2.0","id":null,"result":{}}`:                            Result,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`: Error,
	} {
		m := mustParse(t, frame)
		if m.Kind != kind || string(m.ID.Of(m.Frame)) != "null" {
			t.Errorf("Parse(%s) = %+v", frame, resolve(m))
		}
	}
}

func TestB31KindDoesNotDependOnTheID(t *testing.T) {
	request := mustParse(t, `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`)
	result := mustParse(t, `{"jsonrpc":"2.0","id":1,"result":{"method":"roots/list"}}`)
	if request.Kind != Request || request.Kind.Response() || result.Kind != Result || !result.Kind.Response() {
		t.Errorf("kinds are %v and %v", request.Kind, result.Kind)
	}
}
