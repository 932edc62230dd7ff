package policy

import "testing"

func TestLintFindsCachesThatHideWrites(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"every tool", `
    policy:
      - cache_ttl: 30`, `5:9+9 warning[cache-writes] keeps the results of every tool, also of those that write: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
		{"every tool that says so", `
    policy:
      - when: has(args.cached)
        cache_ttl: 30`, `6:9+9 note[cache-writes] keeps the results of every tool, also of those that write: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
		{"a tool that is said to write", `
    tools:
      touch: {effects: idempotent, cache_ttl: 30}`, `5:36+9 warning[cache-writes] keeps the results of "touch", which does more than read: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
		{"a tool that a rule says to write", `
    cache: {tools: {touch: 30}}
    policy:
      - when: tool.name == "touch"
        effects: unsafe`, `4:21+5 warning[cache-writes] keeps the results of "touch", which does more than read: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
		{"a tool whose name says that it writes", `
    cache: {tools: {create_issue: 30, get_issue: 30}}`, `4:21+12 warning[cache-writes] keeps the results of "create_issue", which does more than read: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
		{"default_ttl covers tools without annotations", `
    cache: {default_ttl: 30}`, `4:13+11 warning[cache-unannotated] keeps the results of tools without annotations too, and they may do more than read (use cache.tools, or a rule with when: tool.effects == "none")`},
		{"tools without annotations by a rule", `
    policy:
      - when: tool.effects in ["none", "unannotated"]
        cache_ttl: 30`, `6:9+9 note[cache-unannotated] keeps the results of tools without annotations, which may do more than read (cache only what reads: when: tool.effects == "none")`},
		{"silent: only what reads", `
    cache: {default_ttl: 0, tools: {get_*: 30, "write_*": 0}}
    tools:
      create_report: {effects: none, cache_ttl: 30}
    policy:
      - when: tool.effects == "none" || tool.name.startsWith("search_")
        cache_ttl: 30
      - when: tool.name == "x"
        effects: none
        cache_ttl: 10`, ""},
	})
}

func TestLintFindsKeysThatNameNoOperation(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a constant", `
    policy:
      - idempotency_key: '"charge"'`, `5:27+8 warning[key-constant] idempotency_key is the same for every call: the first one's result answers all others (name what makes two calls the same: [args.order, args.amount])`},
		{"only the tool", `
    policy:
      - when: tool.name == "x"
        idempotency_key: hash(["x", tool.name])
        cache_key: '[client.name]'`, `
6:26+22 warning[key-constant] idempotency_key is the same for every call of a tool: the first one's result answers all others (name what makes two calls the same: [args.order, args.amount])
7:21+13 warning[key-constant] cache_key is the same for every call of a tool by a client: they all get the answer of the first, whatever their arguments (name what makes two calls the same: [args.order, args.amount])`},
		{"the time", `
    policy:
      - idempotency_key: '[args.order, now]'`, `5:40+3 warning[key-volatile] now is new for each call, so no repeat is recognized (leave it out of the key)`},
		{"a nonce", `
    policy:
      - idempotency_key: '{"order": args.order, "n": args.options.nonce}'
        cache_key: '[args.q, meta.progressToken]'`, `
5:54+18 warning[key-volatile] args.options.nonce is new for each call, so no repeat is recognized (leave it out of the key)
6:30+18 warning[key-volatile] meta.progressToken is new for each call, so nothing is ever found in the cache (leave it out of the key)`},
		{"all of meta", `
    policy:
      - cache_key: '[args, meta]'`, `5:28+4 warning[key-volatile] meta (it holds the progress token) is new for each call, so nothing is ever found in the cache (leave it out of the key)`},
		{"an id of the call among others", `
    policy:
      - idempotency_key: '[args.order, args.request_id]'`, `5:40+15 warning[key-volatile] args.request_id is new for each call, so no repeat is recognized (leave it out of the key)`},
		{"an id of the call alone", `
    policy:
      - idempotency_key: args.request_id`, `5:26+15 note[key-volatile] args.request_id is new for each call, so no repeat is recognized (it does its work only if the caller sends the same one again)`},
		{"joined by +", `
    policy:
      - idempotency_key: args.user + "/" + string(args.amount)`, `5:26+37 warning[key-concat] joined to one text, values that differ can be equal ("a" + "bc" is "ab" + "c") (write a list: [args.user, args.amount])`},
		{"joined by format and by join", `
    policy:
      - idempotency_key: '"%s-%s".format([args.a, args.b])'
        cache_key: '[args.a, args.b].join("-")'`, `
5:27+32 warning[key-concat] joined to one text, values that differ can be equal ("a" + "bc" is "ab" + "c") (write a list: [args.a, args.b])
6:21+26 warning[key-concat] joined to one text, values that differ can be equal ("a" + "bc" is "ab" + "c") (write a list: [args.a, args.b])`},
		{"silent: keys as they should be", `
    policy:
      - name: a
        when: has(args.nonce) && now > timestamp("2030-01-01T00:00:00Z")
        idempotency_key: '["pay", args.order, now.getFullYear()]'
        cache_key: omit(args, ["nonce", "timestamp"])
      - name: b
        idempotency_key: '"order-" + args.order'
        cache_key: '[tool.name] + [args.a, args.b]'
      - name: c
        idempotency_key: 'tool.readOnly ? false : dyn(hash(args.a) + hash(args.b))'
      - name: d
        idempotency_key: false`, ""},
	})
}

