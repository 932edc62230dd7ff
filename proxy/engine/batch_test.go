package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// batching is a session in the revision that has batches.
func batching(t *testing.T, settings string) *world {
	t.Helper()
	w := newWorld(t, settings)
	w.send(strings.Replace(hello, "2025-06-18", "2025-03-26", 1))
	w.reply(w.request("initialize"), strings.Replace(welcome, "2025-06-18", "2025-03-26", 1))
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.client = nil
	return w
}

func TestABatchIsAnsweredInOneFrame(t *testing.T) {
	w := batching(t, "policy: [{when: 'tool.name == \"no\"', deny: '\"never\"'}]")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"n":1}}}, {"jsonrpc":"2.0","method":"notifications/roots/list_changed"},` +
		`{"jsonrpc":"2.0","id":"b","method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no"}},7,{"jsonrpc":"2.0","id":5}]`)
	w.request("tools/list")
	call := w.attempt()
	w.request("notifications/roots/list_changed")
	ping := w.request("ping")
	w.quiet()
	w.silent()
	w.reply(ping, `{}`)
	w.silent()
	w.text(call, "one")
	if len(w.client) != 1 {
		t.Fatalf("the client got %s", w.client)
	}
	answers := w.apart()
	w.client = nil
	if len(answers) != 5 {
		t.Fatalf("%d answers: %s", len(answers), answers)
	}
	for _, want := range []string{`{"jsonrpc":"2.0","id":"b","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one"}]}}`,
		`"id":3,"error":{"code":-31005`, `"id":null,"error":{"code":-32600`, `"id":5,"error":{"code":-32600`} {
		if n := strings.Count(strings.Join(answers, "\n"), want); n != 1 {
			t.Errorf("%s is %d times among %s", want, n, answers)
		}
	}
}

// apart takes the last frame that went to the client, which must be a batch, to pieces.
func (w *world) apart() []string {
	w.t.Helper()
	frame := w.client[len(w.client)-1]
	if !strings.HasPrefix(frame, "[") {
		w.t.Fatalf("%s is no batch", frame)
	}
	return elements(frame)
}

func TestABatchWaitsForAllButTheCancelled(t *testing.T) {
	w := batching(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read","arguments":{"n":3}}}]`)
	w.request("tools/list")
	w.attempt()
	w.request("ping")
	third := w.attempt()
	w.cancel("1")
	w.text(third, "three")
	w.silent()
	w.cancel("2")
	if answers := w.apart(); len(answers) != 1 || !strings.Contains(answers[0], "three") {
		t.Errorf("the client got %s", w.client)
	}
	w.client = nil
	w.send(`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}]`)
	w.silent()
	w.server, w.tags = nil, nil
	w.send(`[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"method":"ping"}]`)
	five, six := w.request("ping"), w.request("ping")
	w.reply(five, `{}`)
	w.cancel("5") // it was answered, and the client does not have it yet
	w.reply(six, `{}`)
	w.wantToClient(`[{"jsonrpc":"2.0","id":6,"result":{}}]`)
}

func TestTheAnswersOfABatchDoNotWaitForOneThatNeverComes(t *testing.T) {
	w := batching(t, "")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"resources/list"}]`)
	w.reply(w.request("ping"), `{}`)
	slow := w.request("resources/list")
	w.advance(4 * time.Second)
	w.silent()
	w.advance(time.Second)
	w.wantToClient(`[{"jsonrpc":"2.0","id":1,"result":{}}]`)
	w.reply(slow, `{}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":2,"result":{}}`)
}

func TestABatchOfACallThatTimesOut(t *testing.T) {
	w := batching(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}]`)
	w.advance(2 * time.Second)
	if answers := w.apart(); len(answers) != 1 || !strings.Contains(answers[0], `"code":-31001`) {
		t.Errorf("the client got %s", w.client)
	}
}

func TestWhatIsNoBatch(t *testing.T) {
	w := batching(t, "")
	w.send(`[]`)
	w.wantError("null", -32600)
	w.send(`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	w.request("notifications/roots/list_changed")
	w.silent()
	w.send(`[[{"jsonrpc":"2.0","id":1,"method":"ping"}],` + hello + `]`)
	w.quiet()
	if answers := w.apart(); len(answers) != 2 || !strings.Contains(answers[0], `"id":null`) || !strings.Contains(answers[1], `"id":"init","error":{"code":-32600`) {
		t.Errorf("the client got %s", w.client)
	}
	w.client = nil
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.wantError("null", -32700)
}

func TestAnIdThatIsUsedTwiceLosesNoAnswer(t *testing.T) {
	w := batching(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	for range 4 {
		w.reply(w.request("ping"), `{}`)
	}
	all := strings.Join(w.client, "")
	if strings.Count(all, `"id":1,`) != 2 || strings.Count(all, `"id":2,`) != 2 {
		t.Errorf("the client got %s", w.client)
	}
}

func TestTheResponsesOfABatchDoNotGrowBeyondAFrame(t *testing.T) {
	w := batching(t, "max_message_bytes: 1KiB")
	var requests []string
	for n := range 5 {
		requests = append(requests, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, n))
	}
	w.send("[" + strings.Join(requests, ",") + "]")
	for range 5 {
		w.reply(w.request("ping"), `"`+strings.Repeat("x", 450)+`"`)
	}
	n := 0
	for _, frame := range w.client {
		if len(frame) > 1024 {
			t.Errorf("a frame of %d bytes", len(frame))
		}
		n += len(elements(frame))
	}
	if n != 5 {
		t.Errorf("%d answers", n)
	}
}

func TestABatchIsAnsweredWhenAllEnds(t *testing.T) {
	w := batching(t, "")
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	w.step(engine.Event{Kind: engine.Terminate})
	if answers := w.apart(); len(answers) != 2 {
		t.Errorf("the client got %s", w.client)
	}
	if !w.done {
		t.Error("the session has not ended")
	}
}

func TestABatchOfTooManyMessagesIsRefusedAsAWhole(t *testing.T) {
	w := batching(t, "")
	w.send(`[` + strings.Repeat(`1,`, 1<<20) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
	w.quiet()
	if len(w.client) != 1 || len(w.client[0]) > 1000 || w.logged("bad_frame") != 1 {
		t.Fatalf("%d frames went to the client, %d records to the log", len(w.client), w.logged("bad_frame"))
	}
	w.wantError("null", -32600)
}

func TestWhatABatchIsRefusedForIsSaidInASessionThatHasThem(t *testing.T) {
	for frame, want := range map[string]string{
		`[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]`: "a batch within a batch",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"},`:   "invalid JSON",
		"[{\"jsonrpc\":\"2.0\",\"method\":\"x\xff\"}]": "UTF-8",
	} {
		w := batching(t, "")
		w.send(frame)
		if got := strings.Join(w.client, ""); !strings.Contains(got, want) || strings.Contains(got, "not supported") {
			t.Errorf("%q is refused with %s", frame, got)
		}
	}
}
