package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestErrorsAsResults(t *testing.T) {
	w := session(t, "errors: result\nretry: {max_retries: 0}\ncall_timeout: 2\npolicy: [{deny: 'tool.name == \"idem\" ? \"no\" : \"\"'}]")
	w.call("1", "read", `{}`)
	w.attempt()
	w.advance(3 * time.Second)
	w.call("2", "idem", `{}`)
	for _, tt := range []struct {
		id   string
		code string
	}{{"1", "-31001"}, {"2", "-31005"}} {
		result := w.answer(tt.id)["result"].(map[string]any)
		note := result["_meta"].(map[string]any)["io.github.bentabol.mcp-retry/error"].(map[string]any)
		if result["isError"] != true || note["code"].(interface{ String() string }).String() != tt.code {
			t.Errorf("the answer is %v", result)
		}
	}
	w.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	w.die()
	w.wantError("3", engine.CodeUnavailable) // only calls have results
}

func TestMarkedResults(t *testing.T) {
	const key = "io.github.bentabol.mcp-retry/origin"
	for result, want := range map[string]string{
		`{}`:                          `{"_meta":{"` + key + `":{"cached":true,"ageMs":0}}}`,
		`{"content":[]}`:              `{"content":[],"_meta":{"` + key + `":{"cached":true,"ageMs":0}}}`,
		`{"_meta":{"a":1},"b":2}`:     `{"_meta":{"a":1,"` + key + `":{"cached":true,"ageMs":0}},"b":2}`,
		`{"_meta":null}`:              `{"_meta":{"` + key + `":{"cached":true,"ageMs":0}}}`,
		`{"_meta":{"` + key + `":1}}`: `{"_meta":{"` + key + `":{"cached":true,"ageMs":0}}}`,
	} {
		w := session(t, "mark_results: true\ncache: {tools: {read: 60}}")
		w.call("1", "read", `{}`)
		w.reply(w.attempt(), result)
		w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)
		w.call("2", "read", `{}`)
		w.wantToClient(`{"jsonrpc":"2.0","id":2,"result":` + want + `}`)
	}
	w := session(t, "mark_results: true")
	w.call("1", "read", `{}`)
	w.call("2", "read", `{}`)
	w.reply(w.attempt(), `{}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":2,"result":{"_meta":{"` + key + `":{"joined":true,"ageMs":0}}}}`)
}

func TestToolsThatAreFilteredCannotBeCalled(t *testing.T) {
	w := session(t, `tool_filter: {allow: ["re*", "wr*"], deny: ["write"]}`)
	for tool, allowed := range map[string]bool{"read": true, "write": false, "plain": false, "wrap": true} {
		w.call("1", tool, `{}`)
		if allowed {
			w.request("tools/call")
			continue
		}
		w.quiet()
		w.wantError("1", engine.CodeDenied)
	}
}

