package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// scopes reports breakers and buckets that arguments make any number of, and breakers that count what is no failure of the server.
func (l *linter) scopes() {
	for r, s := range l.stating() {
		switch {
		case s.expr != nil && (s.ask == askBreakerScope || s.ask == askRateLimitKey):
			l.unbounded(r, s)
		case s.ask == askBreakerFailure:
			l.countsAnswers(s)
		}
	}
}

func (l *linter) unbounded(r *lintRule, s *lintSetting) {
	w := flow{tree: s.expr.tree, bound: map[string][]ast.Expr{}}
	if r.cond != nil {
		w.few = fewWhen(r.cond.tree, r.cond.expr, true)
	}
	var worst ast.Expr
	level := schema.Note
	for _, e := range w.sources(s.expr.tree.Expr(), w.bound, w.few) {
		many, known := l.manyValues(r, e)
		if known && !many {
			continue
		}
		if worst == nil || many && level == schema.Note {
			worst = e
		}
		if many {
			level = schema.Warning
		}
	}
	if worst == nil {
		return
	}
	what := strings.Join(selects(worst), ".")
	if what == "" {
		what = unparse(s.expr.tree, worst)
	}
	id, effect, hint := LintScopeUnbounded, "each value has a breaker of its own, of which hardly any counts to its threshold", `keep to a known set: when: `+what+` in ["…", "…"]`
	if s.ask == askRateLimitKey {
		id, effect = LintLimitUnbounded, "each value has a bucket of its own, so all together they are not limited"
	}
	if len(selects(worst)) < 2 {
		hint = "name one argument that has few values"
	}
	l.report(level, id, placeOf(s.text, s.expr.tree, worst), hint, "%s takes any value of %s: %s", s.decision(), what, effect)
}

// manyNames begin or end the names of arguments that can be anything.
var manyNames = []string{
	"query", "q", "text", "prompt", "url", "uri", "path", "file", "filename", "message", "content", "body", "sql", "id", "uuid", "email", "search", "input",
	"command", "code", "title", "description", "token", "key", "nonce", "timestamp", "date", "time", "subject", "name",
}

// manyValues reports whether a value that a call brings can be anything, and whether that is known.
func (l *linter) manyValues(r *lintRule, e ast.Expr) (many, known bool) {
	path := selects(e)
	if len(path) < 2 {
		return true, true // all of the arguments, or the time
	}
	if l.tools != nil && path[0] == "args" {
		found := false
		for _, sp := range l.covered(r) {
			at := l.schemaOf(sp)
			for _, name := range path[1:] {
				if at == nil {
					break
				}
				at = at.properties[name]
			}
			if at == nil {
				continue
			}
			found = true
			if !at.few {
				return true, true
			}
		}
		if found {
			return false, true
		}
	}
	name := strings.ToLower(path[len(path)-1])
	for _, n := range manyNames {
		if name == n || strings.HasSuffix(name, "_"+n) || n == "id" && strings.HasSuffix(path[len(path)-1], "Id") {
			return true, true
		}
	}
	return false, false
}

// flow finds what of a call reaches the value of an expression.
type flow struct {
	tree  *ast.AST
	bound map[string][]ast.Expr // what the variables that the expression binds come from
	few   []string              // texts of expressions that are known to have few values
}

