package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB36ServerAsksTheClientDuringACall(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(unsafeTool("agent", flaky.Outcome{
		Ask: &flaky.Message{Method: "roots/list"}, Hang: true, And: []flaky.Outcome{
			{Ask: &flaky.Message{Method: "sampling/createMessage", Params: flaky.Raw(`{"maxTokens":1.0}`)}, Hang: true},
			{Ask: &flaky.Message{Method: "elicitation/create", Params: flaky.Raw(`{"message":"sure?"}`)}},
		},
	})))
	f.open()
	f.call("1", "agent", "{}")
	roots := f.message("roots/list")
	f.send(`{"jsonrpc":"2.0","id":` + string(roots.ID) + `,"result":{"roots":[{"uri":"file:///x"}]}}`)
	sampling := f.message("sampling/createMessage")
	if string(sampling.Params) != `{"maxTokens":1.0}` {
		t.Errorf("the client is asked with %s", sampling.Params)
	}
	f.send(`{"jsonrpc":"2.0","id":` + string(sampling.ID) + `,"error":{"code":-1,"message":"User rejected sampling request"}}`)
	elicitation := f.message("elicitation/create")
	f.send(`{"jsonrpc":"2.0","id":` + string(elicitation.ID) + `,"result":{"action":"accept"}}`)
	if got := f.success("1").text(); !strings.Contains(got, `"told":{"result":{"action":"accept"}}`) {
		t.Errorf("the call got %s", got)
	}
	var answers []string
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		var m struct {
			Method        string
			Result, Error json.RawMessage
		}
		if json.Unmarshal([]byte(entry.Line), &m) == nil && m.Method == "" {
			answers = append(answers, string(m.Result)+string(m.Error))
		}
	}
	want := []string{`{"roots":[{"uri":"file:///x"}]}`, `{"code":-1,"message":"User rejected sampling request"}`, `{"action":"accept"}`}
	if fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("the server was answered %s", answers)
	}
}

func TestB36ServerThatAsksAClientThatHasGoneGetsAnError(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(
		unsafeTool("before", flaky.Outcome{Ask: &flaky.Message{Method: "roots/list"}}),
		unsafeTool("after", flaky.Outcome{Sleep: 100, Hang: true, And: []flaky.Outcome{{Ask: &flaky.Message{Method: "roots/list"}}}}),
	))
	f.open()
	f.call("1", "before", "{}")
	f.message("roots/list")
	f.call("2", "after", "{}")
	f.arrived("after", 1)
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	for _, id := range []string{"1", "2"} {
		if got := f.success(id).text(); !strings.Contains(got, `"told":{"error":`) {
			t.Errorf("the server was told %s", got)
		}
	}
}

func TestB38ServerSpeaksBeforeItAnswersInitialize(t *testing.T) {
	t.Parallel()
	early := flaky.Outcome{Notify: []flaky.Message{
		{Method: "notifications/resources/list_changed"},
		{Method: "notifications/message", Params: flaky.Raw(`{"level":"info","data":"hello"}`)},
	}}
	script := toolbox(readTool("work", flaky.Outcome{Kill: true}))
	script.StrictHandshake = true
	script.Methods = map[string]flaky.Plan{"initialize": flaky.Always(early)}
	f := startField(t, "retry: {base_delay: 0.01}\n", script)
	f.open()
	f.message("notifications/message")
	f.call("1", "work", "{}")
	if got := f.success("1").execution(); got != 1 {
		t.Errorf("the answer is of execution %d", got)
	}
	if lives := f.readLedger().Lives(); lives != 2 {
		t.Errorf("the server was started %d times", lives)
	}
}

func TestB39LateAnswersDoNotReachTheClient(t *testing.T) {
	t.Parallel()
	late := []flaky.Outcome{{Text: "late"}, {Error: &flaky.Error{Code: -1, Message: "late"}}}
	f := startField(t, "retry: {max_retries: 0}\ntools: {slow: {call_timeout: 0.3}}\n", toolbox(
		plainTool("cancelled", flaky.Outcome{Ask: gate(), Error: &flaky.Error{Code: -1, Message: "cancelled"}, And: late}),
		plainTool("slow", flaky.Outcome{Ask: gate(), And: late}),
	))
	f.open()
	f.call("3", "cancelled", "{}")
	cancelled := f.message("gate")
	f.cancel("3")
	f.pass(cancelled)
	f.call("4", "slow", "{}")
	slow := f.message("gate")
	f.failure("4", -31001)
	f.pass(slow)
	f.written("all late answers", func(l flaky.Ledger) bool {
		n := 0
		for _, entry := range l.Events(flaky.EventSent) {
			if strings.Contains(entry.Line, "late") {
				n++
			}
		}
		return n == 4
	})
	f.ping()
	f.nothingElse()
	f.logged("stray_answer")
}

