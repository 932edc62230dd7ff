package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/bentabol/mcp-retry/schema"
)

// arguments compares what expressions read of args with the inputSchemas of the tools that their rule covers.
func (l *linter) arguments() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.owner != "server" || r.dead {
			continue // what defaults say is for several servers
		}
		tools := l.covered(r)
		if len(tools) == 0 {
			continue
		}
		seen := map[string]bool{}
		var present paths
		if r.when != nil {
			g := guardWalk{}
			g.check(r.when.tree.Expr(), nil, nil)
			l.reads(r, nil, r.src.When, r.when.tree, g.found, tools, seen)
			present = presentIf(r.when.tree.Expr(), true, true)
		}
		for j := range r.settings {
			s := &r.settings[j]
			if s.expr != nil {
				g := guardWalk{}
				g.check(s.expr.tree.Expr(), present, nil)
				l.reads(r, s, s.text, s.expr.tree, g.found, tools, seen)
			}
			if s.expr == nil {
				for _, item := range l.dropped(s) {
					if item.args != nil {
						g := guardWalk{}
						g.check(item.args, present, nil)
						l.reads(r, s, item.text, item.tree, g.found, tools, seen)
					}
				}
			}
			l.droppedArguments(s)
		}
	}
}

// read is one look at an argument.
type read struct {
	expr   ast.Expr
	path   []string // args first
	safe   bool     // the expression does not fail if it is missing
	sought bool     // has() asks for its last step
}

func (l *linter) reads(r *lintRule, s *lintSetting, x *schema.Expr, tree *ast.AST, found []read, tools []*space, seen map[string]bool) {
	for _, rd := range found {
		at := make([]*argSchema, len(tools))
		for i, sp := range tools {
			at[i] = l.schemaOf(sp)
		}
		for step := 1; step < len(rd.path); step++ {
			name, full := rd.path[step], strings.Join(rd.path[:step+1], ".")
			var lacking, optional []string
			var candidates []string
			known, have := true, 0
			for i, sp := range tools {
				node := at[i]
				if node == nil {
					if step == 1 {
						known = false
					}
					continue
				}
				next, ok := node.properties[name]
				switch {
				case ok:
					have++
					if !node.required[name] {
						optional = append(optional, sp.name)
					}
				case node.open:
					known = false
				default:
					lacking = append(lacking, sp.name)
					for p := range node.properties {
						candidates = append(candidates, p)
					}
				}
				at[i] = next
			}
			if have == 0 && known && len(lacking) > 0 {
				l.noArgument(x, tree, &rd, step, full, lacking, sortedNames(candidates))
				break
			}
			last := step == len(rd.path)-1
			if !rd.safe && !(last && rd.sought) && len(optional)+len(lacking) > 0 && !seen[full] {
				seen[full] = true
				l.unguarded(r, s, placeOf(x, tree, rd.expr), full, sortedNames(append(optional, lacking...)))
				break
			}
		}
	}
}

func (l *linter) noArgument(x *schema.Expr, tree *ast.AST, rd *read, step int, full string, tools, candidates []string) {
	pos := placeOf(x, tree, rd.expr)
	// The caret goes under the step, which stands behind its dot.
	start, end := span(x.Text, tree, rd.expr)
	if i := strings.LastIndex(x.Text[start:end], rd.path[step]); i >= 0 && step == len(rd.path)-1 {
		pos = placeSpan(x, start+i, start+i+len(rd.path[step]))
	} else if i := strings.Index(x.Text[start:end], "."+rd.path[step]); i >= 0 {
		pos = placeSpan(x, start+i+1, start+i+1+len(rd.path[step]))
	}
	l.report(schema.Warning, LintNoArgument, pos, argumentHint(rd.path[step], candidates), "%s no argument %q", haveWords(tools), strings.TrimPrefix(full, "args."))
}

// argumentHint says what a name may have been meant to be.
func argumentHint(name string, candidates []string) string {
	if hint := suggest(name, candidates); hint != "" {
		return hint
	}
	if len(candidates) == 0 {
		return "it takes none"
	}
	return "there are " + listed(candidates)
}

// haveWords names tools with their verb.
func haveWords(tools []string) string {
	tools = sortedNames(tools)
	if len(tools) == 1 {
		return listed(tools) + " has"
	}
	return listed(tools) + " have"
}

func (l *linter) unguarded(r *lintRule, s *lintSetting, pos schema.Pos, full string, tools []string) {
	level, effect := schema.Warning, "the rule is passed over"
	if s != nil {
		switch {
		case s.required:
			return // a call without it is refused, as the rule says
		case s.ask == askDeny:
			level, effect = schema.Note, "the call is refused"
		default:
			effect = string(s.decision()) + " falls to its careful side"
		}
	}
	parent, name := full[:strings.LastIndexByte(full, '.')], full[strings.LastIndexByte(full, '.')+1:]
	l.report(level, LintArgUnguarded, pos, "write has("+full+") && …, or "+parent+".?"+name+".orValue(…)",
		"a call of %s may leave out %s: then the expression fails, and %s", listed(tools), full, effect)
}