func TestExpressionsThatErrFallToTheirCarefulSide(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rule  string
		tool  string
		check func(*world)
	}{
		{"retry", `retry: args.no == 1`, "read", func(w *world) {
			w.refuse(w.attempt(), -32000)
			w.advance(time.Minute)
			w.quiet()
			w.wantError("1", -32000)
		}},
		{"when", `{when: args.no == 1, retry: false}`, "read", func(w *world) {
			w.refuse(w.attempt(), -32000)
			w.advance(time.Second)
			w.attempt() // the rule is skipped
		}},
		{"deny", `deny: args.no`, "read", func(w *world) { w.quiet(); w.wantError("1", engine.CodeDenied) }},
		{"effects", `effects: args.no`, "read", func(w *world) {
			w.attempt()
			w.die()
			w.advance(time.Minute)
			w.wantError("1", engine.CodeUnavailable) // unsafe
		}},
		{"cache_ttl", `cache_ttl: result.no`, "read", func(w *world) {
			w.text(w.attempt(), "ok")
			w.wantText("1", "ok")
			w.call("2", "read", `{}`)
			w.attempt()
		}},
		{"cache_key", `{cache_ttl: 60s, cache_key: args.no}`, "read", func(w *world) {
			w.text(w.attempt(), "ok")
			w.wantText("1", "ok")
			w.call("2", "read", `{}`)
			w.attempt()
		}},
		{"retry_unsafe", `{retry: true, retry_unsafe: args.no}`, "write", func(w *world) {
			w.attempt()
			w.die()
			w.advance(time.Minute)
			w.wantError("1", engine.CodeUnavailable)
		}},
		{"retry_delay", `retry_delay: args.no`, "read", func(w *world) {
			w.refuse(w.attempt(), -32000)
			w.advance(time.Second)
			w.attempt()
		}},
		{"breaker_scope", `breaker_scope: args.no`, "read", func(w *world) { w.attempt() }},
		{"rate_limit_key", `rate_limit_key: args.no`, "read", func(w *world) { w.attempt() }},
		{"idempotency_key", `idempotency_key: args.no`, "write", func(w *world) {
			w.call("2", "write", `{}`)
			w.attempt()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule := tt.rule
			if rule[0] != '{' {
				rule = "{" + rule + "}"
			}
			w := session(t, fast+"policy: ["+rule+"]")
			w.call("1", tt.tool, `{}`)
			tt.check(w)
			if w.logged("cel_error") == 0 && tt.name != "rate_limit_key" {
				t.Error("nothing was logged")
			}
		})
	}
}

func TestAnInvalidatesThatErrsDropsTheWholeCache(t *testing.T) {
	w := session(t, "cache: {tools: {read: 60}}\npolicy: [{when: 'tool.name == \"idem\"', invalidates: [{tool: read, args: '{\"x\": args.no}'}]}]")
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "old")
	w.wantText("1", "old")
	w.call("2", "idem", `{}`)
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
	w.call("3", "read", `{}`)
	w.attempt()
}

func TestInvalidatesNamesCallsByTheirArguments(t *testing.T) {
	w := session(t, "cache: {tools: {read: 60}}\npolicy: [{when: 'tool.name == \"idem\"', invalidates: [{tool: re*, args: '{\"x\": args.x}'}]}]")
	for _, x := range []string{"1", "2"} {
		w.call(x, "read", `{"x":`+x+`}`)
		w.text(w.attempt(), "old")
		w.wantText(x, "old")
	}
	w.call("3", "idem", `{"x":1}`)
	w.text(w.attempt(), "ok")
	w.wantText("3", "ok")
	w.call("4", "read", `{"x":2}`)
	w.wantText("4", "old")
	w.call("5", "read", `{ "x" : 1.0 }`)
	w.attempt()
}

func TestARateLimitMakesCallsWaitTheirTurn(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 2, burst: 1, max_wait: 5}")
	for _, id := range []string{"1", "2", "3", "4"} {
		w.call(id, "read", `{"n":`+id+`}`)
	}
	if data := w.wantError("4", engine.CodeRateLimited); data["mayHaveExecuted"] != "no" || data["retryAfterMs"] == nil {
		t.Errorf("data is %v", data)
	}
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.quiet()
	w.cancel("2") // gives its token back
	w.advance(2 * time.Second)
	w.advance(2 * time.Second)
	a := w.attempt()
	if got := a["params"].(map[string]any)["arguments"].(map[string]any)["n"].(interface{ String() string }).String(); got != "3" {
		t.Errorf("call %s went next, want 3", got)
	}
	w.quiet()
}

func TestAWaitForARateTokenThatIsTooLongIsRefusedAtOnce(t *testing.T) {
	w := session(t, "rate_limit: {calls: 1, per: 60}")
	w.call("1", "read", `{"n":1}`)
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.call("2", "read", `{"n":2}`)
	w.wantError("2", engine.CodeRateLimited)
	w.call("3", "plain", `{}`) // another bucket
	w.attempt()
}