func TestLintFindsScopesWithoutBounds(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a url", `
    policy:
      - when: has(args.url)
        breaker_scope: args.url`, `6:24+8 warning[breaker-scope-unbounded] breaker_scope takes any value of args.url: each value has a breaker of its own, of which hardly any counts to its threshold (keep to a known set: when: args.url in ["…", "…"])`},
		{"through a binding", `
    policy:
      - breaker_scope: cel.bind(h, args.url.lowerAscii(), "host/" + h)`, `5:36+8 warning[breaker-scope-unbounded] breaker_scope takes any value of args.url: each value has a breaker of its own, of which hardly any counts to its threshold (keep to a known set: when: args.url in ["…", "…"])`},
		{"all arguments", `
    policy:
      - rate_limit_key: hash(args)`, `5:30+4 warning[rate-key-unbounded] rate_limit_key takes any value of args: each value has a bucket of its own, so all together they are not limited (name one argument that has few values)`},
		{"an argument of which nothing is known", `
    policy:
      - breaker_scope: '"region/" + args.region'`, `5:37+11 note[breaker-scope-unbounded] breaker_scope takes any value of args.region: each value has a breaker of its own, of which hardly any counts to its threshold (keep to a known set: when: args.region in ["…", "…"])`},
		{"silent: a known set", `
    tools:
      x: {circuit_breaker: {failure_threshold: 5}}
    policy:
      - when: has(args.url) && args.url in ["a", "b"]
        breaker_scope: '"u/" + args.url'
      - when: tool.name == "y"
        breaker_scope: 'args.url == "x" || args.url == "y" ? args.url : "other"'
        rate_limit_key: 'client.name + (has(args.url) ? "a" : "b")'
      - name: c
        when: tool.name == "z"
        breaker_scope: 'cel.bind(h, args.url.lowerAscii(), h in ["a", "b"] ? h : "other")'`, ""},
		{"the breaker counts answers", `
    policy:
      - when: error.kind == "tool"
        breaker_failure: true`, `6:9+15 warning[breaker-counts-answers] counts every isError result as a failure of the server: a few wrong arguments shut out all its tools (count only what says that the server is down: error.transient, or a text that says so)`},
		{"the breaker counts every error", `
    policy:
      - breaker_failure: error.kind != ""`, `5:26+16 warning[breaker-counts-answers] counts every isError result as a failure of the server: a few wrong arguments shut out all its tools (count only what says that the server is down: error.transient, or a text that says so)`},
		{"silent: it counts what says that the server is down", `
    policy:
      - when: error.kind == "tool" && error.text.contains("503")
        breaker_failure: true
      - breaker_failure: error.transient`, ""},
	})
}
