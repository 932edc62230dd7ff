package policy

import (
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// leaf is a condition that cannot be taken apart, or a value of which it is asked whether it is more than nothing.
type leaf struct {
	program cel.Program // nil = it cannot be asked
	uses    facet
	title   bool // reads tool.title
	vars    varSet
	opaque  bool  // reads error.code other than by comparing it with numbers
	content bool  // asks more of the result than whether it is an error
	atom    *atom // nil = it is like no other
	memo    map[uint64]truth
	sampled map[*Failure]truth // by specimen
}

func (l *linter) leaf(tree *ast.AST, e ast.Expr) *leaf {
	text := unparse(tree, e)
	if text != "" {
		if known, ok := l.leaves[text]; ok {
			return known
		}
	}
	out := &leaf{memo: map[uint64]truth{}}
	looks := lookCloser{leaf: out}
	looks.walk(e)
	sub := ast.NewCheckedAST(ast.NewAST(e, tree.SourceInfo()), tree.TypeMap(), tree.ReferenceMap())
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptPartialEval)}
	if looks.costly {
		options = append(options, cel.CostLimit(lintCostLimit), cel.CostTracking(costs{}), guarded())
	}
	if program, err := l.env.PlanProgram(sub, options...); err == nil {
		out.program = program
	}
	if text != "" {
		l.leaves[text] = out
		out.atom = atomOf(tree, e)
	}
	return out
}

// lintCostLimit bounds what is spent on one leaf in one world.
const lintCostLimit = 5000

// lookCloser finds out what a leaf depends on.
type lookCloser struct {
	leaf   *leaf
	costly bool
}

func (w *lookCloser) walk(e ast.Expr) {
	visit(e, func(e ast.Expr) bool {
		switch e.Kind() {
		case ast.ComprehensionKind:
			w.costly = true
		case ast.CallKind:
			if isErrorOnly(e) {
				w.leaf.vars |= varResult
				return false
			}
			if _, ok := guards[e.AsCall().FunctionName()]; ok {
				w.costly = true
			}
			if _, ok := comparedCodes(e.AsCall()); ok {
				w.leaf.uses |= facetCode
				w.leaf.vars |= varError
				return false
			}
		case ast.SelectKind:
			if isErrorOnly(e) {
				w.leaf.vars |= varResult
				return false
			}
			operand := e.AsSelect().Operand()
			if operand.Kind() != ast.IdentKind {
				break
			}
			field := facets[operand.AsIdent()][e.AsSelect().FieldName()]
			w.leaf.uses |= field
			w.leaf.opaque = w.leaf.opaque || field == facetCode
			w.leaf.title = w.leaf.title || operand.AsIdent() == "tool" && e.AsSelect().FieldName() == "title"
		case ast.IdentKind:
			w.leaf.content = w.leaf.content || e.AsIdent() == "result"
			for _, v := range variables {
				if v.Name == e.AsIdent() {
					w.leaf.vars |= v.set
				}
			}
		}
		return true
	})
}

// isErrorOnly reports whether an expression asks of the result but whether there is one, and whether it is an error.
func isErrorOnly(e ast.Expr) bool {
	isResult := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "result" }
	if path := selects(e); len(path) == 2 {
		return path[0] == "result" && path[1] == "isError"
	}
	if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
		return false
	}
	args := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals:
		return isResult(args[0]) && isNull(args[1]) || isResult(args[1]) && isNull(args[0])
	case operators.In:
		name, _ := stringLiteral(args[0])
		return name == "isError" && isResult(args[1])
	}
	return false
}

func isNull(e ast.Expr) bool { return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue }

// ask evaluates a leaf in one world.
func (l *linter) ask(f *leaf, sp *space, state, failure int) truth {
	if f.program == nil {
		return anything
	}
	key := uint64(0)
	if f.uses&facetName != 0 || f.title {
		key = uint64(sp.id) + 1
	}
	key <<= 3
	if f.uses&facetEffects != 0 {
		key |= uint64(sp.states[state].effects)
	}
	key = key<<16 | uint64(sp.states[state].hints&f.uses)
	key <<= 16
	if f.uses&facetError != 0 {
		key |= uint64(failure)
	}
	if t, ok := f.memo[key]; ok {
		return t
	}
	c := l.world(sp, state, failure)
	unknown := l.patterns(sp, f.opaque)
	t := f.eval(c, unknown)
	f.memo[key] = t
	return t
}

// world is a call of the tool in one world.
func (l *linter) world(sp *space, state, failure int) *Call {
	title := ""
	if sp.info != nil {
		title = sp.info.Title
	}
	c := &l.call
	c.Tool = sp.states[state].tool(sp.name, title)
	c.enter(0, &l.failures[failure], nil, 1, 0)
	return c
}

// patterns are what is not known in the worlds of a tool. They are valid until the next call.
func (l *linter) patterns(sp *space, codeToo bool) []*cel.AttributePatternType {
	unknown := append(l.unknown[:0], unknownAlways...)
	unknown = append(unknown, unknownText...)
	if !sp.named {
		unknown = append(unknown, unknownName)
	}
	if sp.info == nil {
		unknown = append(unknown, unknownTitle)
	}
	if codeToo || l.manyCodes {
		unknown = append(unknown, unknownCode)
	}
	l.unknown = unknown
	return unknown
}

// eval evaluates the leaf for a call of which some is unknown.
func (f *leaf) eval(c *Call, unknown []*cel.AttributePatternType) truth {
	if f.program == nil {
		return anything
	}
	vars, err := cel.PartialVars((*activation)(c), unknown...)
	if err != nil {
		return anything
	}
	v, _, err := f.program.Eval(vars)
	switch {
	case err != nil && strings.Contains(err.Error(), "cost limit"):
		return anything
	case err != nil:
		return mayErr
	}
	return truthOf(v)
}

// truthOf is what a value says: a condition that holds, or more than nothing.
func truthOf(v ref.Val) truth {
	switch x := v.(type) {
	case types.Bool:
		if x {
			return mayHold
		}
		return mayFail
	case *types.Unknown:
		return anything
	case types.String:
		if x == "" {
			return mayFail
		}
		return mayHold
	}
	if d, err := toDuration(v); err == nil {
		if d > 0 {
			return mayHold
		}
		return mayFail
	}
	return anything
}
