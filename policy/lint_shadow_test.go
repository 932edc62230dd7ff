package policy

import "testing"

func TestLintFindsShadowedRules(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"under a rule without when", `
    policy:
      - name: all
        retry: false
      - name: some
        when: error.kind == "timeout" && tool.readOnly
        retry: true`, `7:9+1 warning[rule-shadowed] rule "some" never decides anything: rule "all" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)`},
		{"the same when and more", `
    policy:
      - name: a
        when: args.x == 1
        max_retries: 1
        call_timeout: 5
      - name: b
        when: tool.readOnly && args.x == 1
        max_retries: 2`, `9:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)`},
		{"what holds is covered by what two rules say", `
    policy:
      - name: a
        when: error.transient
        breaker_failure: true
      - name: b
        when: error.kind == "tool" && tool.readOnly
        breaker_failure: false
      - name: c
        when: error.kind == "timeout"
        breaker_failure: false`, `11:9+1 warning[rule-shadowed] rule "c" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)`},
		{"one decision of two", `
    policy:
      - name: a
        cache_ttl: 0
      - name: b
        when: tool.readOnly
        cache_ttl: 30
        max_retries: 1`, `9:9+9 warning[rule-shadowed] cache_ttl of rule "b" never counts: rule "a" (line 5) above it decides that for every call (move the rule above that one, or remove one of the two)`},
		{"a setting under a policy", `
    cache: {tools: {list_x: 30}}
    policy:
      - name: a
        cache_ttl: 0`, `4:21+6 warning[rule-shadowed] rule "cache.tools.list_x" never decides anything: rule "a" (line 6) above it decides all of it for every call (let that rule hold for less, or remove one of the two)`},
		{"silent: overlaps, other decisions, keys that may be null, and overridden defaults", `
    call_timeout: 20
    tools:
      "*": {effects: none}
      a_*: {call_timeout: 10}
    policy:
      - name: a
        when: tool.name == "x"
        max_retries: 1
        idempotency_key: args.?key.orValue(null)
      - name: b
        when: tool.name == "x" && args.y == 1
        call_timeout: 10
        idempotency_key: '[args.order]'
      - name: c
        when: tool.name == "y"
        max_retries: 1`, ""},
		{"a reason of deny that another one goes before", `
    policy:
      - name: closed
        deny: '"closed"'
      - name: pay
        when: tool.name == "pay"
        deny: '"no payments"'`, `7:9+1 warning[rule-shadowed] rule "pay" never decides anything: rule "closed" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)`},
		{"one name of a list", `
    policy:
      - name: a
        when: tool.name in ["get", "put"]
        call_timeout: 10
      - name: b
        when: tool.name == "put"
        call_timeout: 20`, `8:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)`},
		{"a list, and a rule for each of its names", `
    policy:
      - {name: a, when: tool.name == "get", call_timeout: 10}
      - {name: b, when: tool.name == "put", call_timeout: 10}
      - name: c
        when: tool.name in ["get", "put"]
        call_timeout: 20`, `7:9+1 warning[rule-shadowed] rule "c" never decides anything: rules above it, of which "b" (line 6) is the last, decide all of it whenever this one holds (move it above those rules, or remove it)`},
		{"a name and a longer prefix under a glob", `
    policy:
      - name: a
        when: glob(tool.name, "get_*")
        call_timeout: 10
      - {name: b, when: tool.name == "get_x", call_timeout: 20}
      - {name: c, when: tool.name.startsWith("get_y"), call_timeout: 20}`, `
8:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)
9:9+1 warning[rule-shadowed] rule "c" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)`},
		{"a smaller number", `
    policy:
      - {name: a, when: args.n > 2, call_timeout: 10}
      - {name: b, when: args.n > 3 && tool.readOnly, call_timeout: 20}`, `6:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it whenever this one holds (move it above that rule, or remove one of the two)`},
		{"a setting of a tool under a rule for its name", `
    tools: {get_x: {call_timeout: 5}}
    policy:
      - {name: a, when: tool.name.startsWith("get_"), call_timeout: 10}`, `4:21+12 warning[rule-shadowed] rule "tools.get_x.call_timeout" never decides anything: rule "a" (line 6) above it decides all of it whenever this one holds (let that rule hold for less, or remove one of the two)`},
		{"breaker_failure under an expression: also where that fails no other rule is asked", `
    policy:
      - {name: a, breaker_failure: result.isError && error.transient}
      - {name: b, when: tool.readOnly, breaker_failure: true}`, `6:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)`},
		{"silent: shorter prefixes, smaller numbers, values that may be missing, and deny with nothing to say", `
    policy:
      - {when: tool.name.startsWith("get_x"), call_timeout: 10}
      - {when: tool.name.startsWith("get_"), call_timeout: 20}
      - {when: args.n > 2, max_retries: 1}
      - {when: args.n > 1, max_retries: 2}
      - {when: args.mode != "fast" || args.mode == "fast", total_timeout: 50}
      - {total_timeout: 60}
      - {deny: ""}
      - {when: tool.name == "pay", deny: '"no"'}`, ""},
	})
}
