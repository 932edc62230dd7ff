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
