package policy

import "github.com/bentabol/mcp-retry/schema"

// retries looks at what is sent again that should not be, or to no purpose.
func (l *linter) retries() {
	l.retryUnsafe()
	l.retryAnswered()
	l.retryUnannotated()
	l.retryHopeless()
}

// retryUnsafe reports retry_unsafe that lets a tool with unsafe effects run twice.
func (l *linter) retryUnsafe() {
	spaces := []*space{l.any}
	if l.tools != nil {
		spaces = l.subjects
	}
	type verdict struct {
		tools []string
		retry bool // some rule says retry there
	}
	found := map[*lintSetting]*verdict{}
	for _, sp := range spaces {
		for state := range sp.states {
			if sp.states[state].effects != unsafeIndex || l.forwardsKey(sp, state) {
				continue
			}
			for e, f := range l.failures {
				if f.Delivery != "unknown" {
					continue
				}
				for _, c := range l.contributions(askRetryUnsafe, sp, state, e) {
					if c.rule.builtin || c.value&mayHold == 0 || !sp.named && c.rule.decidedSafe() {
						continue
					}
					v := found[c.setting]
					if v == nil {
						v = &verdict{}
						found[c.setting] = v
					}
					v.retry = v.retry || l.mayHoldAt(askRetry, sp, state, e)
					if sp.named {
						v.tools = append(v.tools, sp.name)
					}
				}
			}
		}
	}
	for i := range l.rules {
		for j := range l.rules[i].settings {
			s := &l.rules[i].settings[j]
			v := found[s]
			switch {
			case v == nil:
			case !v.retry:
				l.report(schema.Warning, LintRetryUnsafeIdle, s.place(), "state retry: true beside it, or remove it",
					"retry_unsafe does nothing here: no rule retries a tool with unsafe effects whose attempt may have been executed")
			default:
				what := "a tool with unsafe effects"
				if len(v.tools) > 0 {
					what = listed(sortedNames(v.tools))
				}
				l.report(schema.Warning, LintRetryUnsafe, s.place(), "give the operation an idempotency_key that the server honours (forward_key), or leave it out",
					"retries %s after a timeout, though the server may have executed the call: it may be executed twice", what)
			}
		}
	}
}

// forwardsKey reports whether the server surely honours a key for calls of the tool, so that it may run twice.
func (l *linter) forwardsKey(sp *space, state int) bool {
	list := l.contributions(askForwardKey, sp, state, sp.errs-1)
	return len(list) > 0 && list[0].when == mayHold && list[0].value == mayHold
}

// Indices into effectsWords.
const (
	noneIndex        = 0
	unsafeIndex      = 2
	unannotatedIndex = 3
)

// decidedSafe reports whether the rule itself says that what it covers is not unsafe.
func (r *lintRule) decidedSafe() bool {
	for i := range r.settings {
		if s := &r.settings[i]; s.ask == askEffects && s.expr == nil {
			return s.literal != EffectsUnsafe
		}
	}
	for i := range r.settings {
		if s := &r.settings[i]; s.ask == askForwardKey && s.expr == nil {
			return s.literal != ""
		}
	}
	return false
}

// mayHoldAt reports whether the decision, a bool, may be true for the tool in the world.
func (l *linter) mayHoldAt(ask int, sp *space, state, failure int) bool {
	for _, c := range l.contributions(ask, sp, state, failure) {
		if c.value&mayHold != 0 {
			return true
		}
	}
	return false
}

// retryAnswered reports rules that send a call of an unsafe tool again after the server has answered with an error: what it had done
// by then is done once more.
func (l *linter) retryAnswered() {
	found := map[*lintSetting][]string{}
	l.eachSubject(func(sp *space) {
		for state := range sp.states {
			if sp.states[state].effects != unsafeIndex || l.forwardsKey(sp, state) {
				continue
			}
			for e, f := range l.failures {
				if f.Delivery != "answered" || f.Kind == "malformed" {
					continue
				}
				for _, c := range l.contributions(askRetry, sp, state, e) {
					if !c.rule.builtin && c.value&mayHold != 0 {
						if sp == l.other {
							found[c.setting] = append(found[c.setting], "")
						} else {
							found[c.setting] = append(found[c.setting], sp.name)
						}
					}
				}
			}
		}
	})
	for i := range l.rules {
		for j := range l.rules[i].settings {
			s := &l.rules[i].settings[j]
			tools := sortedNames(found[s])
			if len(tools) == 0 || l.rules[i].decidedSafe() {
				continue
			}
			what, hint := "tools with unsafe effects", `add tool.effects in ["none", "idempotent"] to its condition`
			if tools[0] != "" {
				what = listed(tools)
			}
			l.report(schema.Warning, LintRetryAnswered, s.place(), hint,
				"also retries %s after an answer of the server: what it did before it failed is done again", what)
		}
	}
}

// eachSubject calls f for each tool that is looked at, known or not.
func (l *linter) eachSubject(f func(*space)) {
	if l.other != nil {
		f(l.other)
	}
	for _, sp := range l.subjects {
		f(sp)
	}
}

// retryUnannotated says which tools without annotations are sent again though they may have been executed.
func (l *linter) retryUnannotated() {
	e := l.failure("timeout", "unknown")
	var unknown, writing []string
	var place schema.Pos
	l.eachSubject(func(sp *space) {
		for state := range sp.states {
			if sp.states[state].effects != unannotatedIndex || sp.states[state].hints&facetAnnotated != 0 {
				continue
			}
			for _, c := range l.contributions(askRetry, sp, state, e) {
				if c.value&mayHold == 0 {
					continue
				}
				if !c.rule.builtin && place.Line == 0 {
					place = c.setting.place()
				}
				if sp != l.other && writes(sp.name) {
					writing = append(writing, sp.name)
				} else {
					unknown = append(unknown, sp.name)
				}
				break
			}
		}
	})
	if place.Line == 0 {
		place = l.server.Pos
	}
	const hint = "if a second execution may do harm: {when: '!tool.annotated', retry: false} in policy, or effects: unsafe under tools"
	switch {
	case len(writing) > 0:
		l.report(schema.Warning, LintRetryUnannotated, place, hint,
			"retries %s after a timeout, though the server may have executed the call: it declares no effects, and the name says that it writes", listed(sortedNames(writing)))
	case len(unknown) == 0:
	case l.tools != nil:
		l.report(schema.Note, LintRetryUnannotated, place, hint,
			"retries %s after a timeout: the server does not say whether a second execution does harm", listed(sortedNames(unknown)))
	default:
		l.report(schema.Note, LintRetryUnannotated, place, hint, "tools without annotations are retried after a timeout, though the server may have executed the call")
	}
}
