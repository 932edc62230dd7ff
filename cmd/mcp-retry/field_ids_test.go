package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// fieldShort are settings under which what gets no answer fails soon, and only once.
const fieldShort = "call_timeout: 0.4\nretry: {max_retries: 0}\n"

func TestB21IDsBeyondTheExactRangeOfFloats(t *testing.T) {
	t.Parallel()
	ids := []string{"9007199254740992", "9007199254740993", "-9223372036854775808", "9223372036854775807"}
	f := startField(t, "", toolbox(
		plainTool("work", flaky.Outcome{Sleep: 200}, flaky.Outcome{Sleep: 150}, flaky.Outcome{Sleep: 100}, flaky.Outcome{Sleep: 50}),
		always(plainTool("wait"), flaky.Outcome{Ask: &flaky.Message{Method: "roots/list"}}),
	))
	f.open()
	for _, id := range ids {
		f.call(id, "work", `{"from":"`+id+`"}`)
	}
	for _, id := range ids {
		if got := f.success(id).text(); !strings.Contains(got, `"from":"`+id+`"`) {
			t.Errorf("%s got %s", id, got)
		}
	}
	f.call(ids[0], "wait", `{"n":1}`)
	asked := f.message("roots/list")
	f.call(ids[1], "wait", `{"n":2}`)
	f.message("roots/list")
	f.cancel(ids[1])
	f.cancelled(f.serverID("wait", 1))
	f.send(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"roots":[]}}`)
	f.success(ids[0])
	f.ping()
	if n := cancelsOf(f.readLedger(), f.serverID("wait", 0)); n != 0 {
		t.Errorf("the other call was cancelled too")
	}
	f.nothingElse()
}

func TestB22ServerTruncatesIDs(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work"))
	script.IDs = flaky.IDs32Bit
	f := startField(t, "retry: {max_retries: 0}\n", script)
	f.open()
	f.call("1774232524389", "work", "{}")
	f.success("1774232524389")
}

func TestB23ServerAnswersWholeNumbersAsFloats(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{flaky.IDsFloat, flaky.IDsExponent} {
		script := toolbox(plainTool("work"))
		script.IDs = kind
		f := startField(t, "retry: {max_retries: 0}\n", script)
		f.open()
		for _, id := range []string{"1", "0"} {
			f.call(id, "work", `{"n":`+id+`}`)
			f.success(id)
		}
	}
}

func TestB24ServerChangesTheTypeOfIDs(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work"), plainTool("other", flaky.Outcome{ID: flaky.Raw(`0`)}))
	script.IDs = flaky.IDsString
	f := startField(t, "retry: {max_retries: 0}\ntools: {other: {call_timeout: 0.4}}\n", script)
	f.open()
	f.call(`"7"`, "work", `{"n":1}`)
	f.success(`"7"`)
	f.call("0", "work", `{"n":2}`)
	f.success("0")
	f.call(`"init-1"`, "other", "{}")
	f.failure(`"init-1"`, -31001)
	f.logged("stray_answer")
	f.nothingElse()
}

func TestB26ServerStampsAllAnswersWithOneID(t *testing.T) {
	t.Parallel()
	for _, stamp := range []string{`0`, `null`, `"0"`} {
		f := startField(t, fieldShort, toolbox(always(plainTool("work"), flaky.Outcome{ID: flaky.Raw(stamp)})))
		f.open()
		f.call("0", "work", `{"n":0}`)
		f.call("1", "work", `{"n":1}`)
		f.failure("0", -31001)
		f.failure("1", -31001)
		f.arrived("work", 2)
		f.ping()
		f.nothingElse()
		f.logged("stray_answer")
	}
}

func TestB26ServerAnswersTwoCallsUnderTheIDOfTheFirst(t *testing.T) {
	t.Parallel()
	// The ids of the server are small numbers in a row: what the first call gets is known.
	script := toolbox(plainTool("work", flaky.Outcome{Hang: true}, flaky.Outcome{ID: flaky.Raw(`3`), Copies: 2}))
	f := startField(t, fieldShort, script)
	f.open()
	f.call("0", "work", `{"n":0}`)
	if id := f.serverID("work", 0); id != "3" {
		t.Fatalf("the server got id %s", id)
	}
	f.call("1", "work", `{"n":1}`)
	f.failure("1", -31001)
	f.answer("0")
	f.ping()
	f.nothingElse()
}

func TestB27ServerAnswersNotifications(t *testing.T) {
	t.Parallel()
	const stray = `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost the id"}}`
	script := toolbox(
		plainTool("fast", flaky.Outcome{Raw: []string{stray}}),
		always(plainTool("slow"), flaky.Outcome{Raw: []string{stray, `{"jsonrpc":"2.0","id":null,"result":{}}`}, Sleep: 50}),
		always(plainTool("never"), flaky.Outcome{Raw: []string{stray}, Hang: true}),
	)
	script.AnswerNotes = true
	f := startField(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2}\ntools: {never: {call_timeout: 0.4}}\n", script)
	f.open()
	f.call("1", "fast", `{}`)
	f.success("1")
	f.call("2", "slow", `{"n":2}`)
	f.call("3", "slow", `{"n":3}`)
	f.success("2")
	f.success("3")
	f.call("4", "never", `{"n":4}`)
	f.call("5", "slow", `{"n":5}`)
	f.success("5")
	f.failure("4", -31001)
	f.notify("notifications/cancelled", `{"requestId":99}`)
	f.ping()
	f.nothingElse()
	for tool, n := range map[string]int{"fast": 1, "slow": 3, "never": 1} {
		f.attempts(tool, n)
	}
	f.logged("stray_answer")
}

