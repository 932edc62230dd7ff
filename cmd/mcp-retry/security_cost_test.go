package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// boundless is an expression that would take an hour for the list of [boundlessArguments], and is true.
const boundless = `args.l.all(a, args.l.all(b, args.l.all(c, a + b + c > 0)))`

var boundlessArguments = `{"l":[` + strings.Repeat("1,", 4000) + `1]}`

// An expression that exceeds what it may cost fails, and its decision falls to the careful side. That is logged and counted, and
// nobody else has to wait for it.
func TestSecurityAnExpressionThatCostsTooMuchFallsToTheCarefulSide(t *testing.T) {
	t.Parallel()
	down := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "down"}}
	for _, c := range []struct {
		decision string
		rule     string // with BOUNDLESS in it
		outcome  flaky.Outcome
		code     int // of the answer; 0 = a result
		attempts int // of two calls, one after the other
	}{
		{"when", `{when: 'BOUNDLESS', deny: '"no"'}`, flaky.Outcome{}, 0, 2},
		{"deny", `{deny: 'BOUNDLESS ? "" : "no"'}`, flaky.Outcome{}, -31005, 0},
		{"retry", `{retry: 'BOUNDLESS'}`, down, -32000, 2},
		{"cache_ttl", `{cache_ttl: 'BOUNDLESS ? duration("1h") : duration("0s")'}`, flaky.Outcome{}, 0, 2},
		{"cache_key", `{cache_key: 'BOUNDLESS ? "a" : "b"', cache_ttl: 1h}`, flaky.Outcome{}, 0, 2},
		{"effects", `{effects: 'BOUNDLESS ? "idempotent" : "none"'}`, down, -32000, 2},
		{"idempotency_key", `{idempotency_key: 'BOUNDLESS ? "a" : "b"', required: true}`, flaky.Outcome{}, -31005, 0},
		{"breaker_scope", `{breaker_scope: 'BOUNDLESS ? "" : ""'}`, flaky.Outcome{}, 0, 2},
		{"rate_limit_key", `{rate_limit_key: 'BOUNDLESS ? "a" : "b"'}`, flaky.Outcome{}, 0, 2},
		{"invalidates", `{invalidates: 'BOUNDLESS ? ["a"] : ["b"]'}`, flaky.Outcome{}, 0, 2},
	} {
		t.Run(c.decision, func(t *testing.T) {
			t.Parallel()
			f := startMeasured(t, "rate_limit: {calls: 100, per: 60}\nretry: {base_delay: 1ms}\npolicy:\n  - "+strings.ReplaceAll(c.rule, "BOUNDLESS", boundless),
				toolbox(always(readTool("work"), c.outcome)))
			f.open()
			for _, id := range []string{"1", "2"} {
				f.call(id, "work", boundlessArguments)
				f.ping()
				if c.code == 0 {
					f.success(id)
				} else {
					f.failure(id, c.code)
				}
			}
			f.attempts("work", c.attempts)
			f.record("the failure", func(r fieldRecord) bool { return r.Msg == "cel_error" && strings.Contains(r.Detail, "cost") })
			_, page := f.page("/metrics")
			if counted := fmt.Sprintf(`mcp_retry_cel_errors_total{decision="%s",server="flaky"}`, c.decision); !strings.Contains(page, counted) {
				t.Errorf("there is no %s", counted)
			}
		})
	}
}

// Patterns take time in proportion to the text: one that others would try in as many ways as there are stars in it is no matter.
func TestSecurityPatternsDoNotBacktrack(t *testing.T) {
	t.Parallel()
	f := startField(t, `policy: [{when: 'args.s.matches("^(((a+)+)+)+$")', deny: '"all of it"'}]`, toolbox(readTool("work")))
	f.open()
	many := strings.Repeat("a", 1000)
	f.call("1", "work", `{"s":"`+many+`b"}`)
	f.success("1")
	f.call("2", "work", `{"s":"`+many+`"}`)
	f.failure("2", -31005)
}
