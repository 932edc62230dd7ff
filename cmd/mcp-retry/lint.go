package main

import (
	"slices"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// lint completes the findings about a file by those about its expressions and rules, and returns them as validate shows them:
// without what comments silence, and without notes unless they are asked for. tools are those of the servers, as far as they
// are known.
func (l *loaded) lint(file string, tools *snapshot, notes bool) schema.Findings {
	if l.config != nil {
		var all schema.Findings
		for _, server := range l.config.Servers {
			all = append(all, policy.Check(server, tools.of(server.Name))...)
		}
		l.add(all)
	}
	findings := slices.Clone(l.findings)
	for i := range findings {
		if f := &findings[i]; f.ID == unsetVariable {
			f.Level = schema.Warning
		}
	}
	findings = findings.Silence(file, l.text, tools != nil)
	if !notes {
		findings = slices.DeleteFunc(findings, func(f schema.Finding) bool { return f.Level == schema.Note })
	}
	return findings
}
