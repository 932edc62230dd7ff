package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

// issueTools are the tools of a server for issues.
var issueTools = []ToolInfo{
	{Tool{Name: "get_issue", Annotated: true, ReadOnly: true}, []byte(`{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},"number":{"type":"integer"}},"required":["owner","repo","number"],"additionalProperties":false}`)},
	{Tool{Name: "search_issues", Annotated: true, ReadOnly: true}, []byte(`{"type":"object","properties":{"query":{"type":"string"},"sort":{"enum":["asc","desc"]},"page":{"type":"integer"}},"required":["query"]}`)},
	{Tool{Name: "create_issue", Annotated: true}, []byte(`{"type":"object","properties":{"repo":{"type":"string"},"title":{"type":"string"},"labels":{"type":"array"},"options":{"$ref":"#/$defs/options"}},"required":["repo","title","options"],"$defs":{"options":{"type":"object","properties":{"draft":{"type":"boolean"}}}}}`)},
	{Tool{Name: "update_issue"}, []byte(`{"type":"object","additionalProperties":true}`)},
	{Tool{Name: "whoami"}, []byte(`{"type":"object","properties":{}}`)},
}

func TestLintWithASnapshotKnowsTheTools(t *testing.T) {
	runLintCases(t, issueTools, false, []lintCase{
		{"globs and names that match nothing", `
    tool_filter: {deny: ["delete_*"]}
    tools:
      serch_*: {call_timeout: 5, retry: {max_retries: 1}}
      delete_*: {call_timeout: 5}
    policy:
      - name: a
        when: tool.name in ["get_issue", "get_isue"] || glob(tool.name, "creat_*") || tool.name.startsWith("find")
        max_retries: 1
      - name: b
        when: tool.name == "create_issue"
        invalidates: ["get_*", "list_issues"]`, `
6:7+7 warning[no-such-tool] "serch_*" matches no tool of the server (did you mean "search_*"?)
7:7+8 warning[no-such-tool] "delete_*" matches no tool of the server (it has "create_issue", "get_issue", "search_issues" and 2 more)
10:42+10 warning[no-such-tool] "get_isue" matches no tool of the server (did you mean "get_issue"?)
10:73+9 warning[no-such-tool] "creat_*" matches no tool of the server (did you mean "create_*"?)
10:108+6 warning[no-such-tool] "find" matches no tool of the server (it has "create_issue", "get_issue", "search_issues" and 2 more)
14:32+13 warning[no-such-tool] invalidates: "list_issues" matches no tool of the server (it has "create_issue", "get_issue", "search_issues" and 2 more)`},
		{"what invalidates names, each item at its place", `
    policy:
      - name: a
        when: tool.name == "create_issue"
        invalidates:
          - get_isue
          - {tool: get_issue, args: '{"numbr": 3, "repo": args.repo}'}
          - tool: search_issues
            args: |
              {"query": args.titel,
               "sort": args.labels}
      - name: b
        when: tool.name == "create_issue" && args.title == "x"
        invalidates: '[{"tool": "get_isue"}, {"tool": "get_issue", "args": {"nmber": 1, "repo": args.repo}}, "list_*"]'`, `
8:13+8 warning[no-such-tool] invalidates: "get_isue" matches no tool of the server (did you mean "get_issue"?)
9:39+7 warning[no-such-argument] "get_issue" has no argument "numbr" (did you mean "number"?)
12:30+5 warning[no-such-argument] "create_issue" has no argument "titel" (did you mean "title"?)
13:24+11 warning[args-unguarded] a call of "create_issue" may leave out args.labels: then the expression fails, and invalidates falls to its careful side (write has(args.labels) && …, or args.?labels.orValue(…))
16:33+10 warning[no-such-tool] invalidates: "get_isue" matches no tool of the server (did you mean "get_issue"?)
16:77+7 warning[no-such-argument] "get_issue" has no argument "nmber" (did you mean "number"?)
16:110+8 warning[no-such-tool] invalidates: "list_*" matches no tool of the server (it has "create_issue", "get_issue", "search_issues" and 2 more)`},
		{"a rule that holds for no tool", `
    policy:
      - name: a
        when: tool.readOnly && tool.name.startsWith("create_")
        max_retries: 1
      - name: b
        when: tool.effects == "idempotent" && error.kind == "timeout"
        retry: true`, `
6:15+48 warning[rule-no-tool] the condition of rule "a" holds for none of the 5 tools of the server (mcp-retry snapshot shows what the server says of its tools)
9:15+55 warning[rule-no-tool] the condition of rule "b" holds for none of the 5 tools of the server (mcp-retry snapshot shows what the server says of its tools)`},
		{"silent: names that fit", `
    policy:
      - name: a
        when: tool.name == "get_issue" && args.number > 5
        max_retries: 1
      - name: b
        when: glob(tool.name, "*_issues")
        call_timeout: 5`, ``},
		{"create_issue after a timeout", `
    policy:
      - name: a
        when: error.kind == "timeout"
        retry: true
        retry_unsafe: true`, `8:9+12 warning[retry-unsafe] retries "create_issue" after a timeout, though the server may have executed the call: it may be executed twice (give the operation an idempotency_key that the server honours (forward_key), or leave it out)`},
		{"create_issue after an answer", `
    policy:
      - name: a
        when: error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, `7:9+5 warning[retry-answered] also retries "create_issue" after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)`},
		{"results of what writes, and of what says nothing", `
    cache: {tools: {"*_issue": 30, whoami: 30}}`, `
4:21+9 warning[cache-writes] keeps the results of "create_issue", which does more than read: a repeat would not be executed (cache only what reads: when: tool.effects == "none")
4:36+6 note[cache-unannotated] keeps the results of "whoami", of which the server does not say that it only reads (say effects: none under tools if it does)`},
		{"silent: all that writes is left out", `
    cache: {default_ttl: 0, tools: {get_*: 30, search_*: 30}}
    policy:
      - when: tool.readOnly && error.kind == "tool" && error.text.contains("rate limit")
        retry: true
      - when: '!tool.annotated'
        retry: false`, ""},
		{"a scope of few values, and of many", `
    policy:
      - when: tool.name == "search_issues" && has(args.sort)
        breaker_scope: args.sort
        rate_limit_key: args.query`, `7:25+10 warning[rate-key-unbounded] rate_limit_key takes any value of args.query: each value has a bucket of its own, so all together they are not limited (keep to a known set: when: args.query in ["…", "…"])`},
		{"a constant key of a tool without arguments", `
    policy:
      - name: a
        when: tool.name == "whoami"
        cache_key: '"me"'
      - name: b
        when: tool.name == "get_issue"
        cache_key: '"issue"'`, `10:21+7 warning[key-constant] cache_key is the same for every call: they all get the answer of the first, whatever their arguments (name what makes two calls the same: [args.order, args.amount])`},
	})
	runLintCases(t, issueTools, true, []lintCase{
		{"unannotated tools are named", ``, `2:3+1 warning[retry-unannotated] retries "update_issue" after a timeout, though the server may have executed the call: it declares no effects, and the name says that it writes (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
	})
	runLintCases(t, issueTools[4:], true, []lintCase{
		{"unannotated tools of which nothing says that they write", ``, `2:3+1 note[retry-unannotated] retries "whoami" after a timeout: the server does not say whether a second execution does harm (if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools)`},
	})
	runLintCases(t, issueTools[:3], true, []lintCase{
		{"silent: all are annotated", ``, ""},
	})
}

func TestLintWithASnapshotKnowsTheArguments(t *testing.T) {
	runLintCases(t, issueTools, false, []lintCase{
		{"a misspelt argument", `
    policy:
      - name: a
        when: tool.name == "get_issue"
        idempotency_key: '[args.ower, args.number]'`, `7:33+4 warning[no-such-argument] "get_issue" has no argument "ower" (did you mean "owner"?)`},
		{"an argument that no tool has, sought", `
    policy:
      - name: a
        when: tool.readOnly && has(args.dry_run)
        max_retries: 1`, `6:41+7 warning[no-such-argument] "get_issue" and "search_issues" have no argument "dry_run" (there are "number", "owner", "page" and 3 more)`},
		{"within an argument", `
    policy:
      - name: a
        when: tool.name == "create_issue" && args.options.drafts == true
        max_retries: 1`, `6:59+6 warning[no-such-argument] "create_issue" has no argument "options.drafts" (did you mean "draft"?)`},
		{"optional and unguarded", `
    policy:
      - name: a
        when: tool.name == "search_issues" && args.page > 1
        max_retries: 1
      - name: b
        when: tool.name == "search_issues"
        call_timeout: 'args.page > 5 ? 10 : 5'
        deny: 'args.sort == "desc" ? "no" : ""'`, `
6:47+9 warning[args-unguarded] a call of "search_issues" may leave out args.page: then the expression fails, and the rule is passed over (write has(args.page) && …, or args.?page.orValue(…))
10:24+9 warning[args-unguarded] a call of "search_issues" may leave out args.page: then the expression fails, and call_timeout falls to its careful side (write has(args.page) && …, or args.?page.orValue(…))
11:16+9 note[args-unguarded] a call of "search_issues" may leave out args.sort: then the expression fails, and the call is refused (write has(args.sort) && …, or args.?sort.orValue(…))`},
		{"of some tools only", `
    policy:
      - name: a
        when: args.owner == "me"
        max_retries: 1`, `6:15+10 warning[args-unguarded] a call of "create_issue", "search_issues" and "whoami" may leave out args.owner: then the expression fails, and the rule is passed over (write has(args.owner) && …, or args.?owner.orValue(…))`},
		{"silent: guarded in every way", `
    policy:
      - name: a
        when: tool.name == "search_issues" && has(args.page) && args.page > 1
        max_retries: 1
        cache_key: '[args.page, args.query]'
      - name: b
        when: '!has(args.page) || args.page > 1'
        call_timeout: 5
      - name: c
        when: args.?owner.orValue("") == "me" && "repo" in args && args.repo == "x"
        idempotency_ttl: 5
      - name: d
        when: tool.name == "search_issues"
        total_timeout: 'has(args.page) && args.page > 1 ? 50 : 40'
        on_conflict: 'args.page > 1 && has(args.page) ? "reject" : "replay"'
      - name: e
        when: tool.name == "create_issue"
        idempotency_key: '[args.title, args.labels]'
        required: true
      - name: f
        when: tool.name == "update_issue" && has(args.anything)
        on_ambiguous: run`, ""},
	})
}

func TestLintLeavesDefaultsThatFitAnotherServer(t *testing.T) {
	cfg := load(t, `
defaults:
  tools: {find_*: {call_timeout: 5}}
  policy:
    - when: tool.name == "find_person" && args.name == "x"
      max_retries: 1
servers:
  s: {command: x}
`)
	p, _ := Compile(cfg.Servers[0])
	if got := linted(Lint(cfg.Servers[0], p, issueTools), false); got != "" {
		t.Errorf("got\n%s", got)
	}
}

func TestLintPassesOverToolsThatAreHidden(t *testing.T) {
	findings := lint(t, `
    tool_filter: {deny: ["create_*", "update_*"]}
    cache: {tools: {"*_issue": 30}}
    policy:
      - when: error.kind == "tool" && error.text.contains("rate limit")
        retry: true`, issueTools)
	if got := linted(findings, false); got != "" {
		t.Errorf("got\n%s", got)
	}
}

func TestVerdicts(t *testing.T) {
	cfg := load(t, `
servers:
  s:
    command: x
    call_timeout: 20
    rate_limit: {calls: 60, per: 60}
    tools:
      create_*: {effects: unsafe}
    policy:
      - name: key
        when: tool.name == "create_issue"
        idempotency_key: '[args.title]'
        breaker_scope: '"issues/" + tool.name'
      - name: slow
        when: has(args.all)
        call_timeout: 50
      - name: busy
        when: error.kind == "tool" && error.text.contains("busy")
        retry: true
        retry_delay: 2
      - name: reads
        when: tool.readOnly
        cache_ttl: 30
        invalidates: ["list_*"]
        deny: 'args.x == 1 ? "no" : ""'
`)
	p, findings := Compile(cfg.Servers[0])
	if p == nil {
		t.Fatal(findings)
	}
	for tool, want := range map[string]map[schema.Decision]string{
		"create_issue": {
			schema.Effects:        "unsafe | tools.create_*.effects",
			schema.IdempotencyKey: "depends on args | key",
			schema.BreakerScope:   `"issues/create_issue" | key`,
			schema.CallTimeout:    "depends on args | slow, call_timeout",
			schema.TotalTimeout:   "depends on the call | ",
			schema.Retry:          "depends on error after tool; true after overloaded; else false | otherwise, busy, overloaded",
			schema.RetryUnsafe:    "false | otherwise",
			schema.RetryDelay:     "depends on error after tool; else the back-off | busy",
			schema.CacheTTL:       "0s | otherwise",
			schema.Limit:          "60 per 1m, burst 60 | rate_limit",
			schema.MaxRetries:     "3 | defaults",
			schema.Jitter:         "0.2 | defaults",
			schema.OnConflict:     "replay | otherwise",
		},
		"get_issue": {
			schema.Effects:     "none | ",
			schema.Deny:        "depends on args | reads",
			schema.CacheTTL:    "30s | reads",
			schema.Invalidates: "[list_*] | reads",
		},
	} {
		info := ToolInfo{Tool: Tool{Name: tool, Annotated: true, ReadOnly: strings.HasPrefix(tool, "get_")}}
		got := map[schema.Decision]string{}
		for _, v := range p.Verdicts(info) {
			got[v.Decision] = fmt.Sprintf("%s | %s", v.Value, v.Rule)
		}
		for decision, value := range want {
			if got[decision] != value {
				t.Errorf("%s %s: got %s, want %s", tool, decision, got[decision], value)
			}
		}
	}
}
