package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxStaticName is the longest name, in bytes, that a pattern is matched with outside of CEL, which would count the cost.
const maxStaticName = 1 << 10

// A static is what can be said of a condition from the tool alone: the condition, taken apart at its &&, ||, ! and ?:, with the
// comparisons of tool.* and server.name with constants as leaves. The rest is unknown. nil says nothing.
//
// It decides as CEL does, where a false operand of && (a true one of ||) decides whatever the other comes to, be it an error.
type static struct {
	op    string // operator, or "" for a leaf
	kids  []*static
	field string // of a leaf: "name", "effects", …; "server" is the server's name
	test  func(value string) verdict
}

// learned is what is known of a tool before any call of it.
type learned struct {
	tool   Tool   // its name and, if hinted, its hints
	server string // the server's name
	hinted bool
	// effects, if not "", is what expressions see.
	effects string
	// otherEffects says that they are others than the rules have decided.
	otherEffects bool
	// used are the fields that were asked for: whether the answer would be another one for a tool with other hints or effects.
	usedHints, usedEffects bool
}

// value is a field's value; false if it is not known.
func (l *learned) value(field string) (string, bool) {
	switch field {
	case "name":
		return l.tool.Name, true
	case "server":
		return l.server, true
	case "effects":
		l.usedEffects = true
		return l.effects, l.effects != ""
	}
	l.usedHints = true
	hint := false
	switch field {
	case "annotated":
		hint = l.tool.Annotated
	case "readOnly":
		hint = l.tool.ReadOnly
	case "destructive":
		hint = l.tool.Destructive
	case "idempotent":
		hint = l.tool.Idempotent
	case "openWorld":
		hint = l.tool.OpenWorld
	default:
		return "", false
	}
	if hint {
		return "true", l.hinted
	}
	return "false", l.hinted
}

// of is what the condition comes to for every call of the tool, or unasked if that depends on the call. In order means that
// nothing unknown stands before what decides: of an expression that is counted, evaluating it could exceed the limit.
func (s *static) of(l *learned, inOrder bool) verdict {
	if s == nil {
		return unasked
	}
	switch s.op {
	case operators.LogicalAnd:
		return s.decidedBy(fails, l, inOrder)
	case operators.LogicalOr:
		return s.decidedBy(holds, l, inOrder)
	case operators.LogicalNot:
		return s.kids[0].of(l, inOrder).not()
	case operators.Conditional:
		switch s.kids[0].of(l, inOrder) {
		case holds:
			return s.kids[1].of(l, inOrder)
		case fails:
			return s.kids[2].of(l, inOrder)
		}
		return unasked
	}
	value, known := l.value(s.field)
	if !known {
		return unasked
	}
	return s.test(value)
}

// decidedBy is && or ||: one operand that comes to the given verdict is enough.
func (s *static) decidedBy(enough verdict, l *learned, inOrder bool) verdict {
	all := enough.not()
	for _, kid := range s.kids {
		switch v := kid.of(l, inOrder); {
		case v == enough:
			return v
		case v == unasked && inOrder:
			return v
		case v == unasked:
			all = unasked
		}
	}
	return all
}

func (v verdict) not() verdict {
	switch v {
	case holds:
		return fails
	case fails:
		return holds
	}
	return unasked
}

// newStatic takes a condition apart; nil if the tool alone says nothing of it.
func newStatic(e ast.Expr) *static {
	switch e.Kind() {
	case ast.LiteralKind:
		b, ok := e.AsLiteral().(types.Bool)
		if !ok {
			return nil
		}
		return &static{field: "name", test: func(string) verdict { return verdictOf(bool(b)) }}
	case ast.SelectKind:
		field, ok := staticField(e)
		if !ok {
			return nil
		}
		return &static{field: field, test: func(v string) verdict { return verdictOf(v == "true") }}
	case ast.CallKind:
	default:
		return nil
	}
	call := e.AsCall()
	switch op := call.FunctionName(); op {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
		s, known := &static{op: op}, false
		for _, arg := range call.Args() {
			kid := newStatic(arg)
			known = known || kid != nil
			s.kids = append(s.kids, kid)
		}
		if !known {
			return nil
		}
		return s
	}
	return newComparison(call)
}

func verdictOf(b bool) verdict {
	if b {
		return holds
	}
	return fails
}

// newComparison is a call that compares a field with constants; nil for any other.
func newComparison(call ast.CallExpr) *static {
	args := slices.Clone(call.Args())
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	if len(args) != 2 {
		return nil
	}
	name := call.FunctionName()
	if (name == operators.Equals || name == operators.NotEquals) && args[0].Kind() == ast.LiteralKind {
		args[0], args[1] = args[1], args[0]
	}
	field, ok := staticField(args[0])
	if !ok {
		return nil
	}
	if name == operators.In {
		return oneOf(field, args[1])
	}
	word, ok := constantText(args[1])
	if !ok {
		return nil
	}
	var test func(string) verdict
	switch name {
	case operators.Equals:
		test = func(v string) verdict { return verdictOf(v == word) }
	case operators.NotEquals:
		test = func(v string) verdict { return verdictOf(v != word) }
	case "startsWith":
		test = func(v string) verdict { return verdictOf(strings.HasPrefix(v, word)) }
	case "endsWith":
		test = func(v string) verdict { return verdictOf(strings.HasSuffix(v, word)) }
	case "contains":
		test = func(v string) verdict { return verdictOf(strings.Contains(v, word)) }
	case "glob":
		test = func(v string) verdict { return verdictOf(Match(word, v)) }
	case "matches":
		re, err := regexp.Compile(word)
		if err != nil {
			return nil
		}
		test = func(v string) verdict {
			if len(v) > maxStaticName {
				return unasked
			}
			return verdictOf(re.MatchString(v))
		}
	default:
		return nil
	}
	return &static{field: field, test: test}
}

// oneOf is a field in a list of constants.
func oneOf(field string, list ast.Expr) *static {
	if list.Kind() != ast.ListKind {
		return nil
	}
	words := map[string]bool{}
	for _, item := range list.AsList().Elements() {
		word, ok := constantText(item)
		if !ok {
			return nil
		}
		words[word] = true
	}
	return &static{field: field, test: func(v string) verdict { return verdictOf(words[v]) }}
}

// staticField is the field that an expression reads, if it is one that is the same for every call of a tool.
func staticField(e ast.Expr) (string, bool) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().Operand().Kind() != ast.IdentKind {
		return "", false
	}
	field := e.AsSelect().FieldName()
	switch e.AsSelect().Operand().AsIdent() {
	case "server":
		return "server", field == "name"
	case "tool":
		return field, field != "title"
	}
	return "", false
}

// constantText is the text of a literal string or bool.
func constantText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return string(v), true
	case types.Bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}
