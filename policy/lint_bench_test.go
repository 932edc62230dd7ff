package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

// manyRules is a file of 600 rules and over 5 000 lines.
func manyRules() string {
	var b strings.Builder
	b.WriteString("servers:\n  s:\n    command: x\n    policy:\n")
	for i := range 600 {
		fmt.Fprintf(&b, "      # rule %d\n      - name: r%d\n        when: >-\n          tool.name == \"tool_%d\" &&\n          error.kind in [\"timeout\", \"exit\"] &&\n          tool.effects != \"unsafe\" && error.code != %d\n        retry: true\n        retry_delay: attempt * 2\n\n", i, i, i, i%40)
	}
	return b.String()
}

func benchmarkLint(b *testing.B, text string, tools []ToolInfo) {
	cfg, findings := schema.Load("f.yaml", []byte(text), nil)
	if cfg == nil || findings.HasErrors() {
		b.Fatal(findings)
	}
	p, findings := Compile(cfg.Servers[0])
	if p == nil {
		b.Fatal(findings)
	}
	b.ReportAllocs()
	for b.Loop() {
		Lint(cfg.Servers[0], p, tools)
	}
}

func BenchmarkLintSmall(b *testing.B) {
	text, err := os.ReadFile("../examples/github-rate-limit/mcp-retry.yaml")
	if err != nil {
		b.Fatal(err)
	}
	benchmarkLint(b, strings.ReplaceAll(string(text), "${GITHUB_PERSONAL_ACCESS_TOKEN}", "x"), nil)
}

func BenchmarkLintManyRules(b *testing.B) { benchmarkLint(b, manyRules(), nil) }

func BenchmarkLintManyRulesWithTools(b *testing.B) {
	var tools []ToolInfo
	for i := range 100 {
		tools = append(tools, ToolInfo{Tool: Tool{Name: fmt.Sprintf("tool_%d", i*7), Annotated: true, ReadOnly: i%2 == 0}, InputSchema: []byte(`{"type":"object","properties":{"a":{}}}`)})
	}
	benchmarkLint(b, manyRules(), tools)
}
