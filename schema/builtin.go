package schema

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

//go:embed builtin.yaml
var builtinYAML []byte

// Builtin returns the built-in policy: the last rules of every server, written in the language of all others.
func Builtin() []Rule {
	rules := slices.Clone(builtin())
	for i := range rules {
		rules[i].Decides = slices.Clone(rules[i].Decides)
	}
	return rules
}

// builtin parses builtin.yaml by the road that a user's policy takes, at the place where that stands in a file.
var builtin = sync.OnceValue(func() []Rule {
	var r report
	src := newSource("built-in", string(builtinYAML))
	policy := parseYAML(src, &r)
	root := &node{kind: object, fields: []field{
		{key: &node{kind: text, text: "servers"}, value: &node{kind: object}},
		{key: &node{kind: text, text: "defaults"}, value: &node{kind: object, fields: []field{
			{key: &node{kind: text, text: "policy"}, value: policy},
		}}},
	}}
	check(ours, root, &r)
	list := ruleList{report: &r, names: map[string]bool{}}
	list.policy("built-in", "", policy)
	if len(r.findings) > 0 {
		panic("the built-in policy is faulty: " + r.findings[0].String())
	}
	for i := range list.rules {
		rule := &list.rules[i]
		rule.Origin, rule.Pos = "built-in", Pos{}
		if rule.When != nil {
			rule.When = &Expr{Text: strings.TrimSpace(rule.When.Text)}
		}
		for j := range rule.Decides {
			s := &rule.Decides[j]
			s.Pos = Pos{}
			if s.Expr != nil {
				s.Expr = &Expr{Text: strings.TrimSpace(s.Expr.Text)}
			}
		}
	}
	return list.rules
})
