package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// facts are what can be said of an expression without running it.
type facts struct {
	vars   varSet
	uses   []use
	costly bool // it loops, or its cost depends on the call's values by more than their size
	issues []issue

	warnings []issue
}

// analyse walks a checked expression. Variables that a comprehension binds hide those of the same name.
func analyse(tree *ast.AST, text string) facts {
	w := walker{tree: tree, text: text}
	w.walk(tree.Expr(), nil)
	slices.SortStableFunc(w.uses, func(a, b use) int { return a.offset - b.offset })
	return w.facts
}

type walker struct {
	facts
	tree  *ast.AST
	text  string
	nodes int
}

func (w *walker) walk(e ast.Expr, bound []string) {
	if w.nodes++; w.nodes > manyNodes {
		w.costly = true
	}
	switch e.Kind() {
	case ast.IdentKind:
		w.use(e, e.AsIdent(), nil, bound)
	case ast.SelectKind:
		s := e.AsSelect()
		if operand := s.Operand(); operand.Kind() == ast.IdentKind {
			w.use(operand, operand.AsIdent(), s, bound)
			return
		}
		w.walk(s.Operand(), bound)
	case ast.CallKind:
		call := e.AsCall()
		if _, ok := guards[call.FunctionName()]; ok {
			w.costly = true
		}
		w.compare(call, bound)
		if patterned[call.FunctionName()] {
			w.pattern(call)
		}
		if call.IsMemberFunction() {
			w.walk(call.Target(), bound)
		}
		for _, arg := range call.Args() {
			w.walk(arg, bound)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			w.walk(item, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key(), bound)
			w.walk(entry.AsMapEntry().Value(), bound)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			w.walk(field.AsStructField().Value(), bound)
		}
	case ast.ComprehensionKind:
		w.costly = true
		c := e.AsComprehension()
		w.walk(c.IterRange(), bound)
		w.walk(c.AccuInit(), bound)
		withAccu := append(slices.Clip(bound), c.AccuVar())
		within := append(slices.Clip(withAccu), c.IterVar(), c.IterVar2())
		w.walk(c.LoopCondition(), within)
		w.walk(c.LoopStep(), within)
		w.walk(c.Result(), withAccu)
	}
}

// use records a reference to a variable, and whether only a name known before any call is read.
func (w *walker) use(e ast.Expr, name string, selected ast.SelectExpr, bound []string) {
	if slices.Contains(bound, name) {
		return
	}
	if len(name) > 0 && name[0] == '.' {
		name = name[1:]
	}
	for _, v := range variables {
		if v.Name != name {
			continue
		}
		set := v.set
		if selected != nil && selected.FieldName() == "name" {
			switch set {
			case varTool:
				set = varToolName
			case varServer:
				set = varServerName
			}
		}
		w.vars |= set
		w.uses = append(w.uses, use{name: name, set: set, offset: w.offset(e)})
		return
	}
}

// offset is where the node begins in the text, in bytes.
func (w *walker) offset(e ast.Expr) int {
	at, ok := w.tree.SourceInfo().GetOffsetRange(e.ID())
	if !ok {
		return 0
	}
	return byteOffset(w.text, int(at.Start))
}

// compare warns of a comparison with a word that the field never is, which would just be false for ever.
func (w *walker) compare(call ast.CallExpr, bound []string) {
	args := call.Args()
	if len(args) != 2 {
		return
	}
	field, literals := args[0], []ast.Expr{args[1]}
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals:
		if field.Kind() == ast.LiteralKind {
			field, literals = args[1], []ast.Expr{args[0]}
		}
	case operators.In:
		if args[1].Kind() != ast.ListKind {
			return
		}
		literals = args[1].AsList().Elements()
	default:
		return
	}
	if field.Kind() != ast.SelectKind || field.AsSelect().Operand().Kind() != ast.IdentKind {
		return
	}
	owner, name := field.AsSelect().Operand().AsIdent(), field.AsSelect().FieldName()
	words := wordsOf(owner, name)
	if words == nil || slices.Contains(bound, owner) {
		return
	}
	for _, l := range literals {
		if l.Kind() != ast.LiteralKind {
			continue
		}
		if s, ok := l.AsLiteral().(types.String); ok && !slices.Contains(words, string(s)) {
			hint := suggest(string(s), words)
			if hint == "" {
				hint = "it is one of " + strings.Join(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" }), ", ")
			}
			at := w.offset(l)
			w.warnings = append(w.warnings, issue{level: schema.Warning, id: "cel-never", offset: at, length: utf8.RuneCountInString(w.text[at:tokenEnd(w.text, at)]),
				message: fmt.Sprintf("%s.%s is never %q", owner, name, string(s)), hint: hint})
		}
	}
}

// wordsOf lists what the field can be, if that is known.
func wordsOf(owner, field string) []string {
	fields := map[string][]typedField{"tool": toolFields, "error": errorFields}[owner]
	for _, f := range fields {
		if f.Name == field {
			return f.words
		}
	}
	return nil
}

// pattern checks a regular expression that stands in the text.
func (w *walker) pattern(call ast.CallExpr) {
	args := call.Args()
	if !call.IsMemberFunction() && len(args) > 0 {
		args = args[1:]
	}
	if len(args) == 0 || args[0].Kind() != ast.LiteralKind {
		return
	}
	pattern, ok := args[0].AsLiteral().(types.String)
	if !ok {
		return
	}
	if err := checkPattern(string(pattern)); err != nil {
		at := w.offset(args[0])
		message, hint := strings.TrimPrefix(err.Error(), "error parsing regexp: "), "the syntax is RE2: no look-around, no back-references"
		w.issues = append(w.issues, issue{id: "cel-constant", offset: at, length: utf8.RuneCountInString(w.text[at:tokenEnd(w.text, at)]), message: "this regular expression cannot be used: " + message, hint: hint})
	}
}
