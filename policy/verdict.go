package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// Verdict is what the policy decides for one tool, as far as that can be told before a call.
type Verdict struct {
	Decision schema.Decision
	Rule     string // that decides; several, joined by commas, where it depends; "" if it is computed or follows from the annotations
	Value    string // "30s", "true", `"payments"`; "true after timeout, exit; else false"; "depends on args, error"
}

// Verdicts tells, decision by decision in the order of the manual, what the policy will do for calls of a tool: by partial evaluation,
// with the tool known and the call not. Decisions that no rule states are left out; of a tool that tool_filter hides there are none. What the engine does whatever a rule says is taken
// in: a tool with unsafe effects is not sent again while it may have been executed unless retry_unsafe says so.
func (p *Policy) Verdicts(t ToolInfo) []Verdict {
	l, err := newLinter(p.server, p, []ToolInfo{t}, t.Name)
	if err != nil || len(l.subjects) == 0 {
		return nil
	}
	v := verdicts{linter: l, sp: l.subjects[0], programs: map[*lintSetting]cel.Program{}}
	var list []Verdict
	for ask := range questions {
		q := &questions[ask]
		var out Verdict
		var ok bool
		switch {
		case ask == askEffects:
			out, ok = v.effects(), true
		case ask == askTotalTimeout:
			out, ok = v.total(t.Name)
		case q.phase == AfterFailure || q.phase == AfterAttempt || q.phase == AfterLastFailure:
			out, ok = v.afterError(ask)
		default:
			a := v.everyState(ask, v.sp.errs-1)
			out, ok = Verdict{Rule: a.rules(), Value: a.value()}, a.answered
		}
		if ok {
			out.Decision = q.decision
			list = append(list, out)
		}
	}
	return list
}

type verdicts struct {
	*linter
	sp       *space
	programs map[*lintSetting]cel.Program
}

// answer is what one decision comes to in one world, or in several.
type answer struct {
	answered bool
	values   []string // each that is possible
	by       []string // rules that may decide
	depends  varSet   // what it depends on; 0 = nothing
	effects  bool     // it depends on the tool's effects, which depend on the call
}

func (a *answer) rules() string { return strings.Join(a.by, ", ") }

func (a *answer) value() string {
	if len(a.values) == 1 && a.values[0] != "" {
		return a.values[0]
	}
	names := a.depends.names()
	if a.effects {
		names = append(names, "effects")
	}
	if len(names) == 0 {
		return "depends on the call"
	}
	return "depends on " + strings.Join(names, ", ")
}

func (a *answer) add(b answer) {
	a.answered = a.answered || b.answered
	for _, v := range b.values {
		if !slices.Contains(a.values, v) {
			a.values = append(a.values, v)
		}
	}
	for _, rule := range b.by {
		if !slices.Contains(a.by, rule) {
			a.by = append(a.by, rule)
		}
	}
	a.depends |= b.depends
}

// everyState joins the answers for all effects that the tool may have.
func (v *verdicts) everyState(ask, failure int) answer {
	var all answer
	for state := range v.sp.states {
		one := v.answer(ask, state, failure)
		if state > 0 && one.value() != all.value() {
			all.effects = true
		}
		all.add(one)
	}
	return all
}

// answer asks one decision in one world.
func (v *verdicts) answer(ask, state, failure int) answer {
	var a answer
	settled := false
	for i := range v.rules {
		r := &v.rules[i]
		for j := range r.settings {
			s := &r.settings[j]
			if s.ask != ask || settled {
				continue
			}
			when := v.conditionAt(r, v.sp, state, failure)
			if when&mayHold == 0 {
				continue
			}
			text, depends := v.text(s, state, failure)
			if text == noOpinion {
				continue
			}
			one := answer{answered: true, values: []string{text}, by: []string{r.name}, depends: depends}
			if when != mayHold {
				one.depends |= v.unknownOf(r.cond, state, failure)
			}
			a.add(one)
			// Of deny and of keys a later rule may still speak if this one says nothing.
			settled = when == mayHold && (text != "" || ask != askDeny && ask != askIdempotencyKey && ask != askCacheKey && ask != askInvalidates)
		}
	}
	if a.answered && !settled {
		a.values = append(a.values, "") // or what holds where no rule speaks
	}
	if len(a.values) == 2 && a.values[1] == "" && a.depends == 0 {
		a.values = a.values[:1]
	}
	return a
}

// noOpinion stands for a setting that leaves its decision to later rules.
const noOpinion = "\x00"

// text is the value of a setting in a world; "" = it depends on what is not known, and on what.
func (v *verdicts) text(s *lintSetting, state, failure int) (string, varSet) {
	if s.expr == nil {
		if saysNothing(s.setting) {
			return noOpinion, 0
		}
		return literalText(&questions[s.ask], s.literal), 0
	}
	program, ok := v.programs[s]
	if !ok {
		options := []cel.ProgramOption{cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(lintCostLimit), cel.CostTracking(costs{}), guarded()}
		program, _ = v.env.PlanProgram(s.expr.tree, options...)
		v.programs[s] = program
	}
	unknown := s.expr.vars &^ (varTool | varToolName | varServer | varServerName)
	if program == nil {
		return "", unknown
	}
	vars, err := cel.PartialVars((*activation)(v.world(v.sp, state, failure)), v.patterns(v.sp, false)...)
	if err != nil {
		return "", unknown
	}
	value, _, err := program.Eval(vars)
	if err != nil || types.IsUnknown(value) {
		return "", unknown
	}
	literal, err := literalOf(&questions[s.ask], value)
	if err != nil {
		return "", unknown
	}
	folded := setting{ask: s.ask, literal: literal}
	if saysNothing(&folded) {
		return noOpinion, 0
	}
	return literalText(&questions[s.ask], literal), 0
}

