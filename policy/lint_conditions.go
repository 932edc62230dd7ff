package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// conditions reports what holds for no call or for every call: a when, a decision that is a condition, or a part of either.
func (l *linter) conditions() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.builtin {
			continue
		}
		if r.cond != nil && len(r.decisions) > 0 { // what leaves a rule without decisions has a finding of its own
			l.condition(r, nil, r.src.When, r.when, r.cond, r.phases())
		}
		for j := range r.settings {
			s := &r.settings[j]
			switch {
			case s.text == nil || r.dead:
			case s.expr != nil:
				l.condition(r, s, s.text, s.expr, s.value, s.phases)
			case questions[s.ask].form == formBool:
				l.constantBool(s)
			}
		}
	}
}

// constantBool reports a decision that uses nothing of the call: written as an expression, it looks as if it did.
func (l *linter) constantBool(s *lintSetting) {
	text := strings.TrimSpace(s.text.Text)
	if yes, ok := s.literal.(bool); ok && text != "true" && text != "false" {
		l.report(schema.Warning, constancy(yes), whole(s.text), fmt.Sprintf("write %s: %t if that is meant", s.decision(), yes), "%s is %t for every call", s.decision(), yes)
	}
}

func constancy(yes bool) string {
	if yes {
		return LintAlways
	}
	return LintNever
}

// condition looks at one expression. s is nil for a when.
func (l *linter) condition(r *lintRule, s *lintSetting, x *schema.Expr, e *expression, p *proposition, phases phaseSet) {
	isBool := e.result.Kind() == types.BoolKind || e.result.Kind() == types.DynKind && s == nil
	if s == nil && isTrueOrFalse(e.tree.Expr()) {
		if e.constant == types.False {
			r.dead = true
			if x.Pos.Line == 0 {
				return // it stands for one that is faulty, and reported
			}
			l.report(schema.Note, LintNever, whole(x), "remove the rule when it is no longer wanted", "rule %q is switched off", r.name)
		} else {
			l.report(schema.Note, LintAlways, whole(x), "leave the when out", "rule %q holds for every call", r.name)
		}
		return
	}
	domain := l.anyDomain(phases)
	found := map[*proposition]truth{}
	l.over(p, l.any, func(p *proposition, o *outcomes) {
		var t truth
		if o.hold.intersects(domain) {
			t |= mayHold
		}
		if o.fail.intersects(domain) {
			t |= mayFail
		}
		if o.err.intersects(domain) {
			t |= mayErr
		}
		found[p] = t
	})
	l.narrow(p, domain, found)
	l.constant(r, s, x, e, p, found, isBool, true)
}

// constant reports the outermost constant parts of a proposition. asCondition tells whether it is one, and not a value.
func (l *linter) constant(r *lintRule, s *lintSetting, x *schema.Expr, e *expression, p *proposition, found map[*proposition]truth, asCondition, outermost bool) {
	t := found[p]
	isConstant := t == mayHold || t&mayHold == 0
	if asCondition && isConstant && !(isTrueOrFalse(p.expr) && outermost) {
		if l.warned(x, e, p) {
			return // the reason is reported as it is: a word that the field never is
		}
		l.reportConstant(r, s, x, p, t, outermost)
		return
	}
	for i, k := range p.kids {
		isCondition := asCondition
		if p.op == operators.Conditional {
			isCondition = i == 0
		}
		l.constant(r, s, x, e, k, found, isCondition, false)
	}
}

func (l *linter) reportConstant(r *lintRule, s *lintSetting, x *schema.Expr, p *proposition, t truth, outermost bool) {
	what, always, never := "this part", "it can be left out", "leave it out, or correct it"
	switch {
	case outermost && s == nil:
		what, always, never = fmt.Sprintf("the condition of rule %q", r.name), "remove the when: the rule holds for every call", "the rule never says anything: correct it, or remove it"
	case outermost:
		what, always, never = string(s.decision()), fmt.Sprintf("write %s: true if that is meant", s.decision()), fmt.Sprintf("write %s: false if that is meant", s.decision())
	}
	pos := placeOf(x, p.tree, p.expr)
	if p.op == "" && p.leaf.atom != nil && p.leaf.atom.subject == "attempt" {
		always, never = "attempt counts from 1", "attempt counts from 1"
	}
	if t == mayHold {
		l.report(schema.Warning, LintAlways, pos, always, "%s is true for every call", what)
		return
	}
	if outermost && s == nil {
		r.dead = true
	}
	why := "is true for no call"
	if t == mayErr {
		why += ": it always fails"
	} else if p.op == operators.LogicalAnd {
		never = "its parts exclude one another: for one of several use ||"
	}
	l.report(schema.Warning, LintNever, pos, never, "%s %s", what, why)
}

// warned reports whether compiling has warned of something within the proposition already.
func (l *linter) warned(x *schema.Expr, e *expression, p *proposition) bool {
	start, end := span(x.Text, p.tree, p.expr)
	for _, w := range e.warnings {
		if w.offset >= start && w.offset < end {
			return true
		}
	}
	return false
}

// conjuncts are the parts of a condition that all must hold.
func conjuncts(p *proposition) []*proposition {
	if p == nil {
		return nil
	}
	if p.op == operators.LogicalAnd {
		return append(conjuncts(p.kids[0]), conjuncts(p.kids[1])...)
	}
	return []*proposition{p}
}

// selects returns the path of an expression that reads a field of a variable by names alone, the variable first: args.a.b.
func selects(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		if path := selects(e.AsSelect().Operand()); path != nil {
			return append(path, e.AsSelect().FieldName())
		}
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if name, ok := stringLiteral(args[1]); ok {
				if path := selects(args[0]); path != nil {
					return append(path, name)
				}
			}
		}
	}
	return nil
}
