package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"

	"github.com/bentabol/mcp-retry/schema"
)

// names reports globs and names that match no tool of the snapshot, and rules that hold for none. What the defaults section states is
// for several servers, and need not fit each of them.
func (l *linter) names() {
	seen := map[string]bool{}
	for i := range l.rules {
		r := &l.rules[i]
		if r.owner != "server" {
			continue
		}
		if r.tools != "" {
			if !l.exists(r.tools) {
				r.dead = true
				if !seen[r.tools] {
					seen[r.tools] = true
					l.noTool(r.src.ToolsAt, r.tools)
				}
				continue
			}
		}
		missing := l.literalNames(r)
		if r.cond != nil && !r.dead && !missing && len(l.tools) > 0 && len(l.covered(r)) == 0 {
			r.dead = true
			l.report(schema.Warning, LintDeadRule, whole(r.src.When), "mcp-retry snapshot shows what the server says of its tools", "the condition of rule %q holds for none of the %d tools of the server", r.name, len(l.tools))
		}
	}
	f := &l.server.ToolFilter
	for i, glob := range f.Allow {
		l.filtered(seen, "allow", glob, f.AllowPos, i)
	}
	for i, glob := range f.Deny {
		l.filtered(seen, "deny", glob, f.DenyPos, i)
	}
}

func (l *linter) filtered(seen map[string]bool, list, glob string, places []schema.Pos, i int) {
	if l.exists(glob) || seen[glob] {
		return
	}
	seen[glob] = true
	pos := l.server.Pos
	if i < len(places) {
		pos = places[i]
	}
	l.report(schema.Warning, LintNoTool, pos, l.nearestTool(glob), "tool_filter.%s: %q matches no tool of the server", list, glob)
}

// literalNames looks at the names that stand in the expressions of a rule, and in its invalidates.
func (l *linter) literalNames(r *lintRule) (missing bool) {
	look := func(x *schema.Expr, tree *ast.AST) {
		visit(tree.Expr(), func(e ast.Expr) bool {
			for _, n := range namesIn(e) {
				if !l.exists(n.match) {
					missing = true
					l.noTool(placeOf(x, tree, n.expr), n.text)
				}
			}
			return true
		})
	}
	if r.when != nil {
		look(r.src.When, r.when.tree)
	}
	for i := range r.settings {
		s := &r.settings[i]
		if s.expr != nil {
			look(s.text, s.expr.tree)
		}
		for _, item := range l.dropped(s) {
			if item.args != nil && s.expr == nil {
				look(item.text, item.tree)
			}
			if item.tool != "" && !l.exists(item.tool) {
				l.report(schema.Warning, LintNoTool, item.pos, l.nearestTool(item.tool), "invalidates: %q matches no tool of the server", item.tool)
			}
		}
	}
	return missing
}

func (l *linter) noTool(pos schema.Pos, name string) {
	l.report(schema.Warning, LintNoTool, pos, l.nearestTool(name), "%q matches no tool of the server", name)
}

func (l *linter) exists(glob string) bool {
	for i := range l.tools {
		if Match(glob, l.tools[i].Name) {
			return true
		}
	}
	return false
}

// nearestTool is a hint that names the tool most like the name.
func (l *linter) nearestTool(name string) string {
	names := make([]string, len(l.tools))
	for i := range l.tools {
		names[i] = l.tools[i].Name
	}
	if hint := suggest(strings.Trim(name, "*"), names); hint != "" {
		return hint
	}
	if near := nearestGlob(name, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if plain := strings.Trim(name, "*?_-"); len(plain) > 2 {
		for _, n := range names {
			if strings.Contains(strings.ToLower(n), strings.ToLower(plain)) {
				return fmt.Sprintf("did you mean %q?", n)
			}
		}
	}
	switch {
	case len(names) == 0:
		return "the server has no tools"
	default:
		return "it has " + listed(sortedNames(names))
	}
}

// nearestGlob corrects what stands before the first star of a glob so that it fits a tool; "" = nothing is near.
func nearestGlob(glob string, names []string) string {
	i := strings.IndexAny(glob, "*?")
	if i < 3 {
		return ""
	}
	prefix, best, bestScore := glob[:i], "", 2*(1+i/3)
	for _, name := range names {
		for n := i - 2; n <= i+2 && n <= len(name); n++ {
			corrected := name[:n] + glob[i:]
			score := 2 * distance(prefix, name[:n], 1+i/3)
			if name[n-1] != prefix[i-1] {
				score++ // rather one that ends alike, at a joint
			}
			if score < bestScore && Match(corrected, name) {
				best, bestScore = corrected, score
			}
		}
	}
	return best
}

// covered lists the tools of the snapshot for which the rule may hold.
func (l *linter) covered(r *lintRule) []*space {
	if !r.tried {
		r.tried = true
		for _, sp := range l.subjects {
			if (r.tools == "" || Match(r.tools, sp.name)) && l.mayCover(r, sp) {
				r.covered = append(r.covered, sp)
			}
		}
	}
	return r.covered
}

func (l *linter) mayCover(r *lintRule, sp *space) bool {
	if r.cond == nil {
		return true
	}
	failures := 1
	if r.when.vars&varError != 0 {
		failures = sp.errs
	}
	for state := range sp.states {
		for e := range failures {
			if l.conditionAt(r, sp, state, e)&mayHold != 0 {
				return true
			}
		}
	}
	return false
}
