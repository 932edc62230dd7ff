package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// Codes of the errors by which a breaker and a rate limit refuse a call.
const (
	refusedByBreaker = -31002
	refusedByLimit   = -31003
)

// keyedCall is a call that is refused or not, by what the calls before it have done to its breaker or bucket.
type keyedCall struct {
	tool, key string // key is JSON
	code      int    // 0 = it reaches the server
}

// refusals makes calls one after the other, whose tools all come to the same, and fails the test if one too few or too many reaches
// the server.
func refusals(t *testing.T, settings string, outcome flaky.Outcome, calls []keyedCall) {
	t.Helper()
	var tools []flaky.Tool
	known := map[string]bool{}
	for _, c := range calls {
		if !known[c.tool] {
			tools = append(tools, always(readTool(c.tool), outcome))
		}
		known[c.tool] = true
	}
	reached := 0
	if outcome.Error != nil {
		reached = int(outcome.Error.Code)
	}
	f := startField(t, settings, toolbox(tools...))
	f.open()
	for i, c := range calls {
		id := strconv.Itoa(i)
		f.call(id, c.tool, `{"k":`+c.key+`,"n":`+id+`}`)
		answer, want := f.answer(id), c.code
		if want == 0 {
			want = reached
		}
		got := 0
		if answer.Error != nil {
			got = answer.Error.Code
		}
		if got != want {
			t.Errorf("call %d of %q with %s: code %d, want %d", i, c.tool, c.key, got, want)
		}
	}
}

// A breaker belongs to the scope that the rules name: the server, a tool, or the text of a rule, and to no other.
func TestSecurityScopesOfBreakersNeverCollide(t *testing.T) {
	t.Parallel()
	const trips = "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 3600}\n"
	fails := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "down"}}
	for name, c := range map[string]struct {
		settings string
		calls    []keyedCall
	}{
		"of tools with breakers of their own": {
			trips + "tools: {\"*\": {circuit_breaker: {failure_threshold: 1}}}\n",
			[]keyedCall{{"server", "1", 0}, {"tool:server", "1", 0}, {"tool", "1", 0}, {"server", "2", refusedByBreaker}, {"tool:server", "2", refusedByBreaker}},
		},
		"of a tool called like the server's scope": {
			trips + "tools: {server: {circuit_breaker: {failure_threshold: 1}}}\n",
			[]keyedCall{{"server", "1", 0}, {"other", "1", 0}, {"third", "1", refusedByBreaker}, {"server", "2", refusedByBreaker}},
		},
		"of texts that come from arguments": {
			trips + "policy: [{breaker_scope: 'args.k'}]\n",
			[]keyedCall{{"a", `"x"`, 0}, {"a", `"x\u0000"`, 0}, {"a", `" x"`, 0}, {"a", `"X"`, 0}, {"a", `"é"`, 0}, {"a", "\"e\u0301\"", 0}, {"a", `"[\"x\"]"`, 0},
				{"a", `"x"`, refusedByBreaker}, {"b", `"x"`, refusedByBreaker}}, // the text alone counts: that is what the rule says
		},
		"of what is no text, which falls to the server's; a number is its text": {
			trips + "policy: [{breaker_scope: 'args.k'}]\n",
			[]keyedCall{{"a", `"[1]"`, 0}, {"a", `"{}"`, 0}, {"a", `[1]`, 0}, {"a", `{}`, refusedByBreaker}, {"b", `null`, refusedByBreaker}, {"b", `1`, 0}, {"b", `"1"`, refusedByBreaker}},
		},
	} {
		t.Run(name, func(t *testing.T) { refusals(t, c.settings, fails, c.calls) })
	}
}

// A bucket belongs to one tool, or to the text of a rule under one limit.
func TestSecurityBucketsNeverCollide(t *testing.T) {
	t.Parallel()
	const one = "rate_limit: {calls: 1, per: 3600}\n"
	for name, c := range map[string]struct {
		settings string
		calls    []keyedCall
	}{
		"of tools": {one, []keyedCall{{"a", "1", 0}, {"tool a", "1", 0}, {"key a", "1", 0}, {"a", "2", refusedByLimit}, {"tool a", "2", refusedByLimit}}},
		"of a tool and of a key that looks like it": {
			one + "policy: [{when: 'tool.name == \"k\"', rate_limit_key: args.k}]\n",
			[]keyedCall{{"k", `"a"`, 0}, {"k", `"tool a"`, 0}, {"k", `"k"`, 0}, {"a", "1", 0}, {"k", `"a"`, refusedByLimit}, {"a", "2", refusedByLimit}},
		},
		"of texts that come from arguments": {
			one + "policy: [{rate_limit_key: args.k}]\n",
			[]keyedCall{{"a", `"x"`, 0}, {"a", `"x\u0000"`, 0}, {"a", `"\u0000x"`, 0}, {"a", `"X"`, 0}, {"a", `"é"`, 0}, {"a", "\"e\u0301\"", 0}, {"a", `"[\"x\"]"`, 0},
				{"a", `"x"`, refusedByLimit}, {"b", `"x"`, refusedByLimit}},
		},
		"of what is no text, which falls to the tool's": {
			one + "policy: [{rate_limit_key: args.k}]\n",
			[]keyedCall{{"a", `"[1]"`, 0}, {"a", `"{}"`, 0}, {"a", `[1]`, 0}, {"a", `{}`, refusedByLimit}, {"b", `[1]`, 0}},
		},
		"of one text under two limits": {
			"tools: {a: {rate_limit: {calls: 1, per: 3600}}, b: {rate_limit: {calls: 1, per: 3600}}}\npolicy: [{rate_limit_key: args.k}]\n",
			[]keyedCall{{"a", `"x"`, 0}, {"b", `"x"`, 0}, {"a", `"x"`, refusedByLimit}, {"b", `"x"`, refusedByLimit}},
		},
	} {
		t.Run(name, func(t *testing.T) { refusals(t, c.settings, flaky.Outcome{}, c.calls) })
	}
}

