package policy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// truth is the set of what an expression may come to in one world.
type truth uint8

const (
	mayHold truth = 1 << iota
	mayFail
	mayErr
	anything = mayHold | mayFail | mayErr
)

func (a truth) and(b truth) truth {
	t := a & b & mayHold
	t |= (a | b) & mayFail
	if a&mayErr != 0 && b&(mayHold|mayErr) != 0 || b&mayErr != 0 && a&(mayHold|mayErr) != 0 {
		t |= mayErr
	}
	return t
}

func (a truth) not() truth {
	t := a & mayErr
	if a&mayHold != 0 {
		t |= mayFail
	}
	if a&mayFail != 0 {
		t |= mayHold
	}
	return t
}

func (a truth) or(b truth) truth { return a.not().and(b.not()).not() }

func (a truth) choose(yes, no truth) truth {
	t := a & mayErr
	if a&mayHold != 0 {
		t |= yes
	}
	if a&mayFail != 0 {
		t |= no
	}
	return t
}

// proposition is a condition taken apart at its &&, ||, ! and ?:. What is left, the leaves, is asked of CEL, each on its own.
type proposition struct {
	op   string // operator, or "" for a leaf
	kids []*proposition
	leaf *leaf
	expr ast.Expr
	tree *ast.AST
}

// holds evaluates the proposition given what its leaves come to.
func (p *proposition) holds(ask func(*leaf) truth) truth {
	switch p.op {
	case operators.LogicalAnd:
		t := p.kids[0].holds(ask)
		if t == mayFail {
			return t
		}
		return t.and(p.kids[1].holds(ask))
	case operators.LogicalOr:
		t := p.kids[0].holds(ask)
		if t == mayHold {
			return t
		}
		return t.or(p.kids[1].holds(ask))
	case operators.LogicalNot:
		return p.kids[0].holds(ask).not()
	case operators.Conditional:
		return p.kids[0].holds(ask).choose(p.kids[1].holds(ask), p.kids[2].holds(ask))
	}
	return ask(p.leaf)
}

// combine is what an operator makes of its parts.
func combine(op string, kids []truth) truth {
	switch op {
	case operators.LogicalAnd:
		return kids[0].and(kids[1])
	case operators.LogicalOr:
		return kids[0].or(kids[1])
	case operators.LogicalNot:
		return kids[0].not()
	default:
		return kids[0].choose(kids[1], kids[2])
	}
}

// leaves calls f for every leaf.
func (p *proposition) leaves(f func(*proposition)) {
	if p.op == "" {
		f(p)
		return
	}
	for _, k := range p.kids {
		k.leaves(f)
	}
}

// proposition takes an expression apart. Of one that is no condition the branches are asked whether they are more than nothing.
func (l *linter) proposition(tree *ast.AST, e ast.Expr) *proposition {
	p := &proposition{expr: e, tree: tree}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch op := call.FunctionName(); op {
		case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
			p.op = op
			for _, arg := range call.Args() {
				p.kids = append(p.kids, l.proposition(tree, arg))
			}
			return p
		}
	}
	p.leaf = l.leaf(tree, e)
	return p
}

// at evaluates a proposition in one world; nil always holds.
func (l *linter) at(p *proposition, sp *space, state, failure int) truth {
	if p == nil {
		return mayHold
	}
	return p.holds(func(f *leaf) truth { return l.ask(f, sp, state, failure) })
}

// outcomes are what a proposition may come to in each world.
type outcomes struct{ hold, fail, err bits }

func (o *outcomes) set(i int, t truth) {
	if t&mayHold != 0 {
		o.hold.add(i)
	}
	if t&mayFail != 0 {
		o.fail.add(i)
	}
	if t&mayErr != 0 {
		o.err.add(i)
	}
}

// surely is the worlds in which it holds and cannot but hold.
func (o *outcomes) surely() bits {
	b := newBits(64 * len(o.hold))
	for i := range b {
		b[i] = o.hold[i] &^ o.fail[i] &^ o.err[i]
	}
	return b
}

// over evaluates a proposition, and with each the propositions within it, in all worlds.
func (l *linter) over(p *proposition, sp *space, each func(*proposition, *outcomes)) *outcomes {
	n := sp.size()
	o := &outcomes{newBits(n), newBits(n), newBits(n)}
	if p.op == "" {
		states, failures := 1, 1
		if p.leaf.uses&facetTool != 0 || p.leaf.title {
			states = len(sp.states)
		}
		if p.leaf.uses&facetError != 0 {
			failures = sp.errs
		}
		for s := range sp.states {
			for e := range sp.errs {
				o.set(s*sp.errs+e, l.ask(p.leaf, sp, min(s, states-1), min(e, failures-1)))
			}
		}
	} else {
		kids := make([]*outcomes, len(p.kids))
		for i, k := range p.kids {
			kids[i] = l.over(k, sp, each)
		}
		answers := make([]truth, len(kids))
		get := func(k, i int) truth {
			var t truth
			if kids[k].hold.has(i) {
				t |= mayHold
			}
			if kids[k].fail.has(i) {
				t |= mayFail
			}
			if kids[k].err.has(i) {
				t |= mayErr
			}
			return t
		}
		for i := range n {
			for k := range kids {
				answers[k] = get(k, i)
			}
			o.set(i, combine(p.op, answers))
		}
	}
	if each != nil {
		each(p, o)
	}
	return o
}

func unparse(tree *ast.AST, e ast.Expr) string {
	text, err := cel.ExprToString(e, tree.SourceInfo())
	if err != nil {
		return ""
	}
	return text
}

// visit calls f for the expression and all within it, outer ones first; f says whether to look into it.
func visit(e ast.Expr, f func(ast.Expr) bool) {
	if !f(e) {
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		visit(e.AsSelect().Operand(), f)
	case ast.CallKind:
		if call := e.AsCall(); call.IsMemberFunction() {
			visit(call.Target(), f)
		}
		for _, arg := range e.AsCall().Args() {
			visit(arg, f)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			visit(item, f)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			visit(entry.AsMapEntry().Key(), f)
			visit(entry.AsMapEntry().Value(), f)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			visit(field.AsStructField().Value(), f)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			visit(part, f)
		}
	}
}
