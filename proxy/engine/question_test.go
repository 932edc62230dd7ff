package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// ask plays a question of the server and takes it as the client sees it.
func (w *world) ask(id, method string) (ours string) {
	w.t.Helper()
	w.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{"x":1}}`)
	m := decode(w.t, w.client[len(w.client)-1])
	w.client = w.client[:len(w.client)-1]
	if m["method"] != method {
		w.t.Fatalf("the client got %v, want %s", m, method)
	}
	return idOf(m)
}

func TestB36QuestionsReachTheClientAndStopTheClock(t *testing.T) {
	w := session(t, "call_timeout: 2\ntotal_timeout: 5\nretry: {max_retries: 2}\nmax_call_time: 600")
	for i, method := range []string{"elicitation/create", "sampling/createMessage", "roots/list"} {
		id := strconv.Itoa(i)
		w.call(id, "read", `{"n":`+id+`}`)
		a := w.attempt()
		w.advance(time.Second)
		ours := w.ask(`"q"`, method)
		w.advance(5 * time.Minute)
		w.silent()
		w.send(`{"jsonrpc":"2.0","id":` + ours + `,"result":{}}`)
		w.wantToServer(`{"jsonrpc":"2.0","id":"q","result":{}}`)
		w.advance(time.Second)
		w.text(a, "ok")
		w.wantText(id, "ok")
	}
	w.call("9", "read", `{}`)
	w.attempt()
	ours := w.ask("1", "elicitation/create")
	w.advance(time.Minute)
	w.send(`{"jsonrpc":"2.0","id":` + ours + `,"result":{"action":"accept"}}`)
	w.server = nil
	w.advance(time.Minute)
	if data := w.wantError("9", engine.CodeTimeout); data["endedBy"] != "unsafe" {
		t.Errorf("data is %v: what asked the client something is not sent again", data)
	}
}

func TestAQuestionThatIsNeverAnsweredEndsWithMaxCallTime(t *testing.T) {
	w := session(t, "call_timeout: 2\nmax_call_time: 60\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	w.call("2", "read", `{}`) // joins, and waits as long
	w.attempt()
	w.ask("1", "elicitation/create")
	w.advance(59 * time.Second)
	w.silent()
	w.advance(2 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.wantError("2", engine.CodeTimeout)
}

func TestAnAnswerToAQuestionTouchesOnlyTheAttemptsThatItHadStopped(t *testing.T) {
	w := session(t, "call_timeout: 2\ntotal_timeout: 4\nretry: {max_retries: 0}")
	w.call("1", "read", `{"n":1}`)
	a := w.attempt()
	ours := w.ask("1", "elicitation/create")
	w.text(a, "ok") // the server did not wait for it
	w.wantText("1", "ok")
	w.call("2", "read", `{"n":2}`) // takes the place of the first in memory
	w.attempt()
	w.send(`{"jsonrpc":"2.0","id":` + ours + `,"result":{}}`)
	w.server = nil
	w.advance(3 * time.Second)
	w.wantError("2", engine.CodeTimeout)
}

func TestTwoQuestionsAtOnce(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	w.attempt()
	first, second := w.ask("1", "elicitation/create"), w.ask("2", "roots/list")
	w.send(`{"jsonrpc":"2.0","id":` + second + `,"result":{}}`)
	w.advance(time.Minute)
	w.silent()
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) // the server takes the other back
	w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + first + `}}`)
	w.server = nil
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
}

func TestAPingOfTheServerStopsNoClock(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	w.attempt()
	w.ask("1", "ping")
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
}

func TestQuestionsAreBounded(t *testing.T) {
	w := session(t, "")
	for i := range 3000 {
		w.say(`{"jsonrpc":"2.0","id":` + strconv.Itoa(i) + `,"method":"ping"}`)
	}
	if len(w.client) != 1024 || len(w.server) != 3000-1024 {
		t.Errorf("%d questions reached the client, %d were refused", len(w.client), len(w.server))
	}
}

func TestB43ProgressIsPassedOnOnlyToWhoAskedForIt(t *testing.T) {
	for token, pass := range map[string]bool{`0`: true, `"tok\u0061"`: true, `""`: true, `7.0`: true, `null`: false, `{}`: false, ``: false} {
		w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
		extra := []string{`"_meta":{"progressToken":` + token + `}`}
		if token == "" {
			extra = nil
		}
		w.call("1", "read", `{}`, extra...)
		a := w.attempt()
		w.advance(1500 * time.Millisecond)
		for _, invented := range []string{`"tool-call-4"`, `99`, `null`, `[]`} {
			w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + invented + `,"progress":1}}`)
		}
		w.silent()
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + idOf(a) + `}}`)
		if pass {
			w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + token + `}}`)
		}
		w.silent()
		w.advance(time.Second)
		if !pass { // what nobody asked for does not carry the attempt on
			w.wantError("1", engine.CodeTimeout)
		}
		w.silent()
	}
}

func TestB42ProgressAfterTheEndIsDropped(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	progress := func(a map[string]any) {
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":100,"progressToken":` + idOf(a) + `}}`)
	}
	w.call("1", "read", `{"n":1}`, `"_meta":{"progressToken":1}`)
	a := w.attempt()
	w.text(a, "ok")
	w.wantText("1", "ok")
	progress(a)
	w.call("2", "write", `{"n":2}`, `"_meta":{"progressToken":2}`)
	b := w.attempt()
	w.cancel("2")
	progress(b)
	w.call("3", "write", `{"n":3}`, `"_meta":{"progressToken":3}`)
	w.server = nil
	w.advance(3 * time.Second)
	w.wantError("3", engine.CodeTimeout)
	w.silent()
}

