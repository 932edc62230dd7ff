package policy

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

// lintCase is the body of a server, indented by four, and what Lint says of it. The body begins at line 4.
type lintCase struct {
	name string
	body string
	want string // line:col+len level[id] message (hint), each on its own line
}

// lint loads, compiles and lints a file whose one server has the body.
func lint(t *testing.T, body string, tools []ToolInfo) schema.Findings {
	t.Helper()
	text := "servers:\n  s:\n    command: x\n" + strings.Trim(body, "\n") + "\n"
	cfg, findings := schema.Load("f.yaml", []byte(text), nil)
	if cfg == nil || findings.HasErrors() {
		t.Fatalf("it does not load: %v", findings)
	}
	p, compiled := Compile(cfg.Servers[0])
	if p == nil {
		t.Fatalf("it does not compile: %v", compiled)
	}
	return append(compiled, Lint(cfg.Servers[0], p, tools)...)
}

// linted are the findings as cases have them; without all, what nearly every file gets is left out.
func linted(findings schema.Findings, all bool) string {
	var b strings.Builder
	for _, f := range findings {
		if f.ID == LintRetryUnannotated && !all {
			continue
		}
		fmt.Fprintf(&b, "%d:%d+%d %s[%s] %s", f.Pos.Line, f.Pos.Col, f.Pos.Len, f.Level, f.ID, f.Message)
		if f.Hint != "" {
			fmt.Fprintf(&b, " (%s)", f.Hint)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func runLintCases(t *testing.T, tools []ToolInfo, all bool, cases []lintCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := linted(lint(t, tc.body, tools), all), strings.TrimSpace(tc.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLintLeavesTheExamplesInPeace(t *testing.T) {
	files, _ := filepath.Glob("../examples/*/mcp-retry.yaml")
	if len(files) == 0 {
		t.Fatal("no examples")
	}
	for _, file := range files {
		cfg, _, err := schema.LoadFile(file, func(string) (string, bool) { return "x", true })
		if err != nil || cfg == nil {
			t.Fatalf("%s does not load: %v", file, err)
		}
		for _, s := range cfg.Servers {
			p, findings := Compile(s)
			for _, f := range append(findings, Lint(s, p, nil)...) {
				if f.Level != schema.Note {
					t.Errorf("%v", f)
				}
			}
		}
	}
}

func TestLintFindsConditionsThatAreNone(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"two kinds at once", `
    policy:
      - name: a
        when: error.kind == "timeout" && error.kind == "exit"
        retry: false`, `6:15+47 warning[condition-never] the condition of rule "a" is true for no call (its parts exclude one another: for one of several use ||)`},
		{"transience and kind", `
    policy:
      - name: a
        when: error.kind == "tool" && error.transient
        retry: false`, `6:15+39 warning[condition-never] the condition of rule "a" is true for no call (its parts exclude one another: for one of several use ||)`},
		{"a part of a condition", `
    policy:
      - name: a
        when: tool.readOnly || (error.delivery == "unknown" && error.code == -32602)
        retry: false`, `6:33+51 warning[condition-never] this part is true for no call (its parts exclude one another: for one of several use ||)`},
		{"always", `
    policy:
      - name: a
        when: error.kind != "timeout" || error.transient
        retry: false`, `6:15+42 warning[condition-always] the condition of rule "a" is true for every call (remove the when: the rule holds for every call)`},
		{"a part that is always true", `
    policy:
      - name: a
        when: tool.readOnly && (tool.effects != "none" || tool.effects != "unsafe")
        retry: false`, `6:33+50 warning[condition-always] this part is true for every call (it can be left out)`},
		{"a decision", `
    policy:
      - retry: '!(error.code > 5 || error.code <= 5)'`, `5:17+36 warning[condition-never] retry is true for no call (write retry: false if that is meant)`},
		{"a decision without a variable", `
    policy:
      - retry: 1 == 1`, `
5:16+6 warning[condition-always] retry is true for every call (write retry: true if that is meant)
5:16+6 warning[retry-answered] also retries tools with unsafe effects after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)
5:16+6 warning[retry-hopeless] retries every error, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)`},
		{"no success before the call", `
    policy:
      - name: a
        when: 'error.kind == ""'
        retry: true`, `6:16+16 warning[condition-never] the condition of rule "a" is true for no call (the rule never says anything: correct it, or remove it)`},
		{"hints without annotations", `
    policy:
      - name: a
        when: '!tool.annotated && tool.readOnly'
        max_retries: 1`, `6:16+32 warning[condition-never] the condition of rule "a" is true for no call (its parts exclude one another: for one of several use ||)`},
		{"folded over lines", `
    policy:
      - name: a
        when: >-
          args.x == 1 ||
          error.kind == "exit" &&
          error.kind == "spawn"
        retry: false`, `8:11+24 warning[condition-never] this part is true for no call (its parts exclude one another: for one of several use ||)`},
		{"switched off", `
    policy:
      - name: a
        when: false
        retry: true`, `6:15+1 note[condition-never] rule "a" is switched off (remove the rule when it is no longer wanted)`},
		{"a word that never is, reported once", `
    policy:
      - name: a
        when: error.kind == "timout" && error.transient
        retry: false`, `6:29+8 warning[cel-never] error.kind is never "timout" (did you mean "timeout"?)`},
		{"silent: every value can be", `
    policy:
      - name: a
        when: error.kind == "timeout" || error.kind == "exit" || args.x == 1 && tool.name != "y"
        retry: false
      - name: b
        when: error.code >= -32099 && error.code <= -32000 && tool.effects != "none"
        breaker_failure: false
      - name: c
        when: 'error.kind == "" && tool.annotated && tool.readOnly'
        breaker_failure: false
      - name: d
        when: has(args.a) && !has(args.b) && args.l.exists(x, x == 1) && now > timestamp("2030-01-01T00:00:00Z")
        max_retries: 1`, ""},
	})
}

func TestLintFindsRetriesThatDoHarm(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"unsafe after a timeout", `
    policy:
      - name: a
        when: error.kind == "timeout"
        retry: true
        retry_unsafe: true`, `8:9+12 warning[retry-unsafe] retries a tool with unsafe effects after a timeout, though the server may have executed the call: it may be executed twice (give the operation an idempotency_key that the server honours (forward_key), or leave it out)`},
		{"unsafe by an expression", `
    policy:
      - retry: error.transient && tool.effects == "none"
        retry_unsafe: tool.name.startsWith("put_")
      - when: tool.effects == "unsafe" && error.kind == "exit"
        retry: true`, `
6:23+28 warning[retry-unsafe-idle] retry_unsafe does nothing here: no rule retries a tool with unsafe effects whose attempt may have been executed (state retry: true beside it, or remove it)
7:9+1 warning[rule-shadowed] rule "policy[1]" never decides anything: rule "policy[0]" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)`},
		{"retry_unsafe to no purpose", `
    policy:
      - retry_unsafe: true`, `5:9+12 warning[retry-unsafe-idle] retry_unsafe does nothing here: no rule retries a tool with unsafe effects whose attempt may have been executed (state retry: true beside it, or remove it)`},
		{"silent: not of unsafe tools, or repaired", `
    policy:
      - when: tool.effects != "unsafe" && error.kind == "timeout"
        retry: true
        retry_unsafe: true
      - when: error.kind == "overloaded"
        retry: true`, ""},
		{"after an answer", `
    policy:
      - name: a
        when: error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, `7:9+5 warning[retry-answered] also retries tools with unsafe effects after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)`},
		{"after an answer, of a tool that is known", `
    tools:
      send_mail: {effects: unsafe}
    policy:
      - name: a
        when: tool.name == "send_mail" && error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, `9:9+5 warning[retry-answered] also retries "send_mail" after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)`},
		{"silent: only of tools that may be repeated", `
    tools:
      search: {effects: none}
    policy:
      - when: tool.effects in ["none", "idempotent"] && error.kind == "tool" && error.text.contains("rate limit")
        retry: true
      - when: tool.name == "search" && error.kind == "tool" && error.text.contains("again")
        retry: true
      - name: key
        when: tool.name == "create_charge"
        idempotency_key: '[args.order]'
        forward_key: _meta.key
      - when: tool.name == "create_charge" && error.kind == "tool" && error.text.contains("again")
        retry: true`, ""},
	})
	runLintCases(t, nil, true, []lintCase{
		{"unannotated tools", `    call_timeout: 5`, `2:3+1 note[retry-unannotated] tools without annotations are retried after a timeout, though the server may have executed the call (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
		{"unannotated tools that a rule retries", `
    policy:
      - when: tool.effects == "unannotated"
        retry: error.kind == "timeout"`, `6:16+23 note[retry-unannotated] tools without annotations are retried after a timeout, though the server may have executed the call (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
		{"silent: they are left alone", `
    policy:
      - when: '!tool.annotated'
        retry: false`, ""},
	})
}

func TestLintFindsRetriesToNoPurpose(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a code that is refused", `
    policy:
      - when: tool.effects == "none" && error.code in [-32603, -32602]
        retry: true`, `5:64+6 warning[retry-hopeless] -32602 (invalid parameters) is never retried, whatever a rule says: the server would refuse the same call again (remove it)`},
		{"401 by its code", `
    policy:
      - when: tool.effects == "none"
        retry: error.code == 401`, `6:30+3 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"401 by its text", `
    policy:
      - when: tool.effects == "none" && error.kind == "tool" && error.text.contains("401")
        retry: true`, `5:85+5 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"by a pattern", `
    policy:
      - when: tool.effects == "none" && error.text.matches("(?i)unauthorized|forbidden")
        retry: true`, `5:60+28 warning[retry-hopeless] retries 401, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"validation by its text", `
    policy:
      - when: tool.effects == "none" && error.text.contains("validation")
        retry: true`, `5:61+12 warning[retry-hopeless] retries invalid arguments, which a repeat cannot mend (leave it out: the caller has to see it)`},
		{"every error of a tool", `
    policy:
      - when: tool.effects == "none" && error.kind == "tool"
        retry: true`, `5:41+20 warning[retry-hopeless] retries every error of a tool, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)`},
		{"everything", `
    policy:
      - when: tool.readOnly && tool.effects == "none"
        retry: true`, `6:9+5 warning[retry-hopeless] retries every error, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)`},
		{"silent: what passes", `
    policy:
      - name: no
        when: error.text.contains("401")
        retry: false
      - when: tool.effects == "none" && error.text.matches("40[13]|rate limit")
        retry: false
      - when: tool.effects == "none" && error.text.matches("(?i)rate limit|too many requests|timed out")
        retry: true
      - when: tool.effects == "none" && (error.code == -32603 || error.transient)
        retry: true`, ""},
		{"no jitter", `
    retry: {jitter: 0}`, `4:13+6 warning[retry-no-jitter] without jitter all clients of a server that was down come back at the same moment (write jitter: 0.2)`},
		{"silent: no jitter and no retries", `
    retry: {jitter: 0, max_retries: 0}`, ""},
	})
}