func TestB40CancellationReachesTheServerUnderItsOwnID(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("slow", flaky.Outcome{Hang: true}), plainTool("next", flaky.Outcome{Sleep: 200}))
	f := startField(t, "", script)
	f.open()
	f.call("101", "slow", "{}")
	f.call("102", "next", "{}")
	id := f.serverID("slow", 0)
	if id == "101" {
		t.Fatalf("the call was not renumbered: this shows nothing")
	}
	f.cancel("101")
	f.cancelled(id)
	f.success("102")
	f.close()
	f.nothingElse()
}

func TestB40CancellationEndsTheWaitForARetry(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startField(t, "retry: {base_delay: 2, jitter: false}\n", toolbox(always(plainTool("busy"), busy), plainTool("later", busy)))
	f.open()
	f.call("101", "busy", "{}")
	f.logged("attempt_end")
	f.cancel("101")
	if r := f.logged("tool_call_end"); r.Status != "cancelled" {
		t.Errorf("the call ended as %q", r.Status)
	}
	f.call("102", "later", "{}")
	f.success("102") // after a wait that began when the other had been going on already
	f.attempts("busy", 1)
	f.nothingElse()
}

func TestB40CancellationOfACallThatWaitsToBeSent(t *testing.T) {
	t.Parallel()
	f := startField(t, "rate_limit: {calls: 1, per: 3, max_wait: 50}\n", toolbox(plainTool("work")))
	f.open()
	f.call("1", "work", `{"n":1}`)
	f.success("1")
	f.call("2", "work", `{"n":2}`)
	f.cancel("2")
	f.call("3", "work", `{"n":3}`)
	f.success("3")
	f.attempts("work", 2)
	f.nothingElse()
}

func TestB42ProgressOfCallsThatAreOver(t *testing.T) {
	t.Parallel()
	after := []flaky.Outcome{{Progress: []float64{100}, Hang: true}}
	f := startField(t, "", toolbox(
		plainTool("done", flaky.Outcome{Progress: []float64{1}, And: after}),
		plainTool("gone", flaky.Outcome{Ask: gate(), Hang: true, And: after}),
	))
	f.open()
	f.call("1", "gone", `{},"_meta":{"progressToken":"g"}`)
	gone := f.message("gate")
	f.cancel("1")
	f.pass(gone)
	f.call("2", "done", `{},"_meta":{"progressToken":"d"}`)
	f.success("2")
	if got := string(f.message("notifications/progress").Params); got != `{"progressToken":"d","progress":1}` {
		t.Errorf("the progress was %s", got)
	}
	f.written("all progress", func(l flaky.Ledger) bool {
		n := 0
		for _, entry := range l.Events(flaky.EventSent) {
			if strings.Contains(entry.Line, `"progress":100`) {
				n++
			}
		}
		return n == 2
	})
	f.ping()
	f.nothingElse()
}

func TestB43ProgressTokensThatTheClientNeverGave(t *testing.T) {
	t.Parallel()
	var steps []float64
	for i := range 40 {
		steps = append(steps, float64(i))
	}
	f := startField(t, "retry: {max_retries: 0}\ntools: {invents: {call_timeout: 0.4}}\n", toolbox(
		plainTool("invents", flaky.Outcome{Progress: steps, Pace: 100, Token: flaky.Raw(`"tool-call-4"`)}),
		plainTool("echoes", flaky.Outcome{Progress: steps[:2]}),
	))
	f.open()
	f.call("4", "invents", "{}")
	f.failure("4", -31001)
	f.call("5", "echoes", `{},"_meta":{"progressToken":0}`)
	f.success("5")
	for i := range 2 {
		if got, want := string(f.message("notifications/progress").Params), fmt.Sprintf(`{"progressToken":0,"progress":%d}`, i); got != want {
			t.Errorf("the progress was %s, want %s", got, want)
		}
	}
	f.nothingElse()
}

