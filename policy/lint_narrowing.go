package policy

import (
	"github.com/google/cel-go/common/operators"
)

// narrowing is what a rule asks of single values, such as the tool's name: a rule above that asks less of them decides in its
// place. It holds a few values that the rule admits, for most rules above do not admit those, which spares a closer look.
type narrowing struct {
	cond    *proposition // with the glob of the rule's place
	samples map[string][]witness
}

// maxTogether bounds the rules above that are looked at together.
const maxTogether = 8

// narrowed is nil for a rule that asks nothing of the kind.
func (l *linter) narrowed(r *lintRule) *narrowing {
	n := &narrowing{cond: r.cond, samples: map[string][]witness{}}
	if r.tools != "" {
		name := globAtom(r.tools)
		name.subject, name.kind, name.safe = "tool.name", textKind, true
		of := &proposition{leaf: &leaf{atom: &name, uses: facetName, vars: varTool}}
		if r.cond == nil {
			n.cond = of
		} else {
			n.cond = &proposition{op: operators.LogicalAnd, kids: []*proposition{of, r.cond}}
		}
	}
	if n.cond == nil {
		return nil
	}
	found := false
	n.cond.leaves(func(p *proposition) {
		a := p.leaf.atom
		if a == nil {
			return
		}
		list := n.samples[a.subject]
		for _, w := range a.samples() {
			if n.cond.admits(a.subject, &w) {
				list, found = append(list, w), true
			}
		}
		n.samples[a.subject] = list
	})
	if !found {
		return nil
	}
	return n
}

// samples are values that the atom admits; none for one that excludes some.
func (a *atom) samples() []witness {
	var list []witness
	switch a.op {
	case operators.Equals, operators.In:
		for _, text := range a.texts {
			list = append(list, witness{kind: isText, text: text})
		}
		for _, n := range a.numbers {
			list = append(list, witness{kind: isNumber, number: n})
		}
	case operators.Greater, operators.GreaterEquals:
		list = append(list, witness{kind: isNumber, number: a.numbers[0] + 1})
	case operators.Less, operators.LessEquals:
		list = append(list, witness{kind: isNumber, number: a.numbers[0] - 1})
	case opTruth:
		list = append(list, witness{kind: isBool, yes: true})
	case opPrefix:
		list = append(list, witness{kind: isParts, prefix: a.texts[0]})
	case opSuffix:
		list = append(list, witness{kind: isParts, suffix: a.texts[0]})
	case opInfix:
		list = append(list, witness{kind: isParts, infixes: a.texts})
	}
	return list
}

// part is one of the parts of a condition that all must hold, with the values that it asks something of.
type part struct {
	*proposition
	subjects []string
}

// conjuncts are the parts of the rule's condition. They are compared with every rule below.
func (r *lintRule) conjuncts() []part {
	if r.parts != nil {
		return r.parts
	}
	r.parts = []part{}
	for _, c := range conjuncts(r.cond) {
		of := part{proposition: c}
		c.leaves(func(p *proposition) {
			if a := p.leaf.atom; a != nil && p.leaf.uses&(facetTool&^facetName|facetError) == 0 {
				of.subjects = append(of.subjects, a.subject)
			}
		})
		r.parts = append(r.parts, of)
	}
	return r.parts
}

// within reports whether a rule above admits all of the samples, as far as one can see, and whether it admits some.
func (n *narrowing) within(above *lintRule) (all, some bool) {
	all = true
	tried := false
	for _, c := range above.conjuncts() {
		for _, subject := range c.subjects {
			samples, known := n.samples[subject]
			if !known && c.op == "" {
				return false, false // it asks for what this one leaves open
			}
			for i := range samples {
				tried = true
				if c.admits(subject, &samples[i]) {
					some = true
				} else {
					all = false
				}
			}
		}
	}
	return all && tried, some
}

// admits reports whether a proposition may hold for a value of a subject.
func (p *proposition) admits(subject string, w *witness) bool {
	return p.holds(func(f *leaf) truth {
		if f.atom != nil && f.atom.subject == subject {
			return f.atom.answer(w)
		}
		return anything
	})&mayHold != 0
}

// anyOf is a condition that holds when one of the rules' does.
func anyOf(list []*shade) *proposition {
	p := list[0].rule.cond
	for _, sh := range list[1:] {
		p = &proposition{op: operators.LogicalOr, kids: []*proposition{p, sh.rule.cond}}
	}
	return p
}
