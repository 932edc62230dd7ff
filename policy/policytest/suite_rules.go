package policytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// checkRules finds expectations about rules that the called server does not have: they would never be met.
func (s *Suite) checkRules() schema.Findings {
	var faults schema.Findings
	for _, t := range s.File.Tests {
		for _, row := range t.Rows {
			for _, step := range row.Steps {
				if step.Call == nil || s.setup(step.Call.Server) == nil {
					continue
				}
				server := s.setup(step.Call.Server).server
				for _, e := range step.Expect {
					name, ok := e.Want.(string)
					if !ok || !strings.HasPrefix(e.Key, "rules.") || hasRule(server, name) {
						continue
					}
					f := schema.Finding{Pos: e.Pos, Level: schema.Error, ID: "bad-value",
						Message: fmt.Sprintf("the server %q has no rule %q", server.Name, name),
						Hint:    "mcp-retry explain --server " + server.Name + " lists its rules"}
					if !slices.Contains(faults, f) {
						faults = append(faults, f)
					}
				}
			}
		}
	}
	return faults
}

// hasRule reports whether decisions may be those of a rule of that name; tool_filter denies as a rule does.
func hasRule(server *schema.Server, name string) bool {
	return name == "tool_filter" || slices.ContainsFunc(server.Rules, func(r schema.Rule) bool { return r.Name == name })
}
