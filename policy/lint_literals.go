package policy

import (
	"time"

	"github.com/google/cel-go/common/ast"
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

func durations(e ast.Expr) []durationExpr {
	var list []durationExpr
	visit(e, func(e ast.Expr) bool {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "duration" && len(e.AsCall().Args()) == 1 {
			if s, ok := stringLiteral(e.AsCall().Args()[0]); ok {
				if d, err := time.ParseDuration(s); err == nil {
					list = append(list, durationExpr{e, d})
				}
			}
		}
		return true
	})
	return list
}