func TestB44ProgressCarriesACallOnUntilItStops(t *testing.T) {
	w := session(t, "call_timeout: 1\ntotal_timeout: 2\nmax_call_time: 5\nretry: {max_retries: 0}")
	w.call("1", "read", `{"n":1}`, `"_meta":{"progressToken":"a"}`)
	w.call("2", "read", `{"n":1}`, `"_meta":{"progressToken":"b"}`) // joins: carried on as well, with a token of its own
	a := w.attempt()
	for i := range 5 {
		w.advance(600 * time.Millisecond)
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + strconv.Itoa(i) + `,"progressToken":` + idOf(a) + `}}`)
		w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + strconv.Itoa(i) + `,"progressToken":"a"}}`)
		w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + strconv.Itoa(i) + `,"progressToken":"b"}}`)
	}
	w.text(a, "ok")
	w.wantText("1", "ok")
	w.wantText("2", "ok")
}

func TestProgressOfARetryGoesOnWhereTheFirstAttemptWas(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "read", `{}`, `"_meta":{"progressToken":"t"}`)
	progress := func(a map[string]any, n string) {
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + n + `,"progressToken":` + idOf(a) + `}}`)
	}
	a := w.attempt()
	progress(a, "5")
	w.refuse(a, -32000)
	w.advance(time.Second)
	b := w.attempt()
	for _, n := range []string{"1", "5", "6"} {
		progress(b, n)
	}
	if len(w.client) != 2 {
		t.Errorf("the client got %s, want the values 5 and 6", w.client)
	}
}

func TestProgressOfRequestsThatPass(t *testing.T) {
	w := session(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"_meta":{"progressToken":"r"}}}`)
	read := w.request("resources/read")
	for _, n := range []string{"1", "1", "0.5", "2"} {
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":` + n + `,"progressToken":` + idOf(read) + `}}`)
	}
	if len(w.client) != 2 {
		t.Errorf("the client got %s, want the values 1 and 2", w.client)
	}
}

func TestACallThatEndsWhileTheClientIsAskedNamesTheSettingThatEndedIt(t *testing.T) {
	w := session(t, "call_timeout: 2\nmax_call_time: 20\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	w.attempt()
	w.say(`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`)
	w.client = nil
	w.advance(20 * time.Second)
	message := w.answer("1")["error"].(map[string]any)["message"].(string)
	if !strings.Contains(message, "with max_call_time") {
		t.Errorf("the message is %q", message)
	}
}