// unknownOf are the variables for which a condition cannot be told in a world.
func (v *verdicts) unknownOf(p *proposition, state, failure int) varSet {
	var set varSet
	if p != nil {
		p.leaves(func(leaf *proposition) {
			if v.ask(leaf.leaf, v.sp, state, failure) == anything {
				set |= leaf.leaf.vars &^ (varTool | varToolName | varServer | varServerName)
			}
		})
	}
	return set
}

// literalText is a compiled literal as a verdict shows it.
func literalText(q *question, literal any) string {
	switch x := literal.(type) {
	case time.Duration:
		return brief(x)
	case string:
		if q.form == formText {
			return strconv.Quote(x)
		}
		return x
	case *RateLimit:
		text := fmt.Sprintf("%d per %s, burst %d", x.Calls, brief(x.Per), x.Burst)
		if x.MaxWait > 0 {
			text += ", waits up to " + brief(x.MaxWait)
		}
		return text
	case keyLiteral:
		if x.answer == keyOff {
			return "false"
		}
		return string(x.text)
	case []invalidation:
		tools := make([]string, len(x))
		for i, item := range x {
			tools[i] = item.tool
		}
		return "[" + strings.Join(tools, ", ") + "]"
	}
	return fmt.Sprint(literal)
}

func (v *verdicts) effects() Verdict {
	var out Verdict
	if len(v.sp.states) > 1 {
		out.Value = "depends on the call"
	} else {
		out.Value = effectsWords[v.sp.states[0].effects]
	}
	var names []string
	for i := range v.rules {
		r := &v.rules[i]
		for j := range r.settings {
			if r.settings[j].ask != askEffects {
				continue
			}
			when := v.conditionAt(r, v.sp, 0, v.sp.errs-1)
			if when&mayHold == 0 {
				continue
			}
			names = append(names, r.name)
			if when == mayHold {
				out.Rule = strings.Join(names, ", ")
				return out
			}
		}
	}
	out.Rule = strings.Join(names, ", ")
	return out
}

// total is the time that a call may take, which is computed where it is not stated.
func (v *verdicts) total(tool string) (Verdict, bool) {
	a := v.everyState(askTotalTimeout, v.sp.errs-1)
	if a.answered {
		return Verdict{Rule: a.rules(), Value: a.value()}, true
	}
	plan := v.policy.For(tool).byName()
	if plan.computes {
		return Verdict{Value: "depends on the call"}, true
	}
	return Verdict{Value: brief(plan.base.TotalTimeout)}, true
}

// afterError asks a decision after each kind of error and puts together those that come to the same.
func (v *verdicts) afterError(ask int) (Verdict, bool) {
	type group struct {
		value string
		kinds []string
	}
	var groups []group
	var all answer
	byKind := map[string]*answer{}
	var kinds []string
	for e, f := range v.failures {
		if f.Kind == "cancelled" || f.Kind == "" && questions[ask].phase != AfterAttempt {
			continue
		}
		if questions[ask].phase == AfterFailure && (f.Delivery == "not_sent" || f.Delivery == "rejected" && f.Kind != "overloaded") {
			continue // the engine's own: the one is always sent again, the other never
		}
		kind := f.Kind
		switch {
		case kind == "":
			kind = "success"
		case kind == "rpc" && f.Transient:
			kind = "transient rpc"
		case kind == "rpc":
			kind = "other rpc"
		}
		one := v.everyState(ask, e)
		if !one.answered {
			one.values = []string{unstated}
		}
		if ask == askRetry {
			v.gate(&one, e)
		}
		if byKind[kind] == nil {
			byKind[kind] = &answer{}
			kinds = append(kinds, kind)
		}
		if k := byKind[kind]; k.answered && k.value() != one.value() {
			k.depends |= varError
		}
		byKind[kind].add(one)
		all.add(one)
	}
	if !all.answered {
		return Verdict{}, false
	}
	for _, kind := range kinds {
		value := byKind[kind].value()
		i := slices.IndexFunc(groups, func(g group) bool { return g.value == value })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{value: value})
		}
		groups[i].kinds = append(groups[i].kinds, kind)
	}
	rest := 0 // the group that goes without its kinds
	for i := range groups {
		if len(groups[i].kinds) >= len(groups[rest].kinds) {
			rest = i
		}
	}
	if i := slices.IndexFunc(groups, func(g group) bool { return g.value == "false" || g.value == "0s" }); i >= 0 {
		rest = i
	}
	var parts []string
	for i, g := range groups {
		if i != rest {
			parts = append(parts, g.value+" after "+strings.Join(g.kinds, ", "))
		}
	}
	value := groups[rest].value
	if len(parts) > 0 {
		value = strings.Join(parts, "; ") + "; else " + value
	}
	return Verdict{Rule: all.rules(), Value: value}, true
}

// unstated is what holds where no rule speaks: only of retry_delay the built-in policy says nothing.
const unstated = "the back-off"

// gate takes in that an unsafe tool that may have been executed is not sent again unless retry_unsafe says so.
func (v *verdicts) gate(a *answer, failure int) {
	if v.failures[failure].Delivery != "unknown" || len(v.sp.states) != 1 || v.sp.states[0].effects != unsafeIndex || a.value() == "false" {
		return
	}
	unsafe := v.everyState(askRetryUnsafe, failure)
	switch unsafe.value() {
	case "true":
	case "false":
		a.values = []string{"false"}
	default:
		a.depends |= unsafe.depends
		a.values = []string{""}
	}
}
