package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestRequestsAndTheirAnswersPassByteForByte(t *testing.T) {
	w := session(t, "")
	for _, tt := range []struct{ request, sent, answer, received string }{
		{
			`{"jsonrpc":"2.0", "id" : "a\u0062" ,"method":"prompts/get","params":{"x":[1.0,1E5,"\u00e9"],"_meta":{"y":null}},"extra":{}}`,
			`{"jsonrpc":"2.0", "id" : # ,"method":"prompts/get","params":{"x":[1.0,1E5,"\u00e9"],"_meta":{"y":null}},"extra":{}}`,
			`{"result":{"z":9007199254740993}, "id":#,"jsonrpc":"2.0"}`,
			`{"result":{"z":9007199254740993}, "id":"a\u0062","jsonrpc":"2.0"}`,
		},
		{
			`{"params":{"_meta":{"progressToken":"p"}},"method":"completion/complete","id":7,"jsonrpc":"2.0"}`,
			`{"params":{"_meta":{"progressToken":#}},"method":"completion/complete","id":#,"jsonrpc":"2.0"}`,
			`{"jsonrpc":"2.0","id":#,"error":{"code":-32601,"message":"no","data":[ ]}}`,
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","data":[ ]}}`,
		},
		{
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":null}}}`,
			`{"jsonrpc":"2.0","id":#,"method":"tools/list","params":{"_meta":{"progressToken":null}}}`,
			`{"jsonrpc":"2.0","id":#,"result":{"tools":[]}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`,
		},
		{
			`{"jsonrpc":"2.0","id":-0,"method":"made/up"}`, `{"jsonrpc":"2.0","id":#,"method":"made/up"}`,
			`{"jsonrpc":"2.0","id":"#","result":null}`, `{"jsonrpc":"2.0","id":-0,"result":null}`,
		},
	} {
		w.send(tt.request)
		ours := idOf(decode(t, w.server[0]))
		w.wantToServer(strings.ReplaceAll(tt.sent, "#", ours))
		w.say(strings.ReplaceAll(tt.answer, "#", ours))
		w.wantToClient(tt.received)
	}
}

func TestNotificationsPassByteForByteBothWays(t *testing.T) {
	w := session(t, "")
	for _, frame := range []string{
		`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		`{"jsonrpc": "2.0","params":[1, 2],"method":"made/up"}`,
	} {
		w.send(frame)
		w.wantToServer(frame)
		w.say(frame)
		w.wantToClient(frame)
	}
}

func TestB72EveryBadFrameOfTheClientIsAnsweredAndTheNextWorks(t *testing.T) {
	w := session(t, "")
	for _, tt := range []struct {
		frame string
		id    string
		code  int
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, "null", -32600},
		{`[]`, "null", -32600},
		{`[1,2]`, "null", -32600},
		{`[`, "null", -32700},
		{`{"jsonrpc":"2.0","id":3,"method":"pi`, "null", -32700},
		{`7`, "null", -32600},
		{`null`, "null", -32600},
		{`hello`, "null", -32700},
		{``, "null", -32700},
		{`{"jsonrpc":"2.0","id":4}`, "4", -32600},
		{`{"jsonrpc":"2.0","id":5,"result":1,"error":2}`, "5", -32600},
		{`{"jsonrpc":"1.0","id":6,"method":"ping"}`, "6", -32600},
		{`{"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":null,"method":"ping"}`, "null", -32600},
		{"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"\xff\"}", "8", -32700},
		{"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"x\"}", "null", -32700},
		{"{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":\"\xff\"}", "null", -32700},
		{"{\"jsonrpc\":\"2.0\",\"id\":8,\"id\":9,\"method\":\"\xff\"}", "null", -32700},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call"}`, "9", -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":["read"]}`, "9", -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}`, "9", -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read","arguments":[1]}}`, "9", -32602},
		{`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read","_meta":"x"}}`, "9", -32602},
	} {
		w.send(tt.frame)
		w.quiet()
		w.wantError(tt.id, tt.code)
		w.silent()
	}
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.reply(w.request("ping"), `{}`)
	w.answer("1")
}

func TestParametersThatRepeatAMemberThatWeReadAreRefused(t *testing.T) {
	w := session(t, "policy: [{when: 'tool.name == \"write\"', deny: '\"no\"'}]")
	for _, params := range []string{
		`"name":"read","name":"write"`,
		`"name":"read","n\u0061me":"write"`,
		`"name":"read","arguments":{},"arguments":{"a":1}`,
		`"name":"read","_meta":{},"_meta":{}`,
		`"name":"read","_meta":null,"_meta":{}`,
		`"name":"read","_meta":{"progressToken":1,"progressToken":2}`,
		`"name":"read","_meta":{"idempotencyKey":1,"idempotency\u004bey":2}`,
		`"name":"read","arguments":{"_idempotency_key":1,"_idempotency\u005fkey":2}`,
	} {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`)
		w.quiet()
		w.wantError("1", -32600)
	}
	w.call("2", "read", `{"name":"a","b":{"name":"c"}}`, `"x":1,"x":2`) // what we do not read is the server's business
	w.attempt()
}

func TestBatchesOfTheServerAreTakenApart(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{"n":1}`)
	w.call("2", "plain", `{"n":2}`)
	a, b := w.attempt(), w.attempt()
	w.say(`[ {"jsonrpc":"2.0","id":` + idOf(b) + `,"result":{"b":1}} ,{"jsonrpc":"2.0","method":"notifications/x"}, 7, {"no":1},` +
		`{"jsonrpc":"2.0","id":` + idOf(a) + `,"result":{"a":1}}]`)
	w.wantToClient(`{"jsonrpc":"2.0","id":2,"result":{"b":1}}`)
	w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`)
	w.silent()
	if w.logged("noise") != 2 {
		t.Errorf("the log is %v", w.logs)
	}
	w.say(`[]`)
	w.silent()
}

func TestABatchOfTheServerThatIsMostlyNoiseCostsLittle(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{"n":1}`)
	w.say(`[{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,"result":{"b":1}}` + strings.Repeat(`,1`, 1<<20) + `]`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"b":1}}`)
	w.say(`[` + strings.Repeat(`{},`, 1<<20) + `{}]`)
	w.say(`[` + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 1<<17) + `1]`)
	if n := w.logged("noise") + len(w.client); n > 1<<16 {
		t.Errorf("%d records and frames came of it", n)
	}
}

func TestB10NoiseNeverReachesTheClient(t *testing.T) {
	w := session(t, "")
	for _, line := range []string{
		`[INFO] server started`, `starting…`, `{`, `}`, `{"level":"info","msg":"ready"}`, `[{"jsonrpc":"2.0","id":1,"result":{}},`, `null`, ``, "\x1b[31mred",
		`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`,
	} {
		before := w.logged("noise")
		w.say(line)
		w.silent()
		if w.logged("noise") != before+1 {
			t.Errorf("%q was not logged as noise", line)
		}
	}
	w.call("1", "plain", `{}`)
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
}

func TestB13InvalidUTF8OfTheServerIsRepaired(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{}`)
	w.say("{\"jsonrpc\":\"2.0\",\"id\":" + idOf(w.attempt()) + ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\x97b\"}]}}")
	w.wantText("1", "a\uFFFDb")
}

