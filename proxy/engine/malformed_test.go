package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// unusable are answers to a call that are JSON-RPC by their envelope, and that no client can read.
var unusable = []string{
	`"error":null`,
	`"error":"boom"`,
	`"error":[]`,
	`"error":{}`,
	`"error":{"message":"boom"}`,
	`"error":{"code":1.5,"message":"boom"}`,
	`"error":{"code":"x","message":"boom"}`,
	`"error":{"code":"5","message":"boom"}`,
	`"error":{"code":null,"message":"boom"}`,
	`"error":{"code":1e400,"message":"boom"}`,
	`"error":{"code":-32602,"message":"boom","code":-32603}`,
	`"result":null`,
	`"result":"done"`,
	`"result":[]`,
	`"result":true`,
}

func TestAnAnswerThatNoClientCanReadIsAnErrorThatShowsIt(t *testing.T) {
	for _, said := range unusable {
		w := session(t, "retry: {max_retries: 3}")
		w.call("1", "write", `{}`)
		w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,` + said + `}`)
		want := `,"original":` + said[strings.Index(said, ":")+1:] + `}`
		if len(w.client) == 0 || !strings.Contains(w.client[0], want) {
			t.Errorf("%s: the client got %s", said, w.client)
		}
		if data := w.wantError("1", engine.CodeInvalidResult); data["kind"] != "malformed" || data["mayHaveExecuted"] != "yes" || data["delivery"] != "answered" {
			t.Errorf("%s: data is %v", said, data)
		}
		w.advance(time.Minute)
		w.quiet()
	}
}

func TestACallWithAKeyWhoseAnswerNobodyCouldReadIsNotMadeAgain(t *testing.T) {
	for _, said := range unusable {
		w := session(t, "retry: {max_retries: 3}")
		for _, tool := range []string{"write", "plain", "idem"} {
			w.call("1", tool, `{}`, `"_meta":{"idempotencyKey":"k"}`)
			w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,` + said + `}`)
			w.wantError("1", engine.CodeInvalidResult)
			w.call("2", tool, `{}`, `"_meta":{"idempotencyKey":"k"}`)
			w.quiet()
			if data := w.wantError("2", engine.CodeOutcomeUnknown); data["mayHaveExecuted"] != "yes" {
				t.Errorf("%s of %s: data is %v", said, tool, data)
			}
		}
	}
}

func TestWhatIsShownOfAnUnreadableAnswerIsBounded(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{}`)
	w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,"error":"` + strings.Repeat("ö", 100_000) + `"}`)
	if n := len(w.client[0]); n > 6000 {
		t.Errorf("the client got %d bytes", n)
	}
	if original, _ := w.wantError("1", engine.CodeInvalidResult)["original"].(string); !strings.HasPrefix(original, `"ööö`) || !strings.HasSuffix(original, "ö…") {
		t.Errorf("the original is %q", original)
	}
}

