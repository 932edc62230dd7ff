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
		var dead []shadowed
		if !r.dead {
			r.narrowing = l.narrowed(r)
			for j := range r.settings {
				s := &r.settings[j]
				if by := l.shadowedBy(above[shadowKey{r.owner, s.ask}], r, s); by.rule != nil {
					by.setting = s
					dead = append(dead, by)
				}
			}
		}
		switch {
		case len(dead) == 0:
		case len(dead) == len(r.settings):
			r.dead = true
			l.report(schema.Warning, LintShadowed, r.src.Pos, r.instead(dead[len(dead)-1]),
				"rule %q never decides anything: %s", r.name, dead[len(dead)-1].decides("all of it"))
		default:
			for _, by := range dead {
				l.report(schema.Warning, LintShadowed, by.setting.src.Pos, "move the rule above "+by.those("one"),
					"%s of rule %q never counts: %s", by.setting.decision(), r.name, by.decides("that"))
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

// shadowed is a setting and the rule that decides in its place, which is the last of several where none does alone.
type shadowed struct {
	rule    *lintRule
	several bool
	setting *lintSetting
}

func (by shadowed) those(one string) string {
	if by.several {
		return "those rules, or remove it"
	}
	return "that " + one + ", or remove one of the two"
}

// instead is what to do about a rule of which nothing counts.
func (r *lintRule) instead(by shadowed) string {
	if strings.Contains(r.src.Origin, ".policy") {
		return "move it above " + by.those("rule")
	}
	return "let that rule hold for less, or remove one of the two" // what a rule decides goes before what settings do
}

// decides says that the rule decides it in the place of another.
func (by shadowed) decides(it string) string {
	r := by.rule
	when := "whenever this one holds"
	if r.cond == nil {
		when = "for every call"
		if r.tools != "" {
			when = fmt.Sprintf("for every call of %q", r.tools)
		}
	}
	line := ""
	if r.src.Pos.Line > 0 {
		line = fmt.Sprintf(" (line %d)", r.src.Pos.Line)
	}
	if by.several {
		return fmt.Sprintf("rules above it, of which %q%s is the last, decide %s %s", r.name, line, it, when)
	}
	return fmt.Sprintf("rule %q%s above it decides %s %s", r.name, line, it, when)
}

// settles reports whether the setting leaves nothing for later rules to say when its rule holds, whatever it comes to.
func settles(s *lintSetting) bool {
	if s.expr == nil {
		return s.final() && !saysNothing(s.setting)
	}
	switch s.ask {
	case askRetry, askRetryUnsafe, askCacheTTL, askStaleIfError, askBreakerScope, askRateLimitKey, askEffects, askBreakerFailure:
		return true // one that fails decides too
	}
	return false // null, or a failure, asks the next
}

// shadowedBy returns a rule above that, alone or with others, decides whenever r holds.
func (l *linter) shadowedBy(above []*shade, r *lintRule, s *lintSetting) shadowed {
	var mine []string
	var open bits
	var several bool
	var together []*shade
	for _, sh := range above {
		if !covers(sh.rule.tools, r.tools) {
			continue
		}
		if sh.rule.cond == nil {
			return shadowed{rule: sh.rule}
		}
		if r.cond != nil {
			if mine == nil {
				mine = l.leafTexts(r.cond)
			}
			if len(sh.conditions) > 0 && containsAll(mine, sh.conditions) {
				return shadowed{rule: sh.rule}
			}
		}
		if r.narrowing != nil {
			all, some := r.narrowing.within(sh.rule)
			if all && l.implies(r.narrowing.cond, sh.rule.cond, l.anyDomain(s.phases)) {
				return shadowed{rule: sh.rule}
			}
			if some && len(together) < maxTogether {
				together = append(together, sh)
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
		left, fewer := uint64(0), false
		for i := range open {
			fewer = fewer || open[i]&sh.sure[i] != 0
			open[i] &^= sh.sure[i]
			left |= open[i]
		}
		if left == 0 {
			return shadowed{rule: sh.rule, several: several}
		}
		several = several || fewer
	}
	if len(together) > 1 {
		last := together[len(together)-1].rule
		if l.implies(r.narrowing.cond, anyOf(together), l.anyDomain(s.phases)) {
			return shadowed{rule: last, several: true}
		}
	}
	return shadowed{}
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
