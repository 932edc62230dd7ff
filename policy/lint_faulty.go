package policy

import (
	"slices"

	"github.com/bentabol/mcp-retry/schema"
)

// Check is all that is to be said about the rules of a server: what [Compile] finds, and what [Lint] does. An error in one rule
// hides nothing about the others, except what its repair could change: whether a rule below it decides, and for which tools.
func Check(s *schema.Server, tools []ToolInfo) schema.Findings {
	p, findings, faulty := compileRules(s)
	if p != nil {
		return append(findings, Lint(s, p, tools)...)
	}
	sound := *s
	sound.Rules = nil
	open := map[schema.Decision]bool{}
	for i, r := range s.Rules {
		if !faulty[i] {
			sound.Rules = append(sound.Rules, r)
			continue
		}
		for _, d := range r.Decides {
			open[d.Decision] = true
		}
	}
	if p, _ = Compile(&sound); p == nil || open[schema.Effects] { // on effects hangs what any condition can come to
		return findings
	}
	return append(findings, lintOpen(&sound, p, tools, open)...)
}

// asksAny reports whether any of the decisions is open.
func asksAny(open map[schema.Decision]bool, decisions ...schema.Decision) bool {
	return slices.ContainsFunc(decisions, func(d schema.Decision) bool { return open[d] })
}
