package policy

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// atom is a leaf that asks one thing of one value, its subject, by constants alone: tool.name == "pay", attempt > 3,
// args.dry_run. Atoms of one subject are not independent, which is what makes conditions out of them contradict themselves.
type atom struct {
	subject string // its text
	kind    subjectKind
	safe    bool // reading the subject never fails
	op      string
	texts   []string
	numbers []float64 // durations in nanoseconds
	bools   []bool
	pattern *regexp.Regexp
}

// subjectKind says what a subject can be.
type subjectKind uint8

const (
	anyKind subjectKind = iota
	boolKind
	textKind
	intKind
	realKind
)

// Operators of atoms beside those of CEL.
const (
	opTruth  = "" // the subject itself is the condition
	opPrefix = "startsWith"
	opSuffix = "endsWith"
	opInfix  = "contains"
	opGlob   = "glob"
	opRegexp = "matches"
)

// most is how large a number can be that float64 holds exactly.
const most = 1 << 53

// atomOf takes a leaf apart; what has no simpler form is the subject itself. nil = it has no text to know it again by.
func atomOf(tree *ast.AST, e ast.Expr) *atom {
	if e.Kind() == ast.CallKind {
		if a := constantComparison(tree, e.AsCall()); a != nil {
			return a
		}
	}
	return about(tree, e, atom{op: opTruth})
}

// about completes an atom by its subject.
func about(tree *ast.AST, e ast.Expr, a atom) *atom {
	if a.subject = unparse(tree, e); a.subject == "" {
		return nil
	}
	a.safe = readsSafely(e)
	if t := tree.GetType(e.ID()); t != nil {
		switch t.Kind() {
		case types.BoolKind:
			a.kind = boolKind
		case types.StringKind:
			a.kind = textKind
		case types.IntKind, types.UintKind:
			a.kind = intKind
		case types.DoubleKind, types.DurationKind:
			a.kind = realKind
		}
	}
	return &a
}

func constantComparison(tree *ast.AST, call ast.CallExpr) *atom {
	args := call.Args()
	op := call.FunctionName()
	switch {
	case call.IsMemberFunction():
		if len(args) != 1 || !slices.Contains([]string{opPrefix, opSuffix, opInfix, opRegexp}, op) {
			return nil
		}
		text, ok := stringLiteral(args[0])
		if !ok {
			return nil
		}
		a := atom{op: op, texts: []string{text}}
		if op == opRegexp {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return nil
			}
			a.pattern = pattern
		}
		return about(tree, call.Target(), a)
	case op == opGlob && len(args) == 2:
		text, ok := stringLiteral(args[1])
		if !ok {
			return nil
		}
		return about(tree, args[0], globAtom(text))
	case op == operators.In && args[1].Kind() == ast.ListKind:
		a := atom{op: op}
		for _, item := range args[1].AsList().Elements() {
			if !a.take(item) {
				return nil
			}
		}
		return about(tree, args[0], a)
	case len(args) == 2 && (op == operators.Equals || op == operators.NotEquals || ordering[op] != ""):
		subject, constant := args[0], args[1]
		a := atom{op: op}
		if !a.take(constant) {
			subject, constant = constant, subject
			if !a.take(constant) {
				return nil
			}
			if ordering[op] != "" {
				a.op = ordering[op]
			}
		}
		if ordering[op] != "" && len(a.numbers) == 0 {
			return nil
		}
		return about(tree, subject, a)
	}
	return nil
}

// ordering gives an operator with its sides exchanged.
var ordering = map[string]string{
	operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
	operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
}

// globAtom is the simplest atom that says what a glob does.
func globAtom(glob string) atom {
	plain := func(s string) bool { return !strings.ContainsAny(s, "*?") }
	switch inner := strings.Trim(glob, "*"); {
	case plain(glob):
		return atom{op: operators.Equals, texts: []string{glob}}
	case !plain(inner):
	case strings.HasPrefix(glob, "*") && strings.HasSuffix(glob, "*"):
		return atom{op: opInfix, texts: []string{inner}}
	case strings.HasSuffix(glob, "*"):
		return atom{op: opPrefix, texts: []string{inner}}
	default:
		return atom{op: opSuffix, texts: []string{inner}}
	}
	return atom{op: opGlob, texts: []string{glob}}
}

// take adds a constant that the subject is compared with; false = it is none.
func (a *atom) take(e ast.Expr) bool {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "duration" && len(e.AsCall().Args()) == 1 {
		text, _ := stringLiteral(e.AsCall().Args()[0])
		d, err := time.ParseDuration(text)
		return err == nil && a.number(float64(d))
	}
	if e.Kind() != ast.LiteralKind {
		return false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		a.texts = append(a.texts, string(v))
	case types.Bool:
		a.bools = append(a.bools, bool(v))
	case types.Int:
		return a.number(float64(v))
	case types.Uint:
		return a.number(float64(v))
	case types.Double:
		return a.number(float64(v))
	default:
		return false
	}
	return true
}

func (a *atom) number(f float64) bool {
	a.numbers = append(a.numbers, f)
	return math.Abs(f) < most
}

// readsSafely reports whether an expression never fails: a field of a variable that always is there.
func readsSafely(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() != "result"
	case ast.SelectKind:
		operand := e.AsSelect().Operand()
		return operand.Kind() == ast.IdentKind && operand.AsIdent() != "result" && (facets[operand.AsIdent()] != nil && e.AsSelect().FieldName() != "data" ||
			operand.AsIdent() == "client" || operand.AsIdent() == "server" || e.AsSelect().IsTestOnly())
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case "size", "lowerAscii", "upperAscii", "trim":
			if call.IsMemberFunction() {
				return readsSafely(call.Target())
			}
			return len(call.Args()) == 1 && readsSafely(call.Args()[0])
		}
	}
	return false
}