func TestTheRetryBudgetBoundsRetriesAndUnknownOnesCostDouble(t *testing.T) {
	w := session(t, fast+"retry_budget: {ratio: 0.5, per_second: 0.001, burst: 3}\ncall_timeout: 2")
	w.call("1", "read", `{}`)
	w.attempt()
	w.advance(3 * time.Second) // costs 2
	w.request("notifications/cancelled")
	w.refuse(w.attempt(), -32000) // costs 1
	w.advance(time.Second)
	w.refuse(w.attempt(), -32000)
	w.advance(time.Second)
	w.quiet()
	w.wantError("1", -32000)
	for _, id := range []string{"2", "3"} { // each earns a half
		w.call(id, "read", `{}`)
		w.text(w.attempt(), "ok")
		w.wantText(id, "ok")
	}
	w.call("4", "read", `{}`)
	w.refuse(w.attempt(), -32000)
	w.advance(time.Second)
	w.text(w.attempt(), "ok")
	w.wantText("4", "ok")
}

func TestAHintBeyondAllMeasureEndsTheLoop(t *testing.T) {
	for _, hint := range []string{`9e18`, `9223372036854775807`, `1e300`, `100000`} {
		w := session(t, fast)
		w.call("1", "read", `{}`)
		w.say(`{"jsonrpc":"2.0","id":` + idOf(w.attempt()) + `,"error":{"code":-32023,"message":"m","data":{"retryAfter":` + hint + `}}}`)
		w.advance(time.Minute)
		w.quiet()
		w.wantError("1", -32023)
	}
}

// B108: the cooldown is counted from the failure that opened the breaker, and from that of the probe.
func TestB108RefusedCallsNeverMoveTheCooldown(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 2}")
	w.call("0", "read", `{}`)
	w.refuse(w.attempt(), -32000)
	w.wantError("0", -32000)
	var probes []time.Duration
	for range 45 {
		w.advance(100 * time.Millisecond)
		w.call("1", "read", `{}`)
		if len(w.server) > 0 {
			probes = append(probes, w.now.Sub(w.start))
			w.refuse(w.attempt(), -32000)
		}
		w.client = nil
	}
	if len(probes) != 2 || probes[0] != 2*time.Second || probes[1] != 4*time.Second {
		t.Errorf("probes went at %v", probes)
	}
}

func TestB107AProbeRestartsADeadServer(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 2}")
	w.call("0", "read", `{}`)
	w.attempt()
	w.die()
	w.wantError("0", engine.CodeUnavailable)
	w.call("1", "read", `{}`)
	w.wantError("1", engine.CodeCircuitOpen)
	w.advance(2 * time.Second)
	w.call("2", "read", `{}`)
	w.revive()
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
	w.call("3", "read", `{}`)
	w.attempt()
}

func TestB105AnswersOfTheToolDoNotOpenTheBreaker(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2}")
	for range 5 {
		w.call("1", "read", `{}`)
		w.reply(w.attempt(), `{"content":[],"isError":true}`)
		w.call("2", "read", `{}`)
		w.refuse(w.attempt(), -32602)
	}
	w.call("3", "read", `{}`)
	w.attempt()
}

// What a breaker granted says nothing once its state has changed: calls that wait to be sent ask again.
func TestACallThatWaitedAsksTheBreakerAgain(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 60}\nrate_limit: {calls: 1, per: 2, burst: 2, max_wait: 5}")
	w.call("1", "read", `{"n":1}`)
	w.call("2", "read", `{"n":2}`)
	w.call("3", "read", `{"n":3}`)
	w.refuse(w.attempt(), -32000)
	w.wantError("1", -32000)
	w.attempt()
	w.advance(3 * time.Second)
	w.quiet()
	w.wantError("3", engine.CodeCircuitOpen)
}
