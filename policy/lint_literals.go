package policy

import (
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// literalExpr is a number or a text that stands in an expression.
type literalExpr struct {
	expr   ast.Expr
	isInt  bool
	number int64
	isText bool
	text   string
}

// visitLiterals calls f for each number and text within the expression, from left to right.
func visitLiterals(e ast.Expr, f func(literalExpr)) {
	visit(e, func(e ast.Expr) bool {
		if n, ok := intLiteral(e); ok {
			f(literalExpr{expr: e, isInt: true, number: n})
		} else if s, ok := stringLiteral(e); ok {
			f(literalExpr{expr: e, isText: true, text: s})
		}
		return true
	})
}

// durationExpr is a duration("…") that stands in an expression.
type durationExpr struct {
	expr  ast.Expr
	value time.Duration
}

// branches are the values that an expression may come to.
func branches(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Conditional {
		args := e.AsCall().Args()
		return append(branches(args[1]), branches(args[2])...)
	}
	return []ast.Expr{e}
}

// durations lists those among the expressions.
func durations(list ...ast.Expr) []durationExpr {
	var found []durationExpr
	for _, e := range list {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "duration" && len(e.AsCall().Args()) == 1 {
			if s, ok := stringLiteral(e.AsCall().Args()[0]); ok {
				if d, err := time.ParseDuration(s); err == nil {
					found = append(found, durationExpr{e, d})
				}
			}
		}
	}
	return found
}

// durationsWithin lists all that stand in the expression.
func durationsWithin(e ast.Expr) []durationExpr {
	var list []durationExpr
	visit(e, func(e ast.Expr) bool {
		list = append(list, durations(e)...)
		return true
	})
	return list
}
