package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// keys reports keys that are equal for calls that differ, or never equal.
func (l *linter) keys() {
	for r, s := range l.stating() {
		if s.ask != askIdempotencyKey && s.ask != askCacheKey {
			continue
		}
		if s.expr == nil {
			if key, ok := s.literal.(keyLiteral); ok && key.answer == keyStated {
				l.keyConstant(r, s, "every call")
			}
			continue
		}
		k := keyParts{tree: s.expr.tree}
		k.walk(s.expr.tree.Expr())
		if len(k.dynamic) == 0 {
			whose := "every call of a tool"
			if s.expr.vars&varClient != 0 {
				whose += " by a client"
			}
			if s.expr.vars&(varArgs|varMeta|varNow) == 0 {
				l.keyConstant(r, s, whose)
			}
			continue
		}
		l.keyVolatile(s, &k)
		l.keyConcat(s, &k)
	}
}

func (l *linter) keyConstant(r *lintRule, s *lintSetting, whose string) {
	if l.tools != nil && !l.takesArguments(r) {
		return // there is nothing to tell calls apart by
	}
	effect := "the first one's result answers all others"
	if s.ask == askCacheKey {
		effect = "they all get the answer of the first, whatever their arguments"
	}
	l.report(schema.Warning, LintKeyConstant, s.place(), "name what makes two calls the same: [args.order, args.amount]", "%s is the same for %s: %s", s.decision(), whose, effect)
}

// takesArguments reports whether any tool that the rule may cover has an argument, as far as their schemas tell.
func (l *linter) takesArguments(r *lintRule) bool {
	for _, sp := range l.covered(r) {
		if props := l.schemaOf(sp); props == nil || props.open || len(props.properties) > 0 {
			return true
		}
	}
	return false
}

// keyParts are the parts of an expression that its value is made of. What only decides between values is none.
type keyParts struct {
	tree    *ast.AST
	dynamic []ast.Expr // what depends on the call: paths into args and meta, and now
	joins   []ast.Expr // outermost texts that are joined of several
}

func (k *keyParts) walk(e ast.Expr) {
	if t := k.tree.GetType(e.ID()); t != nil && t.Kind() == types.BoolKind && e.Kind() != ast.LiteralKind && selects(e) == nil {
		return
	}
	if path := selects(e); path != nil {
		switch path[0] {
		case "args", "meta", "now":
			k.dynamic = append(k.dynamic, e)
		}
		return
	}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		if call.FunctionName() == operators.Conditional {
			k.walk(call.Args()[1])
			k.walk(call.Args()[2])
			return
		}
		if name := call.FunctionName(); strings.HasPrefix(name, "get") && call.IsMemberFunction() && name != "getSeconds" && name != "getMilliseconds" {
			return // the day or hour of a time: one key for each is meant
		}
		if len(joined(e)) > 1 {
			k.joins = append(k.joins, e)
			inner := keyParts{tree: k.tree}
			inner.descend(e)
			k.dynamic = append(k.dynamic, inner.dynamic...)
			return
		}
	}
	k.descend(e)
}

func (k *keyParts) descend(e ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			k.walk(e.AsSelect().Operand())
		}
	case ast.CallKind:
		if call := e.AsCall(); call.IsMemberFunction() {
			k.walk(call.Target())
		}
		for _, arg := range e.AsCall().Args() {
			k.walk(arg)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			k.walk(item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			k.walk(entry.AsMapEntry().Key())
			k.walk(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopStep(), c.Result()} {
			k.walk(part)
		}
	}
}

// joined returns the parts of a text that depend on the arguments: of a chain of +, of format and of join.
func joined(e ast.Expr) []ast.Expr {
	var parts []ast.Expr
	take := func(list []ast.Expr) {
		for _, part := range list {
			if dependsOnCall(part) {
				parts = append(parts, part)
			}
		}
	}
	call := e.AsCall()
	switch {
	case call.FunctionName() == operators.Add:
		operands := summands(e)
		if slices.ContainsFunc(operands, func(o ast.Expr) bool { return o.Kind() == ast.ListKind }) {
			return nil // lists that are put one behind the other
		}
		take(operands)
	case call.FunctionName() == "format" && call.IsMemberFunction() && len(call.Args()) == 1 && call.Args()[0].Kind() == ast.ListKind:
		take(call.Args()[0].AsList().Elements())
	case call.FunctionName() == "join" && call.IsMemberFunction() && call.Target().Kind() == ast.ListKind:
		take(call.Target().AsList().Elements())
	}
	return parts
}

func summands(e ast.Expr) []ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Add {
		return append(summands(e.AsCall().Args()[0]), summands(e.AsCall().Args()[1])...)
	}
	return []ast.Expr{e}
}

// dependsOnCall reports whether a text varies in length with the call. A hash does not.
func dependsOnCall(e ast.Expr) bool {
	found := false
	visit(e, func(e ast.Expr) bool {
		if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "hash" {
			return false
		}
		if e.Kind() == ast.IdentKind {
			switch e.AsIdent() {
			case "args", "meta", "client", "now":
				found = true
			}
		}
		return !found
	})
	return found
}

// newForEachCall are the names of fields whose values are no part of what a call is about, in lower case and without joints.
var newForEachCall = []string{
	"nonce", "timestamp", "ts", "unixtime", "currenttime", "random", "rand", "salt", "sentat", "requesttime", "requestedat",
	"progresstoken", "traceid", "spanid", "trace", "traceparent", "tracestate",
}

// idOfCall are those that name the call. As the whole key they may be what is meant.
var idOfCall = []string{"requestid", "reqid", "correlationid", "callid", "uuid", "guid"}

func plainName(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(s))
}

func (l *linter) keyVolatile(s *lintSetting, k *keyParts) {
	for _, e := range k.dynamic {
		path := selects(e)
		name := plainName(path[len(path)-1])
		level := schema.Warning
		switch {
		case path[0] == "now" || slices.Contains(newForEachCall, name):
		case len(path) > 1 && slices.Contains(idOfCall, name):
			if len(k.dynamic) == 1 && s.ask == askIdempotencyKey {
				level = schema.Note
			}
		case path[0] == "meta" && len(path) == 1:
		default:
			continue
		}
		what := strings.Join(path, ".")
		if path[0] == "meta" && len(path) == 1 {
			what = "meta (it holds the progress token)"
		}
		effect := "no repeat is recognized"
		if s.ask == askCacheKey {
			effect = "nothing is ever found in the cache"
		}
		hint := "leave it out of the key"
		if level == schema.Note {
			hint = "it does its work only if the caller sends the same one again"
		}
		l.report(level, LintKeyVolatile, placeOf(s.text, s.expr.tree, e), hint, "%s is new for each call, so %s", what, effect)
		return
	}
}

func (l *linter) keyConcat(s *lintSetting, k *keyParts) {
	for _, e := range k.joins {
		parts := joined(e)
		texts := make([]string, len(parts))
		for i, part := range parts {
			if part.Kind() == ast.CallKind && part.AsCall().FunctionName() == "string" && len(part.AsCall().Args()) == 1 {
				part = part.AsCall().Args()[0] // a list takes it as it is
			}
			start, end := span(s.text.Text, s.expr.tree, part)
			texts[i] = strings.Join(strings.Fields(s.text.Text[start:end]), " ")
		}
		l.report(schema.Warning, LintKeyConcat, placeOf(s.text, s.expr.tree, e), fmt.Sprintf("write a list: [%s]", strings.Join(texts, ", ")),
			`joined to one text, values that differ can be equal ("a" + "bc" is "ab" + "c")`)
	}
}