func TestLintAddsUpTimes(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"few attempts fit", `
    call_timeout: 20
    total_timeout: 60
    retry: {max_retries: 5}`, `
5:5+13 warning[worst-case-time] 6 attempts of 20s and waits of 18.6s between them take 2m18.6s, more than total_timeout (1m): only 2 of them fit (raise total_timeout to 2m19s, or lower call_timeout or max_retries)
6:13+11 note[breaker-in-one-call] one call makes up to 6 attempts, and 5 failures open the breaker: the last is never made, and other calls are shut out (raise failure_threshold above 6, or lower max_retries)`},
		{"no second attempt fits", `
    call_timeout: 30
    total_timeout: 45
    retry: {max_retries: 1}`, `5:5+13 warning[worst-case-time] 2 attempts of 30s and waits of 600ms between them take 1m0.6s, more than total_timeout (45s): after one that times out there is no time for another (raise total_timeout to 1m1s, or lower call_timeout or max_retries)`},
		{"some do not fit", `
    call_timeout: 20
    total_timeout: 55`, `5:5+13 note[worst-case-time] 4 attempts of 20s and waits of 4.2s between them take 1m24.2s, more than total_timeout (55s) (raise total_timeout to 1m25s, or lower call_timeout or max_retries)`},
		{"of one tool", `
    total_timeout: 60
    call_timeout: 5
    tools:
      slow_*: {call_timeout: 50}`, `4:5+13 warning[worst-case-time] 4 attempts of "slow_*" of 50s and waits of 4.2s between them take 3m24.2s, more than total_timeout (1m): after one that times out there is no time for another (raise total_timeout to 3m25s, or lower call_timeout or max_retries)`},
		{"silent: all fit, there are no retries, or it depends", `
    call_timeout: 10
    total_timeout: 60
    tools:
      a: {call_timeout: 40, retry: {max_retries: 0}}
      b: {call_timeout: 50, effects: unsafe}
      c: {call_timeout: 40}
    policy:
      - when: tool.name == "c" && args.quick == true
        max_retries: 0`, ""},
		{"the breaker opens within a call", `
    retry: {max_retries: 5}
    circuit_breaker: {failure_threshold: 3}`, `5:23+17 warning[breaker-in-one-call] one call makes up to 6 attempts, and 3 failures open the breaker: the last 3 are never made, and other calls are shut out (raise failure_threshold above 6, or lower max_retries)`},
		{"the last attempt is lost", `
    circuit_breaker: {failure_threshold: 3}`, `4:23+17 note[breaker-in-one-call] one call makes up to 4 attempts, and 3 failures open the breaker: the last is never made, and other calls are shut out (raise failure_threshold above 4, or lower max_retries)`},
		{"silent: the breaker stays closed", `
    retry: {max_retries: 4}
    circuit_breaker: {failure_threshold: 5}`, ""},
		{"stale for days", `
    policy:
      - stale_if_error: 48h`, `5:9+14 warning[stale-too-long] an answer that is 48h past its time may stand in for an error, and nobody sees that it is old (24h or less)`},
		{"stale for days, sometimes", `
    policy:
      - stale_if_error: 'error.transient ? duration("72h") : duration("1h")'`, `5:44+15 warning[stale-too-long] an answer that is 72h past its time may stand in for an error, and nobody sees that it is old (24h or less)`},
		{"silent: stale for a day", `
    policy:
      - stale_if_error: 24h`, ""},
	})
}

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

func TestLintKnowsThatHintsDecideEffectsUnlessARuleDoes(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a read-only tool only reads", `
    policy:
      - {name: reads, when: tool.readOnly, cache_ttl: 30s}`, ``},
		{"a rule may say otherwise", `
    policy:
      - {name: odd, when: 'args.x == 1', effects: unsafe}
      - {name: reads, when: tool.readOnly, cache_ttl: 30s}`,
			`6:44+9 warning[cache-writes] keeps the results of every tool, also of those that write: a repeat would not be executed (cache only what reads: when: tool.effects == "none")`},
	})
}
