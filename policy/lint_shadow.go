package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// shadows reports rules, and single settings, that rules above leave nothing to decide. Only rules of one owner are compared: that a
// server overrides the defaults is what they are there for.
func (l *linter) shadows() {
	above := map[shadowKey][]*shade{}
	for i := range l.rules {
		r := &l.rules[i]
		if r.builtin {
			break
		}
		var dead []int
		var by *lintRule
		if !r.dead {
			for j := range r.settings {
				s := &r.settings[j]
				if over := l.shadowedBy(above[shadowKey{r.owner, s.ask}], r, s); over != nil {
					dead = append(dead, j)
					by = over
				}
			}
		}
		switch {
		case len(dead) == 0:
		case len(dead) == len(r.settings):
			r.dead = true
			l.report(schema.Warning, LintShadowed, r.src.Pos, "move it above that rule, or remove one of the two",
				"rule %q never decides anything: %s", r.name, decides(by, ""))
		default:
			for _, j := range dead {
				s := &r.settings[j]
				over := l.shadowedBy(above[shadowKey{r.owner, s.ask}], r, s)
				l.report(schema.Warning, LintShadowed, s.src.Pos, "move the rule above that one, or remove one of the two",
					"%s of rule %q never counts: %s", s.decision(), r.name, decides(over, string(s.decision())))
			}
		}
		for j := range r.settings {
			s := &r.settings[j]
			if !settles(s) {
				continue
			}
			key := shadowKey{r.owner, s.ask}
			if len(above[key]) >= maxShades {
				continue
			}
			sh := &shade{rule: r, conditions: l.leafTexts(r.cond)}
			if r.over != nil {
				sh.sure = r.over.surely()
				if !slices.ContainsFunc(sh.sure, func(w uint64) bool { return w != 0 }) {
					sh.sure = nil
				}
			}
			above[key] = append(above[key], sh)
		}
	}
}

// maxShades bounds the rules above that are looked at for one decision.
const maxShades = 2000

type shadowKey struct {
	owner string
	ask   int
}

// shade is a rule above, as it covers those below for one decision.
type shade struct {
	rule       *lintRule
	conditions []string // texts of the parts that all must hold; sorted
	sure       bits     // worlds in which it surely holds; nil = none, or all if it has no condition
}

func decides(by *lintRule, decision string) string {
	if decision == "" {
		decision = "all of it"
	} else {
		decision = "that"
	}
	when := "whenever this one holds"
	if by.cond == nil {
		when = "for every call"
		if by.tools != "" {
			when = fmt.Sprintf("for every call of %q", by.tools)
		}
	}
	line := ""
	if by.src.Pos.Line > 0 {
		line = fmt.Sprintf(" (line %d)", by.src.Pos.Line)
	}
	return fmt.Sprintf("rule %q%s above it decides %s %s", by.name, line, decision, when)
}

// settles reports whether the setting leaves nothing for later rules to say when its rule holds, whatever it comes to.
func settles(s *lintSetting) bool {
	if s.ask == askDeny {
		return false // of any rule
	}
	if s.expr == nil {
		return s.final() && !saysNothing(s.setting)
	}
	switch s.ask {
	case askRetry, askRetryUnsafe, askCacheTTL, askStaleIfError, askBreakerScope, askRateLimitKey, askEffects:
		return true // one that fails decides too
	}
	return false // null, or a failure, asks the next
}

// shadowedBy returns a rule above that, alone or with others, decides whenever r holds.
func (l *linter) shadowedBy(above []*shade, r *lintRule, s *lintSetting) *lintRule {
	if s.ask == askDeny {
		return nil
	}
	var mine []string
	var open bits
	for _, sh := range above {
		if !covers(sh.rule.tools, r.tools) {
			continue
		}
		if sh.rule.cond == nil {
			return sh.rule
		}
		if r.cond != nil {
			if mine == nil {
				mine = l.leafTexts(r.cond)
			}
			if len(sh.conditions) > 0 && containsAll(mine, sh.conditions) {
				return sh.rule
			}
		}
		if sh.sure == nil {
			continue
		}
		if open == nil {
			open = slices.Clone(l.anyDomain(s.phases))
			if r.over != nil {
				for i := range open {
					open[i] &= r.over.hold[i]
				}
			}
		}
		left := uint64(0)
		for i := range open {
			open[i] &^= sh.sure[i]
			left |= open[i]
		}
		if left == 0 {
			return sh.rule
		}
	}
	return nil
}

// leafTexts are the texts of the parts of a condition that all must hold, sorted; nil if one of them has no text.
func (l *linter) leafTexts(p *proposition) []string {
	var texts []string
	for _, c := range conjuncts(p) {
		text := unparse(c.tree, c.expr)
		if text == "" {
			return nil
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return texts
}

func containsAll(list, part []string) bool {
	for _, p := range part {
		if _, ok := slices.BinarySearch(list, p); !ok {
			return false
		}
	}
	return true
}

// covers reports whether a glob fits every name that another one fits; "" fits all.
func covers(glob, other string) bool {
	if glob == "" || glob == other {
		return true
	}
	if other == "" {
		return strings.Trim(glob, "*") == ""
	}
	if !strings.ContainsAny(other, "?") {
		return Match(glob, other) && !loses(glob, other)
	}
	return false
}

// loses reports whether a star of the other glob could stand for something that the glob does not fit although it fits the star itself.
func loses(glob, other string) bool {
	return strings.Contains(other, "*") && strings.Contains(glob, "?")
}
