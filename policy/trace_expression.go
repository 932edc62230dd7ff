package policy

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"

	"github.com/bentabol/mcp-retry/schema"
)

// traced is an expression compiled so that it records the value of each of its parts.
type traced struct {
	program   cel.Program
	parts     []tracedPart
	constants Constants
}

type tracedPart struct {
	id      int64
	offset  int
	text    string
	whole   bool
	boolean bool
}

// tracedTexts keeps them by their text: they belong to no call and no policy.
var tracedTexts sync.Map // string → *traced

// tracingEnvironment is the environment with macros kept as they were written.
var tracingEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.EnableMacroCallTracking())
})

// trace compiles a text that has been compiled before; nil = it cannot be traced.
func trace(text string) *traced {
	if t, ok := tracedTexts.Load(text); ok {
		return t.(*traced)
	}
	env, err := tracingEnvironment()
	if err != nil {
		return nil
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptTrackState), cel.CostLimit(costLimit), cel.CostTracking(costs{}), guarded())
	if err != nil {
		return nil
	}
	t := &traced{program: program, parts: partsOf(checked.NativeRep(), text), constants: constantsOf(checked.NativeRep())}
	tracedTexts.Store(text, t)
	return t
}

// partsOf lists the parts of an expression whose values tell how it came to its own, in the order of the text. What a macro
// does for each item is left out, for it has one value for each.
func partsOf(tree *ast.AST, text string) []tracedPart {
	var parts []tracedPart
	info := tree.SourceInfo()
	add := func(e ast.Expr, condition bool) {
		words, err := parser.Unparse(e, info)
		at, ok := info.GetOffsetRange(e.ID())
		if err != nil || !ok {
			return
		}
		boolean := condition || tree.GetType(e.ID()).Kind() == types.BoolKind
		parts = append(parts, tracedPart{
			id: e.ID(), offset: calledAt(text, nameAt(text, byteOffset(text, int(at.Start)))), text: oneLine(words), whole: e.ID() == tree.Expr().ID(), boolean: boolean,
		})
	}
	var walk func(e ast.Expr, condition bool)
	// operands are those of a chain of && or ||, whose inner links are left out: they say nothing that the operands do not.
	var operands func(call ast.CallExpr)
	operands = func(call ast.CallExpr) {
		for _, arg := range call.Args() {
			if arg.Kind() == ast.CallKind && arg.AsCall().FunctionName() == call.FunctionName() {
				operands(arg.AsCall())
				continue
			}
			walk(arg, true)
		}
	}
	walk = func(e ast.Expr, condition bool) {
		switch e.Kind() {
		case ast.LiteralKind, ast.UnspecifiedExprKind:
			return
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			if isBinding(c) {
				walk(c.AccuInit(), false)
				walk(c.Result(), condition)
				return
			}
			add(e, condition)
			walk(c.IterRange(), false)
			return
		case ast.CallKind:
			call := e.AsCall()
			add(e, condition)
			if f := call.FunctionName(); f == operators.LogicalAnd || f == operators.LogicalOr {
				operands(call)
				return
			}
			if call.IsMemberFunction() {
				walk(call.Target(), false)
			}
			for i, arg := range call.Args() {
				walk(arg, isCondition(call.FunctionName(), i))
			}
			return
		case ast.SelectKind:
			add(e, condition)
			if operand := e.AsSelect().Operand(); operand.Kind() != ast.IdentKind && operand.Kind() != ast.SelectKind {
				walk(operand, false)
			}
			return
		case ast.IdentKind:
			add(e, condition)
			return
		}
		for _, child := range children(e) {
			walk(child, false)
		}
	}
	walk(tree.Expr(), false)
	slices.SortStableFunc(parts, func(a, b tracedPart) int { return a.offset - b.offset })
	return parts
}

// calledAt moves an offset that points at the bracket of a call to the name before it.
func calledAt(text string, offset int) int {
	if offset >= len(text) || text[offset] != '(' {
		return offset
	}
	for offset > 0 && isNameByte(text[offset-1]) {
		offset--
	}
	return offset
}

// isBinding reports whether a comprehension is a cel.bind: it loops over nothing.
func isBinding(c ast.ComprehensionExpr) bool {
	r := c.IterRange()
	return r.Kind() == ast.ListKind && r.AsList().Size() == 0
}

// isCondition reports whether an operand must be true or false, whatever its type.
func isCondition(function string, index int) bool {
	switch function {
	case operators.LogicalNot:
		return true
	case operators.Conditional:
		return index == 0
	}
	return false
}

// children are the parts of a list, a map or a message.
func children(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			all = append(all, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return all
	}
	return nil
}

// evaluated evaluates an expression for the call as it stands, with all its parts.
func evaluated(c *Call, x *schema.Expr) *Evaluated {
	e := &Evaluated{Expr: x}
	t := trace(x.Text)
	if t == nil {
		e.Err = "it cannot be traced"
		return e
	}
	v, details, err := t.program.Eval((*activation)(c))
	if err != nil {
		e.Err = shorten(err.Error(), 300)
	} else {
		e.Value = asWritten(v)
	}
	for _, p := range t.parts {
		part := Part{Offset: p.offset, Text: p.text, Whole: p.whole, Boolean: p.boolean}
		if v, ok := details.State().Value(p.id); ok {
			part.Value, part.Outcome = asWritten(v), outcomeOf(v)
			if part.Outcome == Failed {
				part.Value = "failed"
			}
		}
		e.Parts = append(e.Parts, part)
	}
	return e
}

func outcomeOf(v ref.Val) Outcome {
	switch {
	case types.IsError(v):
		return Failed
	case v == types.True:
		return True
	case v == types.False:
		return False
	}
	return NotReached
}

// unevaluated is an expression with its parts, and no values.
func unevaluated(x *schema.Expr) *Evaluated {
	e := &Evaluated{Expr: x}
	if t := trace(x.Text); t != nil {
		for _, p := range t.parts {
			e.Parts = append(e.Parts, Part{Offset: p.offset, Text: p.text, Whole: p.whole, Boolean: p.boolean})
		}
	}
	return e
}

// inWords is a value as CEL would write it.
func inWords(v ref.Val) string {
	switch v := v.(type) {
	case *types.Err:
		return v.Error()
	case types.Duration:
		return `duration("` + v.Duration.String() + `")`
	case types.String:
		return strconv.Quote(string(v))
	case *types.Optional:
		if !v.HasValue() {
			return "optional.none()"
		}
		return "optional.of(" + inWords(v.GetValue()) + ")"
	case fielder:
		return v.Type().TypeName()
	}
	if text, err := appendCanonical(nil, v, 0); err == nil {
		return string(text)
	}
	return v.Type().TypeName()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
