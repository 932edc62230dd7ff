package policy

import (
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// cached is what the worlds say about one cache_ttl.
type cached struct {
	writing, unknown    []string // tools that do more than read, and tools of which nobody has said what they do
	sureOther, other    bool     // it covers tools that no rule names, whatever they do
	sure                bool     // of one of those writing no argument has to say first that it does not write
	unannotatedAnywhere bool
}

// caches reports results that are kept of calls that do more than read: a repeat would not be executed.
func (l *linter) caches() {
	found := map[*lintSetting]*cached{}
	success := len(l.failures) - 1
	l.eachSubject(func(sp *space) {
		for state := range sp.states {
			effects := sp.states[state].effects
			if effects == noneIndex {
				continue
			}
			for _, c := range l.contributions(askCacheTTL, sp, state, success) {
				if c.rule.builtin || c.value&mayHold == 0 {
					continue
				}
				v := found[c.setting]
				if v == nil {
					v = &cached{}
					found[c.setting] = v
				}
				switch {
				case effects == unannotatedIndex && sp == l.other:
					v.unannotatedAnywhere = true
				case effects == unannotatedIndex:
					v.unknown = append(v.unknown, sp.name)
				case sp == l.other:
					v.other, v.sureOther = true, v.sureOther || c.when == mayHold
				default:
					v.writing, v.sure = append(v.writing, sp.name), v.sure || c.when == mayHold
				}
			}
		}
	})
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.settings {
			if v := found[&r.settings[j]]; v != nil && !r.statesEffects(EffectsNone) {
				l.cachedFinding(r, &r.settings[j], v)
			}
		}
	}
}

// statesEffects reports whether the rule itself says that what it covers has those effects.
func (r *lintRule) statesEffects(word string) bool {
	for i := range r.settings {
		if s := &r.settings[i]; s.ask == askEffects && s.expr == nil {
			return s.literal == word
		}
	}
	return false
}

func (l *linter) cachedFinding(r *lintRule, s *lintSetting, v *cached) {
	const only = `cache only what reads: when: tool.effects == "none"`
	level := func(sure bool) schema.Level {
		if sure {
			return schema.Warning
		}
		return schema.Note
	}
	byDefault := strings.HasSuffix(r.src.Origin, ".cache.default_ttl")
	switch {
	case len(v.writing) > 0 && v.other:
		l.report(level(v.sure || v.sureOther), LintCacheWrites, s.place(), only, "keeps the results of every tool, also of those that write, such as %s: a repeat would not be executed", listed(sortedNames(v.writing)))
	case len(v.writing) > 0:
		l.report(level(v.sure), LintCacheWrites, s.place(), only, "keeps the results of %s, which does more than read: a repeat would not be executed", listed(sortedNames(v.writing)))
	case v.other:
		l.report(level(v.sureOther), LintCacheWrites, s.place(), only, "keeps the results of every tool, also of those that write: a repeat would not be executed")
	case byDefault && len(v.unknown) > 0:
		l.report(schema.Warning, LintCacheUnannotated, s.place(), "say effects: none under tools for those that only read",
			"keeps the results of %s, of which the server does not say that it only reads", listed(sortedNames(v.unknown)))
	case byDefault && v.unannotatedAnywhere:
		l.report(schema.Warning, LintCacheUnannotated, s.place(), "use cache.tools, or a rule with when: tool.effects == \"none\"",
			"keeps the results of tools without annotations too, and they may do more than read")
	case len(v.unknown) > 0:
		l.report(schema.Note, LintCacheUnannotated, s.place(), "say effects: none under tools if it does", "keeps the results of %s, of which the server does not say that it only reads", listed(sortedNames(v.unknown)))
	case v.unannotatedAnywhere:
		l.report(schema.Note, LintCacheUnannotated, s.place(), only, "keeps the results of tools without annotations, which may do more than read")
	}
}