func TestB29ClientSendsTheSameIDAgain(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("work", flaky.Outcome{Ask: gate()}, flaky.Outcome{})))
	f.open()
	f.call("1", "work", `{"who":"first"}`)
	first := f.message("gate")
	f.call("1", "work", `{"who":"second"}`)
	for _, who := range []string{"second", "first"} {
		if got := f.success("1").text(); !strings.Contains(got, who) {
			t.Errorf("the %s call got %s", who, got)
		}
		if who == "second" {
			f.pass(first)
		}
	}
	f.call("1", "work", `{"who":"third"}`)
	f.success("1")
}

func TestB31IDsOfTheTwoDirectionsAreIndependent(t *testing.T) {
	t.Parallel()
	ask := func(id, method string) *flaky.Message {
		return &flaky.Message{ID: flaky.Raw(id), Method: method, Params: flaky.Raw(`{"n":` + id + `}`)}
	}
	f := startField(t, "", toolbox(
		plainTool("sample", flaky.Outcome{Ask: ask("1", "sampling/createMessage")}),
		plainTool("roots", flaky.Outcome{Ask: ask("2", "roots/list")}),
	))
	f.open()
	f.call("1", "sample", `{}`)
	question := f.message("sampling/createMessage")
	f.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"model":"m1"}}`)
	if got := f.success("1").text(); !strings.Contains(got, `"told":{"result":{"model":"m1"}}`) {
		t.Errorf("the call got %s", got)
	}
	f.call("3", "roots", `{}`)
	question = f.message("roots/list")
	f.request("2", "ping", `{}`)
	f.success("2")
	f.request(string(question.ID), "ping", `{}`) // the very id that the client sees
	f.success(string(question.ID))
	f.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"roots":[]}}`)
	if got := f.success("3").text(); !strings.Contains(got, `"told":{"result":{"roots":[]}}`) {
		t.Errorf("the call got %s", got)
	}
	f.nothingElse()
}

func TestB33SharedAnswersCarryEachCallersID(t *testing.T) {
	t.Parallel()
	f := startField(t, "cache: {tools: {cached: 60}}\n", toolbox(readTool("cached"), readTool("joined", flaky.Outcome{Ask: gate()})))
	f.open()
	f.call("5", "cached", `{"a":1,"b":[2]}`)
	first := f.success("5")
	for _, id := range []string{`"x"`, `"5"`, `-1`, `9007199254740993`} {
		f.call(id, "cached", `{ "b": [2], "a": 1 }`)
		if got := f.success(id); string(got.Result) != string(first.Result) {
			t.Errorf("%s got %s, not %s", id, got.Result, first.Result)
		}
	}
	f.attempts("cached", 1)
	f.call("6", "cached", `{"a":1,"b":[3]}`)
	if got := f.success("6").execution(); got != 2 {
		t.Errorf("other arguments got execution %d", got)
	}
	f.call("8", "joined", `{"a":1}`)
	f.call(`"9"`, "joined", `{"a":1}`)
	f.call("10", "joined", `{"a":2}`)
	f.pass(f.message("gate"))
	if a, b := f.success("8"), f.success(`"9"`); string(a.Result) != string(b.Result) {
		t.Errorf("joined calls got %s and %s", a.Result, b.Result)
	}
	f.success("10")
	f.attempts("joined", 2)
}

func TestB34NumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	const numbers = `[1915883588174806058, 12345678901234567890, 0.1, 1.0, 1E5, -0, 1e400]`
	result := fmt.Sprintf(`{"content":[{"type":"text","text":%q}], "structuredContent":{"numbers":%s}}`, numbers, numbers)
	f := startField(t, "cache: {default_ttl: 60}\n", toolbox(readTool("work", flaky.Outcome{ResultText: result})))
	f.open()
	for _, id := range []string{"1", "2"} {
		f.call(id, "work", `{"n":12345678901234567890}`)
		if got := string(f.answer(id).Result); got != result {
			t.Errorf("call %s got %s", id, got)
		}
	}
	f.attempts("work", 1)
	if line := f.readLedger().Received("tools/call")[0]; !strings.Contains(line, `{"n":12345678901234567890}`) {
		t.Errorf("the server got %s", line)
	}
}
