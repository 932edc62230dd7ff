package main

import (
	"strconv"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// keyed is a call, and what its tool and arguments would collide with if keys were made by putting texts side by side.
type keyed struct{ tool, arguments string }

// distinct calls each once, and fails the test unless every one of them was executed.
func distinct(t *testing.T, settings string, calls ...keyed) {
	t.Helper()
	var tools []flaky.Tool
	want := map[string]int{}
	for _, c := range calls {
		if want[c.tool]++; want[c.tool] == 1 {
			tools = append(tools, always(readTool(c.tool), flaky.Outcome{}))
		}
	}
	f := startField(t, settings, toolbox(tools...))
	f.open()
	for range 2 { // the second time all are known
		for i, c := range calls {
			f.call(strconv.Itoa(i), c.tool, c.arguments)
			f.success(strconv.Itoa(i))
		}
	}
	ledger := f.readLedger()
	for tool, n := range want {
		if got := ledger.Executions(tool); got != n {
			t.Errorf("%q was executed %d times, want %d", tool, got, n)
		}
	}
}

// values are JSON texts of which no two are the same value.
var values = []string{`1`, `"1"`, `1.5`, `true`, `"true"`, `null`, `"null"`, `[1]`, `["1"]`, `{"1":1}`, `[]`, `{}`, `""`, `"é"`, "\"e\u0301\"", `[[1],2]`, `[1,[2]]`,
	`9007199254740993`, `9007199254740992`, `"a\u0000b"`, `"a"`, `{"a":{"b":1}}`, `{"a":"{\"b\":1}"}`}

func TestSecurityKeysOfDifferentCallsNeverCollide(t *testing.T) {
	t.Parallel()
	var byValue []keyed
	for _, v := range values {
		byValue = append(byValue, keyed{"a", `{"k":` + v + `}`})
	}
	byTool := []keyed{
		{"a", `{"k":"b:c"}`}, {"a:b", `{"k":"c"}`}, {"a", `{"k":"b\u0000c"}`}, {"ab", `{"k":"c"}`}, {"a", `{"k":"bc"}`}, {"a/b", `{"k":"c"}`}, {"a", `{"k":"b/c"}`},
		{"1", `{"k":"a"}`}, {"11", `{"k":"a"}`}, {"1", `{"k":"1a"}`},
	}
	for name, settings := range map[string]string{
		"cache":            "cache: {tools: {\"*\": 600}}\n",
		"cache by a rule":  "cache: {tools: {\"*\": 600}}\npolicy: [{cache_key: args.k}]\n",
		"cache by a list":  "cache: {tools: {\"*\": 600}}\npolicy: [{cache_key: '[args.k]'}]\n",
		"keys by a list":   "tools: {\"*\": {effects: unsafe}}\npolicy: [{idempotency_key: '[args.k]'}]\n",
		"keys by a map":    "tools: {\"*\": {effects: unsafe}}\npolicy: [{idempotency_key: '{\"k\": args.k}'}]\n",
		"the implicit key": "idempotency_ttl: 600\ntools: {\"*\": {effects: unsafe}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if name != "cache by a rule" { // a rule's text is not told from a rule's null, which is no key
				distinct(t, settings, byValue...)
			}
			distinct(t, settings, byTool...)
		})
	}
}

// Of a client's key the value counts, and for each tool alone.
func TestSecurityKeysOfClientsNeverCollide(t *testing.T) {
	t.Parallel()
	var calls []keyed
	for _, key := range []string{`"b:c"`, `"1"`, `"é"`, "\"e\u0301\"", `" 1"`, `"a\u0000"`} {
		calls = append(calls, keyed{"a", `{},"_meta":{"idempotencyKey":` + key + `}`}, keyed{"a:b", `{},"_meta":{"idempotencyKey":` + key + `}`})
	}
	calls = append(calls, keyed{"a:b", `{},"_meta":{"idempotencyKey":"c"}`})
	distinct(t, "tools: {\"*\": {effects: unsafe}}\n", calls...)
}

// A repeated member has two readings: such arguments have no key, and no answer of another call.
func TestSecurityArgumentsWithARepeatedMemberHaveNoKey(t *testing.T) {
	t.Parallel()
	f := startField(t, "cache: {tools: {\"*\": 600}}\n", toolbox(always(readTool("a"), flaky.Outcome{})))
	f.open()
	for i, arguments := range []string{`{"x":1}`, `{"x":1,"x":2}`, `{"x":2,"x":1}`, `{"x":2}`} {
		f.call(strconv.Itoa(i), "a", arguments)
		f.answer(strconv.Itoa(i))
	}
	if n := f.readLedger().Executions("a"); n != 4 {
		t.Errorf("executed %d times", n)
	}
	f.call("9", "a", `{"x":2}`)
	if got := f.success("9").execution(); got == 1 {
		t.Error("x = 2 got the answer to x = 1")
	}
}
