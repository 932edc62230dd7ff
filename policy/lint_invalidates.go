package policy

import (
	"github.com/google/cel-go/common/ast"

	"github.com/bentabol/mcp-retry/schema"
)

// drop is an item of an invalidates, as far as it stands in the text.
type drop struct {
	pos  schema.Pos // of the tool
	tool string     // "" = it depends on the call

	args ast.Expr // a map, or what comes to one; nil = whatever the arguments
	tree *ast.AST // that args stands in
	text *schema.Expr
}

// dropped lists the items of an invalidates.
func (l *linter) dropped(s *lintSetting) []drop {
	if s.ask != askInvalidates {
		return nil
	}
	if s.expr != nil {
		return itemsOf(s.text, s.expr.tree)
	}
	list, _ := s.literal.([]invalidation)
	places, _ := s.src.Literal.([]schema.Invalidation)
	var out []drop
	for i, item := range list {
		d := drop{pos: s.place(), tool: item.tool, text: item.text}
		if i < len(places) {
			d.pos = places[i].Pos
		}
		if item.whole != nil {
			d.args, d.tree = item.whole.tree.Expr(), item.whole.tree
		}
		out = append(out, d)
	}
	return out
}

// itemsOf finds the items that an expression lists.
func itemsOf(x *schema.Expr, tree *ast.AST) []drop {
	var out []drop
	for _, branch := range branches(tree.Expr()) {
		if branch.Kind() != ast.ListKind {
			continue
		}
		for _, item := range branch.AsList().Elements() {
			d := drop{pos: placeOf(x, tree, item), tree: tree, text: x}
			if name, ok := stringLiteral(item); ok {
				d.tool = name
			}
			for name, value := range members(item) {
				switch text, ok := stringLiteral(value); {
				case name == "tool" && ok:
					d.tool, d.pos = text, placeOf(x, tree, value)
				case name == "args":
					d.args = value
				}
			}
			out = append(out, d)
		}
	}
	return out
}

// members are those of a map that stands in an expression, by the names that stand there.
func members(e ast.Expr) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	if e.Kind() == ast.MapKind {
		for _, entry := range e.AsMap().Entries() {
			if name, ok := stringLiteral(entry.AsMapEntry().Key()); ok {
				found[name] = entry.AsMapEntry().Value()
			}
		}
	}
	return found
}

// droppedArguments reports arguments by which results of tools are dropped that do not have them: none is found then.
func (l *linter) droppedArguments(s *lintSetting) {
	for _, item := range l.dropped(s) {
		if item.args == nil || item.args.Kind() != ast.MapKind || item.tool == "" {
			continue
		}
		var tools []*space
		for _, sp := range l.subjects {
			if Match(item.tool, sp.name) {
				tools = append(tools, sp)
			}
		}
		for _, entry := range item.args.AsMap().Entries() {
			if name, ok := stringLiteral(entry.AsMapEntry().Key()); ok {
				l.noSuchArgument(item, entry.AsMapEntry().Key(), name, tools)
			}
		}
	}
}

func (l *linter) noSuchArgument(item drop, key ast.Expr, name string, tools []*space) {
	var lacking, candidates []string
	for _, sp := range tools {
		node := l.schemaOf(sp)
		if node == nil || node.open || node.properties[name] != nil {
			return
		}
		lacking = append(lacking, sp.name)
		for p := range node.properties {
			candidates = append(candidates, p)
		}
	}
	if len(lacking) > 0 {
		l.report(schema.Warning, LintNoArgument, placeOf(item.text, item.tree, key), argumentHint(name, sortedNames(candidates)), "%s no argument %q", haveWords(lacking), name)
	}
}