func TestB43ServerMakesATokenOfTheRequestsID(t *testing.T) {
	t.Parallel()
	// The server's id of the call, which is also the token that the proxy would have given it.
	f := startField(t, "call_timeout: 0.4\nretry: {max_retries: 0}\n", toolbox(
		plainTool("invents", flaky.Outcome{Progress: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}, Pace: 100, Token: flaky.Raw(`3`)}),
	))
	f.open()
	f.call("4", "invents", "{}")
	if id := f.serverID("invents", 0); id != "3" {
		t.Fatalf("the server got id %s", id)
	}
	f.failure("4", -31001)
	f.nothingElse()
}

func TestB44ProgressCarriesALongCall(t *testing.T) {
	t.Parallel()
	var steps []float64
	for i := range 100 {
		steps = append(steps, float64(i))
	}
	f := startField(t, "call_timeout: 2\nretry: {max_retries: 0}\ntools: {never: {max_call_time: 3}}\n", toolbox(
		plainTool("finishes", flaky.Outcome{Progress: steps[:12], Pace: 250}),
		plainTool("never", flaky.Outcome{Progress: steps, Pace: 250}),
	))
	f.open()
	f.call("1", "finishes", `{},"_meta":{"progressToken":"a"}`)
	f.call("2", "never", `{},"_meta":{"progressToken":"b","x":1}`)
	f.success("1")
	for i := range 12 {
		got := f.frame("progress of a", func(r *fieldFrame) bool {
			return r.Method == "notifications/progress" && strings.Contains(r.line, `"progressToken":"a"`)
		})
		if want := fmt.Sprintf(`{"progressToken":"a","progress":%d}`, i); string(got.Params) != want {
			t.Errorf("the progress was %s, want %s", got.Params, want)
		}
	}
	f.failure("2", -31001)
	f.cancelled(f.serverID("never", 0))
}

func TestB45TimedOutCallOfAnUnsafeToolRunsOnce(t *testing.T) {
	t.Parallel()
	script := toolbox(
		always(unsafeTool("pay"), flaky.Outcome{Sleep: 3000}),
		readTool("read", flaky.Outcome{Hang: true}, flaky.Outcome{Hang: true}),
	)
	script.Methods = map[string]flaky.Plan{"initialize": {Outcomes: []flaky.Outcome{{Sleep: 300}}}}
	f := startField(t, "call_timeout: 0.3\nretry: {max_retries: 10, base_delay: 0.01}\n", script)
	f.request(`"hello"`, "initialize", fieldHello)
	f.cancel(`"hello"`)
	f.success(`"hello"`)
	f.notify("notifications/initialized", `{}`)
	f.request(`"tools"`, "tools/list", `{}`)
	f.success(`"tools"`)

	f.call("1", "pay", "{}")
	f.call("2", "read", "{}")
	e := f.failure("1", -31001).Error
	if e.Data.Attempts != 1 || e.Data.MayHaveExecuted != "unknown" || e.Data.Delivery != "unknown" {
		t.Errorf("the error says %+v", e.Data)
	}
	f.success("2")
	ledger := f.readLedger()
	for _, line := range ledger.Received("notifications/cancelled") {
		if strings.Contains(line, `"hello"`) || strings.Contains(line, `"requestId":1,`) {
			t.Errorf("initialize was cancelled: %s", line)
		}
	}
	// Each attempt of a safe tool is taken back before the next is sent.
	var order []string
	for _, entry := range ledger.Events(flaky.EventReceived) {
		if strings.Contains(entry.Line, `"name":"read"`) {
			order = append(order, "call")
		}
		if strings.Contains(entry.Line, `"notifications/cancelled"`) {
			order = append(order, "cancel")
		}
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "call cancel call cancel call") {
		t.Errorf("the server got %s", got)
	}
	f.close()
	if ledger := f.readLedger(); ledger.Executions("pay") != 1 || ledger.Attempts("pay") != 1 {
		t.Errorf("the unsafe tool ran %d times", ledger.Executions("pay"))
	}
}