func TestB15LanguageServerFramingIsNamed(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	w.say(`Content-Length: 120`)
	w.wantError("1", engine.CodeUnavailable)
	if w.stops != 1 {
		t.Errorf("the server was stopped %d times, want once", w.stops)
	}
}

func TestAnOverlongAnswerEndsOnlyItsOwnRequest(t *testing.T) {
	w := session(t, "")
	w.call("1", "write", `{}`)
	w.call("2", "plain", `{}`)
	w.send(`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`)
	a, b, list := w.attempt(), w.attempt(), w.request("resources/list")
	tooBig := func(head, tail string) {
		w.step(engine.Event{Kind: engine.ServerTooBig, Gen: w.gen, Frame: []byte(head), Tail: []byte(tail), Size: 1 << 30})
	}
	tooBig(`{"jsonrpc":"2.0","id":`+idOf(a)+`,"result":{"x":"xxxx`, `xxx"}}`)
	if data := w.wantError("1", engine.CodeTooLarge); data["mayHaveExecuted"] != "yes" {
		t.Errorf("data is %v", data)
	}
	tooBig(`{"result":["xxxx`, `xxx"],"jsonrpc":"2.0","id":`+idOf(list)+`}`)
	w.wantError("3", engine.CodeTooLarge)
	tooBig(`{"jsonrpc":"2.0","method":"x","params":["xxxx`, `xxx"],"id":`+idOf(b)+`}`) // no answer
	tooBig(`xxxx`, `xxxx`)
	w.silent()
	w.text(b, "ok")
	w.wantText("2", "ok")
}

func TestAnOverlongFrameOfTheClientIsRefusedAlone(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{}`)
	a := w.attempt()
	tooBig := func(head, tail string) {
		w.step(engine.Event{Kind: engine.ClientTooBig, Frame: []byte(head), Tail: []byte(tail), Size: 1 << 30})
		w.quiet()
	}
	tooBig(`{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"x":"`, `"}}`)
	w.wantError(`"big"`, engine.CodeTooLarge)
	tooBig(`{"jsonrpc":"2.0","method":"tools/call","params":{"x":"`, `xxxx`)
	w.wantError("null", engine.CodeTooLarge)
	w.text(a, "ok")
	w.wantText("1", "ok")
}

func TestAnOverlongAnswerOfTheClientIsRefusedInItsStead(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.call("1", "plain", `{}`)
	w.attempt()
	w.say(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
	q := decode(t, w.client[0])
	w.client = nil
	w.step(engine.Event{Kind: engine.ClientTooBig, Frame: []byte(`{"jsonrpc":"2.0","id":` + idOf(q) + `,"result":{"x":"`), Tail: []byte(`"}}`), Size: 1 << 30})
	if got := decode(t, w.server[0]); got["id"] != "q" || got["error"] == nil {
		t.Errorf("the server got %v", got)
	}
	w.advance(3 * time.Second) // the clock goes on
	w.wantError("1", engine.CodeTimeout)
}

func TestEventsAfterTheEndDoNothing(t *testing.T) {
	w := session(t, "")
	w.step(engine.Event{Kind: engine.ClientEOF})
	if !w.done {
		t.Fatal("the session did not end")
	}
	w.call("1", "plain", `{}`)
	w.die()
	w.step(engine.Event{Kind: engine.Terminate})
	w.silent()
	w.quiet()
	if _, ok := w.e.NextWake(); ok {
		t.Error("a timer is left")
	}
}

func TestAnOverLongFrameUnderAnIDThatIsOpenDoesNotAnswerThat(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{}`)
	w.step(engine.Event{Kind: engine.ClientTooBig, Frame: []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"x":"`), Tail: []byte(`"}}`), Size: 1 << 30})
	w.wantError("null", engine.CodeTooLarge)
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
}
