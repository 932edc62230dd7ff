package policy

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// span is where a part of an expression stands in its text, in bytes.
func span(text string, tree *ast.AST, e ast.Expr) (start, end int) {
	start, end = len(text), 0
	info := tree.SourceInfo()
	take := func(id int64, isLiteral bool) {
		at, ok := info.GetOffsetRange(id)
		if !ok {
			return
		}
		from := byteOffset(text, int(at.Start))
		to := from
		switch {
		case isLiteral:
			to = tokenEnd(text, from)
		case from < len(text) && text[from] == '(':
			// CEL points at the bracket of a call. The name stands before it.
			to = from + 1
			for from > 0 && (isNameByte(text[from-1]) || text[from-1] == '.') {
				from--
			}
			from += len(text[from:to]) - len(strings.TrimLeft(text[from:to], "."))
		default:
			to = nameAt(text, from)
			for to < len(text) && isNameByte(text[to]) {
				to++
			}
			if to == from && to < len(text) {
				to++
			}
		}
		start, end = min(start, from), max(end, to)
	}
	visit(e, func(e ast.Expr) bool {
		if macro, ok := info.GetMacroCall(e.ID()); ok {
			take(e.ID(), false)
			visit(macro, func(part ast.Expr) bool {
				if part == macro {
					return true
				}
				if part.Kind() == ast.UnspecifiedExprKind {
					// A macro within the macro: its own call is kept under the same id.
					if inner, ok := info.GetMacroCall(part.ID()); ok && inner != macro {
						visit(inner, func(p ast.Expr) bool { take(p.ID(), p.Kind() == ast.LiteralKind); return true })
					}
					return false
				}
				take(part.ID(), part.Kind() == ast.LiteralKind)
				return true
			})
			return false
		}
		take(e.ID(), e.Kind() == ast.LiteralKind)
		return true
	})
	if start > end {
		return 0, len(text)
	}
	return start, closed(text, start, end)
}

// tokenEnd is the end of the literal that starts at from.
func tokenEnd(text string, from int) int {
	i := from
	for i < len(text) && (text[i] == 'r' || text[i] == 'R' || text[i] == 'b' || text[i] == 'B') {
		i++
	}
	if i < len(text) && (text[i] == '"' || text[i] == '\'') {
		raw := strings.ContainsAny(text[from:i], "rR")
		return stringEnd(text, i, raw)
	}
	i = from
	if i < len(text) && text[i] == '-' {
		i++
	}
	for i < len(text) && (isNameByte(text[i]) || text[i] == '.' || text[i] == '-' && (text[i-1] == 'e' || text[i-1] == 'E')) {
		i++
	}
	return max(i, min(from+1, len(text)))
}

// stringEnd is the end of the string whose first quote stands at i.
func stringEnd(text string, i int, raw bool) int {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote = text[i : i+3]
	}
	for i += len(quote); i < len(text); i++ {
		if text[i] == '\\' && !raw {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
	}
	return len(text)
}

// closed moves the end of a span behind the brackets that are open at it.
func closed(text string, start, end int) int {
	depth := 0
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			i = stringEnd(text, i, i > start && (text[i-1] == 'r' || text[i-1] == 'R')) - 1
		case '(', '[', '{':
			if i < end {
				depth++
			}
			if i >= end {
				if depth == 0 {
					return end
				}
				depth++
			}
		case ')', ']', '}':
			if i >= end && depth == 0 {
				return end
			}
			depth--
			if i >= end && depth == 0 {
				return i + 1
			}
		}
		if i+1 >= end && depth <= 0 {
			return max(end, min(i+1, len(text)))
		}
	}
	return len(text)
}

// placeOf is where a part of an expression stands in the file. Its length ends with the line.
func placeOf(x *schema.Expr, tree *ast.AST, e ast.Expr) schema.Pos {
	start, end := span(x.Text, tree, e)
	return placeSpan(x, start, end)
}

func placeSpan(x *schema.Expr, start, end int) schema.Pos {
	start = min(start, len(x.Text))
	pos := x.Place(start)
	pos.Len = 1
	for i := min(end, len(x.Text)); i > start; i-- {
		if last := x.Place(i - 1); last.Line == pos.Line && last.Col >= pos.Col {
			pos.Len = last.Col - pos.Col + 1
			if next := x.Place(i); next.Line == last.Line && next.Col > last.Col {
				pos.Len = next.Col - pos.Col // the last is an escape, which is longer than what it stands for
			}
			break
		}
	}
	return pos
}

// whole is the place of an expression from its first character.
func whole(x *schema.Expr) schema.Pos {
	start := len(x.Text) - len(strings.TrimLeft(x.Text, " \t\r\n"))
	return placeSpan(x, start, start+len(strings.TrimSpace(x.Text)))
}

// isTrueOrFalse reports whether the expression is a literal bool.
func isTrueOrFalse(e ast.Expr) bool {
	if e.Kind() != ast.LiteralKind {
		return false
	}
	_, ok := e.AsLiteral().(types.Bool)
	return ok
}
