package policy

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

func checked(t *testing.T, body string) string {
	t.Helper()
	cfg, findings := schema.Load("f.yaml", []byte("servers:\n  s:\n    command: x\n"+strings.Trim(body, "\n")+"\n"), nil)
	if cfg == nil || findings.HasErrors() {
		t.Fatalf("it does not load: %v", findings)
	}
	found := Check(cfg.Servers[0], nil)
	found.Sort()
	return linted(found, false)
}

func TestCheckLooksAtTheOtherRulesBesideAFaultyOne(t *testing.T) {
	for _, tc := range []lintCase{
		{"what the fault has nothing to do with", `
    policy:
      - name: a
        retry: true
      - name: b
        when: error.kind == "timeout"
        retry: false
      - name: c
        cache_ttl: error.code`, `
6:9+5 warning[retry-answered] also retries tools with unsafe effects after an answer of the server: what it did before it failed is done again (add tool.effects in ["none", "idempotent"] to its condition)
6:9+5 warning[retry-hopeless] retries every error, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found (name the errors that pass, such as error.transient or a text that says so)
7:9+1 warning[rule-shadowed] rule "b" never decides anything: rule "a" (line 5) above it decides all of it for every call (move it above that rule, or remove one of the two)
11:20+5 error[cel-phase] ` + "`error`" + ` is not known after a success; here you have tool, args, meta, client, server, now, elapsed, result (cache_ttl is decided after a success)`},
		{"what the faulty rule may exclude", `
    policy:
      - when: tool.efects == "unsafe"
        retry: false
        cache_ttl: 0
      - retry: true
        cache_ttl: 30
      - when: attempt > 5 && attempt < 3
        retry_delay: 5`, `
5:20+6 error[cel-field] tool has no field "efects" (did you mean "effects"?)
10:15+26 warning[condition-never] the condition of rule "policy[2]" is true for no call (its parts exclude one another: for one of several use ||)`},
		{"what effects decide", `
    policy:
      - effects: 'tool.nmae == "x" ? "none" : "unsafe"'
      - when: tool.effects == "idempotent"
        retry: true`, `
5:24+4 error[cel-field] tool has no field "nmae" (did you mean "name"?)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, want := checked(t, tc.body), strings.TrimSpace(tc.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestLintTellsOfATimeoutThatIsCutForSomeCalls(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"by the server's", `
    total_timeout: 200
    policy:
      - when: tool.name == "slow"
        call_timeout: 220s`, `
7:9+12 warning[above-bound] a call_timeout of 3m40s is cut to the total_timeout of 3m20s (line 4) (lower call_timeout, or state a longer total_timeout beside it)`},
		{"a total beside it", `
    total_timeout: 200
    policy:
      - when: tool.name == "slow"
        call_timeout: 220s
        total_timeout: 300s`, ""},
		{"another total for some tools", `
    total_timeout: 200
    tools:
      slow: {total_timeout: 400, retry: {max_retries: 0}}
    policy:
      - when: tool.name == "slow"
        call_timeout: 220s`, ""},
		{"another total under a condition", `
    total_timeout: 200
    policy:
      - when: args.big
        total_timeout: 300s
      - when: tool.name == "slow"
        call_timeout: 220s`, ""},
		{"a computed total", `
    call_timeout: 10
    policy:
      - when: tool.name == "slow"
        call_timeout: 220s`, ""},
	})
}