func TestAnUnreadableAnswerThatComesLateIsTheAnswerOfWhoWaitsForIt(t *testing.T) {
	w := session(t, "call_timeout: 1\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	a := w.attempt()
	w.advance(time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.call("2", "write", `{}`)
	w.say(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"result":null}`)
	w.wantError("2", engine.CodeInvalidResult)
}

func TestAnUnreadableAnswerMayBeRetriedByRule(t *testing.T) {
	w := session(t, "retry: {max_retries: 1, base_delay: 1, jitter: 0}\npolicy: [{when: 'error.kind == \"malformed\"', retry: true}]")
	w.call("1", "read", `{}`)
	w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,"error":null}`)
	w.silent()
	w.advance(time.Second)
	w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,"error":"once more"}`)
	if original := w.wantError("1", engine.CodeInvalidResult)["original"]; original != "once more" {
		t.Errorf("the original is %v", original)
	}
}

func TestUnreadableAnswersToOtherRequestsPassAsTheyAre(t *testing.T) {
	w := session(t, "")
	for _, said := range unusable {
		w.send(`{"jsonrpc":"2.0","id":7,"method":"resources/read"}`)
		w.say(`{"jsonrpc":"2.0","id":` + idOf(w.request("resources/read")) + `,` + said + `}`)
		w.wantToClient(`{"jsonrpc":"2.0","id":7,` + said + `}`)
	}
}

// deep is a value that nests deeper than any message may.
var deep = strings.Repeat(`[{"a":`, 50_000) + `0` + strings.Repeat(`}]`, 50_000)

func TestAnAnswerThatNestsTooDeepIsAnErrorAtOnce(t *testing.T) {
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":ID,"result":` + deep + `}`,
		`{"result":` + deep + `,"jsonrpc":"2.0","id":ID}`,
		`{"jsonrpc":"2.0","id":ID,"error":` + deep + `}`,
	} {
		w := session(t, "retry: {max_retries: 3}")
		w.call("1", "write", `{}`)
		w.say(strings.Replace(frame, "ID", idOf(w.attempt()), 1))
		if data := w.wantError("1", engine.CodeInvalidResult); data["kind"] != "malformed" || data["mayHaveExecuted"] != "yes" {
			t.Errorf("data is %v", data)
		}
		w.send(`{"jsonrpc":"2.0","id":7,"method":"resources/read"}`)
		w.say(strings.Replace(frame, "ID", idOf(w.request("resources/read")), 1))
		w.wantError("7", engine.CodeInvalidResult)
		w.quiet()
	}
}

// Whose answer it is must be certain.
func TestWhatNestsTooDeepAndNamesNoOpenRequestIsNoise(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{}`)
	a := w.attempt()
	for _, frame := range []string{
		`{"jsonrpc":"2.0","result":` + deep + `}`,
		`{"jsonrpc":"2.0","id":99999,"result":` + deep + `}`,
		`{"jsonrpc":"2.0","id":ID,"method":"m","params":` + deep + `}`,
		`{"jsonrpc":"2.0","id":ID,"result":` + deep + `,"id":99999}`,
		`{"jsonrpc":"2.0","result":{"id":ID,"x":` + deep + `}}`,
	} {
		before := w.logged("noise")
		w.say(strings.Replace(frame, "ID", idOf(a), 1))
		if w.silent(); w.logged("noise") != before+1 {
			t.Errorf("%.60s was not logged as noise", frame)
		}
	}
	w.text(a, "ok")
	w.wantText("1", "ok")
}

func TestARequestThatNestsTooDeepIsRefusedUnderItsID(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{"a":`+deep+`}`)
	w.wantError("1", -32700)
	w.call("2", "read", `{}`)
	w.call("2", "read", `{"a":`+deep+`}`)
	w.wantError("null", -32700) // else it would be taken for the answer to the first
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
	w.quiet()
}

// JSON-RPC 1.0 wants both members in each answer, one of them null; there are servers that keep to it, and clients that read them.
func TestAnAnswerWithANullBesideItIsAnAnswer(t *testing.T) {
	w := session(t, "")
	for _, answer := range []string{`"error":null,"result":{"content":[]}`, `"result":{"content":[]} , "error": null`, `"error":{"code":-32602,"message":"no"},"result":null`, `"result":null,"error":{"code":-32602,"message":"no"}`} {
		want := `{"jsonrpc":"2.0","id":7,"result":{"content":[]} }`
		if strings.Contains(answer, "-32602") {
			want = `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`
		}
		for _, method := range []string{"tools/call", "prompts/get"} {
			w.send(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{"name":"read"}}`)
			w.say(`{"jsonrpc":"2.0","id":` + idOf(w.request(method)) + `,` + answer + `}`)
			if got := strings.Join(w.client, ""); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
				t.Errorf("%s of %s is %s at the client", answer, method, got)
			}
			w.client = nil
		}
	}
}