func (w *flow) sources(e ast.Expr, bound map[string][]ast.Expr, few []string) []ast.Expr {
	if t := w.tree.GetType(e.ID()); t != nil && t.Kind() == types.BoolKind {
		return nil
	}
	if len(few) > 0 && slices.Contains(few, unparse(w.tree, e)) {
		return nil
	}
	if path := selects(e); path != nil {
		if from, ok := bound[path[0]]; ok {
			return from
		}
		switch path[0] {
		case "args", "meta", "now":
			return []ast.Expr{e}
		}
		return nil
	}
	var found []ast.Expr
	add := func(parts ...ast.Expr) {
		for _, part := range parts {
			found = append(found, w.sources(part, bound, few)...)
		}
	}
	switch e.Kind() {
	case ast.SelectKind:
		add(e.AsSelect().Operand())
	case ast.ListKind:
		add(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			add(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		if call.FunctionName() == operators.Conditional {
			found = append(found, w.sources(args[1], bound, append(slices.Clip(few), fewWhen(w.tree, args[0], true)...))...)
			return append(found, w.sources(args[2], bound, append(slices.Clip(few), fewWhen(w.tree, args[0], false)...))...)
		}
		if call.IsMemberFunction() {
			add(call.Target())
		}
		add(args...)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		inner := maps.Clone(bound)
		from := w.sources(c.IterRange(), bound, few)
		inner[c.IterVar()] = from
		if c.IterVar2() != "" {
			inner[c.IterVar2()] = from
		}
		inner[c.AccuVar()] = w.sources(c.AccuInit(), bound, few)
		if len(from) > 0 {
			inner[c.AccuVar()] = append(inner[c.AccuVar()], w.sources(c.LoopStep(), inner, few)...)
		}
		found = append(found, w.sources(c.Result(), inner, few)...)
	}
	return found
}

// fewWhen returns the texts of the expressions that can have but a few values where the condition is as wanted.
func fewWhen(tree *ast.AST, e ast.Expr, wanted bool) []string {
	if e.Kind() != ast.CallKind {
		return nil
	}
	args := e.AsCall().Args()
	switch op := e.AsCall().FunctionName(); op {
	case operators.LogicalNot:
		return fewWhen(tree, args[0], !wanted)
	case operators.LogicalAnd, operators.LogicalOr:
		a, b := fewWhen(tree, args[0], wanted), fewWhen(tree, args[1], wanted)
		if (op == operators.LogicalAnd) == wanted {
			return append(a, b...)
		}
		return slices.DeleteFunc(a, func(text string) bool { return !slices.Contains(b, text) })
	case operators.In:
		if wanted && args[1].Kind() == ast.ListKind {
			return []string{unparse(tree, args[0])}
		}
	case operators.Equals, operators.NotEquals:
		if (op == operators.Equals) != wanted {
			return nil
		}
		for i, arg := range args {
			if arg.Kind() == ast.LiteralKind {
				return []string{unparse(tree, args[1-i])}
			}
		}
	}
	return nil
}

// countsAnswers reports a rule by which every error that a tool answers with counts as a failure of the server.
func (l *linter) countsAnswers(s *lintSetting) {
	e := l.failure("tool", "answered")
	found := false
	spaces := append([]*space{l.any}, l.subjects...)
	for _, sp := range spaces {
		for state := range sp.states {
			for _, c := range l.contributions(askBreakerFailure, sp, state, e) {
				if c.setting == s && c.value&mayHold != 0 && l.trueForAnyText(c) {
					found = true
				}
			}
		}
	}
	if found {
		l.report(schema.Warning, LintBreakerAnswers, s.place(), "count only what says that the server is down: error.transient, or a text that says so",
			"counts every isError result as a failure of the server: a few wrong arguments shut out all its tools")
	}
}

// trueForAnyText reports whether the rule counts an error of a tool of which no more is known.
func (l *linter) trueForAnyText(c contribution) bool {
	return l.answered(c.rule.cond, mayFail)&mayHold != 0 && l.answered(c.setting.value, anything) == mayHold
}

// anAnswer is the result of a call that failed in the tool.
var anAnswer = []byte(`{"isError":true}`)

// answered is what a proposition comes to for a result with isError of which no more is known: a part that asks for more of it
// comes to unclear.
func (l *linter) answered(p *proposition, unclear truth) truth {
	if p == nil {
		return mayHold
	}
	e := l.failure("tool", "answered")
	return p.holds(func(f *leaf) truth {
		if f.vars&varResult == 0 {
			t := l.ask(f, l.any, 0, e)
			if t == anything && f.vars&varError != 0 {
				return unclear
			}
			return t
		}
		if f.content {
			return unclear
		}
		c := &l.call
		c.enter(0, anyTool, anAnswer, 1, 0)
		l.unknown = append(append(l.unknown[:0], unknownBefore...), unknownText...)
		l.unknown = append(l.unknown, unknownName, unknownTitle, unknownTool)
		t := f.eval(c, l.unknown)
		if t == anything {
			return unclear
		}
		return t
	})
}
