package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// Constants are what a rule names in the expressions that look at what an attempt came to: whoever wants to see the rule apply
// makes attempts come to that.
type Constants struct {
	Numbers  []int64    // whole numbers, such as codes of errors
	Texts    []string   // such as pieces of messages; not ""
	Patterns []string   // regular expressions
	Data     [][]string // members of error.data that are looked at, by the names on the way to them
	Error    bool       // error is looked at
	Result   bool       // result is looked at
}

// Constants lists those of the rules that look at what an attempt came to, in the order of the rules.
func (p *Policy) Constants() []Constants {
	var list []Constants
	for i := range p.rules {
		var c Constants
		r := &p.rules[i]
		if r.when != nil {
			c.add(r.whenText)
		}
		for _, set := range r.decisions {
			if set.text != nil {
				c.add(set.text)
			}
		}
		if c.Error || c.Result {
			list = append(list, c)
		}
	}
	return list
}

// add takes in an expression, if it looks at what an attempt came to.
func (c *Constants) add(x *schema.Expr) {
	t := trace(x.Text)
	if t == nil {
		return
	}
	c.Error, c.Result = c.Error || t.constants.Error, c.Result || t.constants.Result
	if t.constants.Error || t.constants.Result {
		c.Numbers = append(c.Numbers, t.constants.Numbers...)
		c.Data = append(c.Data, t.constants.Data...)
		c.Texts, c.Patterns = append(c.Texts, t.constants.Texts...), append(c.Patterns, t.constants.Patterns...)
	}
}

// constantsOf collects the constants of an expression.
func constantsOf(tree *ast.AST) (c Constants) {
	patterns := map[int64]bool{} // by their ids
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			c.Error, c.Result = c.Error || e.AsIdent() == "error", c.Result || e.AsIdent() == "result"
		case ast.SelectKind:
			if path := pathOf(e); len(path) > 2 && path[0] == "error" && path[1] == "data" && !slices.ContainsFunc(c.Data, func(longer []string) bool {
				return len(longer) >= len(path)-2 && slices.Equal(longer[:len(path)-2], path[2:])
			}) {
				c.Data = append(c.Data, path[2:])
			}
		case ast.CallKind:
			if arg := patternOf(e.AsCall()); arg != nil {
				patterns[arg.ID()] = true
			}
		case ast.LiteralKind:
			switch v := e.AsLiteral().(type) {
			case types.Int:
				if n := int64(v); !slices.Contains(c.Numbers, n) {
					c.Numbers = append(c.Numbers, n)
				}
			case types.String:
				list := &c.Texts
				if patterns[e.ID()] {
					list = &c.Patterns
				}
				if s := string(v); s != "" && !slices.Contains(*list, s) {
					*list = append(*list, s)
				}
			}
		}
	}))
	return c
}

// patternOf is the argument of a call that is a regular expression; nil = none is.
func patternOf(call ast.CallExpr) ast.Expr {
	at := 1 // of matches(text, pattern), regex.extract(text, pattern) and so on
	switch f := call.FunctionName(); {
	case f == "matches" && call.IsMemberFunction():
		at = 0
	case f != "matches" && !strings.HasPrefix(f, "regex."):
		return nil
	}
	if args := call.Args(); at < len(args) {
		return args[at]
	}
	return nil
}

// pathOf are the names of a chain of members, that of the variable first; nil = it is no such chain.
func pathOf(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		if path := pathOf(e.AsSelect().Operand()); path != nil {
			return append(path, e.AsSelect().FieldName())
		}
	}
	return nil
}