// paths are arguments that are known to be present.
type paths []string

func (p paths) has(path []string) bool {
	full := strings.Join(path, ".")
	return slices.ContainsFunc(p, func(known string) bool { return known == full || strings.HasPrefix(known, full+".") })
}

// guardWalk finds the reads of arguments and whether each is guarded. CEL's && and || forgive the failure of one side if the other
// decides, so a guard counts on whichever side it stands.
type guardWalk struct{ found []read }

func (g *guardWalk) check(e ast.Expr, present paths, bound []string) {
	if path := selects(e); path != nil {
		g.read(e, path, present, bound)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		g.check(e.AsSelect().Operand(), present, bound)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			g.check(item, present, bound)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			g.check(entry.AsMapEntry().Key(), present, bound)
			g.check(entry.AsMapEntry().Value(), present, bound)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		g.check(c.IterRange(), present, bound)
		g.check(c.AccuInit(), present, bound)
		inner := append(slices.Clip(bound), c.IterVar(), c.IterVar2(), c.AccuVar())
		g.check(c.LoopCondition(), present, inner)
		g.check(c.LoopStep(), present, inner)
		g.check(c.Result(), present, inner)
	case ast.CallKind:
		g.call(e, present, bound)
	}
}

func (g *guardWalk) call(e ast.Expr, present paths, bound []string) {
	call := e.AsCall()
	args := call.Args()
	with := func(more ...paths) paths {
		all := slices.Clip(present)
		for _, m := range more {
			all = append(all, m...)
		}
		return all
	}
	switch op := call.FunctionName(); op {
	case operators.LogicalAnd, operators.LogicalOr:
		wanted := op == operators.LogicalAnd
		g.check(args[0], with(presentIf(args[1], wanted, false)), bound)
		g.check(args[1], with(presentIf(args[0], wanted, true)), bound)
		return
	case operators.Conditional:
		g.check(args[0], present, bound)
		g.check(args[1], with(presentIf(args[0], true, true)), bound)
		g.check(args[2], with(presentIf(args[0], false, true)), bound)
		return
	}
	if call.IsMemberFunction() {
		g.check(call.Target(), present, bound)
	}
	for _, arg := range args {
		g.check(arg, present, bound)
	}
}

func (g *guardWalk) read(e ast.Expr, path []string, present paths, bound []string) {
	if path[0] != "args" || len(path) < 2 || slices.Contains(bound, "args") {
		return
	}
	g.found = append(g.found, read{expr: e, path: path, safe: present.has(path) || optional(e), sought: isTest(e)})
}

func isTest(e ast.Expr) bool { return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() }

// optional reports whether a path has a step with a question mark: a.?b, a[?"b"].
func optional(e ast.Expr) bool {
	switch e.Kind() {
	case ast.SelectKind:
		return optional(e.AsSelect().Operand())
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case operators.OptIndex, operators.OptSelect:
			return true
		}
		return optional(e.AsCall().Args()[0])
	}
	return false
}

// presentIf returns the arguments that are present if the condition comes to wanted. With reads also those that it reads itself: it
// would have failed without them.
func presentIf(e ast.Expr, wanted, reads bool) paths {
	var found paths
	if isTest(e) {
		if path := selects(e); path != nil && wanted {
			return paths{strings.Join(path, ".")}
		}
		return nil
	}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		args := call.Args()
		switch op := call.FunctionName(); op {
		case operators.LogicalNot:
			return presentIf(args[0], !wanted, reads)
		case operators.LogicalAnd, operators.LogicalOr:
			a, b := presentIf(args[0], wanted, reads), presentIf(args[1], wanted, reads)
			if (op == operators.LogicalAnd) == wanted {
				return append(a, b...)
			}
			return slices.DeleteFunc(a, func(p string) bool { return !slices.Contains(b, p) })
		case operators.Conditional:
			return nil
		case operators.In:
			if name, ok := stringLiteral(args[0]); ok && wanted {
				if path := selects(args[1]); path != nil {
					found = append(found, strings.Join(append(path, name), "."))
				}
			}
		case "hasValue":
			if path := selects(call.Target()); path != nil && wanted {
				found = append(found, strings.Join(path, "."))
			}
		}
	}
	if reads {
		g := guardWalk{}
		g.check(e, nil, nil)
		for _, rd := range g.found {
			if !rd.safe && !rd.sought {
				found = append(found, strings.Join(rd.path, "."))
			}
		}
	}
	return found
}