// A key that is a list or a map is no key that is its text.
func TestSecurityKeysOfEachKindNeverCollide(t *testing.T) {
	t.Parallel()
	var calls []keyed
	for _, v := range []string{`"1"`, `["1"]`, `"[\"1\"]"`, `[1]`, `"[1]"`, `[["1"]]`, `["1",""]`, `["1,"]`, `["","1"]`, `{"1":1}`, `"{\"1\":1}"`, `{"1":"1"}`, `{"a":["1"]}`,
		`[{"a":"1"}]`, `[null]`, `["null"]`, `[true]`, `["true"]`, `[1.5]`, `["1.5"]`, `[[1],2]`, `[1,[2]]`} {
		calls = append(calls, keyed{"a", `{"k":` + v + `}`})
	}
	for name, settings := range map[string]string{
		"idempotency_key": "tools: {\"*\": {effects: unsafe}}\npolicy: [{idempotency_key: args.k}]\n",
		"cache_key":       "cache: {tools: {\"*\": 600}}\npolicy: [{cache_key: args.k}]\n",
	} {
		t.Run(name, func(t *testing.T) { distinct(t, settings, calls...) })
	}
}

// Of servers behind one endpoint each has its own results, breakers and buckets, however alike their tools, rules and texts are.
func TestSecurityKeysOfComposedServersNeverCollide(t *testing.T) {
	t.Parallel()
	const rules = "    retry: {max_retries: 0}\n    cache: {tools: {read: 600}}\n    tools: {limited: {rate_limit: {calls: 1, per: 3600}}}\n" +
		"    circuit_breaker: {failure_threshold: 1, cooldown_seconds: 3600}\n" +
		"    policy: [{breaker_scope: '\"same\"', rate_limit_key: '\"same\"', cache_key: '\"same\"'}]\n"
	script := func(broken bool) flaky.Script {
		breaks := always(readTool("breaks"), flaky.Outcome{})
		if broken {
			breaks = always(readTool("breaks"), flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "down"}})
		}
		return toolbox(readTool("read"), unsafeTool("write"), readTool("limited"), breaks)
	}
	servers := []string{"a", "b", "a-b"}
	var parts []part
	for _, name := range servers {
		parts = append(parts, part{name: name, script: script(name == "a"), settings: rules})
	}
	c := startComposed(t, parts...)
	c.open()
	id := 0
	call := func(server, tool, more string) *fieldFrame {
		id++
		c.request(strconv.Itoa(id), "tools/call", fmt.Sprintf(`{"name":"%s__%s","arguments":{}%s}`, server, tool, more))
		return c.answer(strconv.Itoa(id))
	}
	for _, tool := range []string{"read", "write"} { // a write makes what was read stale
		for range 2 {
			for _, server := range servers {
				key := map[string]string{"write": `,"_meta":{"idempotencyKey":"same"}`}[tool]
				if answer := call(server, tool, key); answer.Error != nil || !strings.Contains(answer.text(), `"tool":"`+tool+`"`) {
					t.Errorf("%s of %s: %s", tool, server, answer.line)
				}
			}
		}
	}
	for _, server := range servers {
		for _, tool := range []string{"read", "write"} {
			if n := c.of(server).Executions(tool); n != 1 {
				t.Errorf("%s executed %s %d times", server, tool, n)
			}
		}
		if answer := call(server, "limited", ""); answer.Error != nil {
			t.Errorf("%s: %s", server, answer.line)
		}
	}
	if answer := call("a", "limited", `,"_meta":{"x":1}`); answer.Error == nil || answer.Error.Code != refusedByLimit {
		t.Errorf("the bucket of a is not used up: %s", answer.line)
	}
	call("a", "breaks", "")
	if answer := call("a", "breaks", ""); answer.Error == nil || answer.Error.Code != refusedByBreaker {
		t.Errorf("the breaker of a is not open: %s", answer.line)
	}
	for _, server := range servers[1:] {
		if answer := call(server, "breaks", ""); answer.Error != nil {
			t.Errorf("the breaker of a is that of %s: %s", server, answer.line)
		}
	}
}
