package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// maxSubjects bounds the tools that are looked at one by one without a snapshot.
const maxSubjects = 200

// nobody is the name of a tool that no rule names.
const nobody = "a tool of any other name"

// statedEffects are the effects that a tool of the server can have at all: those of annotations, if they count, and those that rules state.
func (l *linter) statedEffects() effectsSet {
	if l.server.TrustAnnotations {
		return anyEffects
	}
	set := onlyUnsafe
	for i := range l.rules {
		for j := range l.rules[i].settings {
			if s := &l.rules[i].settings[j]; s.ask == askEffects {
				if word, ok := s.literal.(string); ok && s.expr == nil {
					set |= effectsOf(word)
				} else {
					return anyEffects
				}
			}
		}
	}
	return set
}

// makeSubjects chooses the tools that are looked at one by one.
func (l *linter) makeSubjects() {
	if l.tools != nil {
		for i := range l.tools {
			t := &l.tools[i]
			if l.filteredOut(t.Name) {
				continue // no call of it arrives
			}
			effects, _ := l.effectsFor(t.Name, effectsOf(t.AnnotatedEffects(l.server.TrustAnnotations)), t)
			l.subjects = append(l.subjects, l.newSpace(t.Name, true, effects, t))
		}
		return
	}
	effects, _ := l.effectsFor(nobody, l.any.effects(), nil)
	l.other = l.newSpace(nobody, true, effects, nil)
	for _, name := range l.mentioned() {
		effects, decided := l.effectsFor(name, l.any.effects(), nil)
		switch {
		case decided:
		case writes(name) && effects&onlyUnsafe != 0:
			effects = onlyUnsafe
		default:
			continue
		}
		if l.subjects = append(l.subjects, l.newSpace(name, true, effects, nil)); len(l.subjects) == maxSubjects {
			break
		}
	}
}

// filteredOut reports whether tool_filter hides the tool.
func (l *linter) filteredOut(name string) bool {
	fits := func(glob string) bool { return Match(glob, name) }
	f := &l.server.ToolFilter
	return slices.ContainsFunc(f.Deny, fits) || f.Allow != nil && !slices.ContainsFunc(f.Allow, fits)
}

// effects are those of its states.
func (sp *space) effects() effectsSet {
	var set effectsSet
	for _, s := range sp.states {
		set |= 1 << s.effects
	}
	return set
}

// effectsFor returns what the rules make of the effects of a tool, and whether a rule surely decides them.
func (l *linter) effectsFor(name string, annotated effectsSet, info *ToolInfo) (effects effectsSet, decided bool) {
	var probe *space
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.settings {
			s := &r.settings[j]
			if s.ask != askEffects || r.tools != "" && !Match(r.tools, name) {
				continue
			}
			if probe == nil {
				probe = l.newSpace(name, true, annotated, info)
			}
			var when truth
			for state := range probe.states {
				when |= l.conditionAt(r, probe, state, probe.errs-1)
			}
			if when&mayHold == 0 {
				continue
			}
			word, isWord := s.literal.(string)
			if s.expr != nil || !isWord {
				return anyEffects, false
			}
			effects |= effectsOf(word)
			if when == mayHold {
				return effects, true
			}
		}
	}
	return effects | annotated, false
}

// mentioned lists the tools that the rules of the file name, exactly or by a glob.
func (l *linter) mentioned() []string {
	var names []string
	for i := range l.rules {
		r := &l.rules[i]
		if r.builtin {
			continue
		}
		if r.tools != "" {
			names = append(names, r.tools)
		}
		for _, tree := range r.trees() {
			visit(tree.Expr(), func(e ast.Expr) bool {
				for _, n := range namesIn(e) {
					names = append(names, n.text)
				}
				return true
			})
		}
	}
	return sortedNames(names)
}

// trees are the expressions of a rule.
func (r *lintRule) trees() []*ast.AST {
	var list []*ast.AST
	if r.when != nil {
		list = append(list, r.when.tree)
	}
	for i := range r.settings {
		if e := r.settings[i].expr; e != nil {
			list = append(list, e.tree)
		}
	}
	return list
}

// nameLiteral is a text that tool.name is compared with.
type nameLiteral struct {
	text  string
	match string // glob that says which names it fits
	expr  ast.Expr
}

// namesIn returns the texts that this very expression compares tool.name with.
func namesIn(e ast.Expr) []nameLiteral {
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		if len(args) != 1 || !isField(call.Target(), "tool", "name") {
			return nil
		}
		text, ok := stringLiteral(args[0])
		if !ok || text == "" || strings.ContainsAny(text, "*?") {
			return nil
		}
		glob := ""
		switch call.FunctionName() {
		case "startsWith":
			glob = text + "*"
		case "endsWith":
			glob = "*" + text
		case "contains":
			glob = "*" + text + "*"
		default:
			return nil
		}
		return []nameLiteral{{text, glob, args[0]}}
	}
	if len(args) != 2 {
		return nil
	}
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals:
		literal := args[1]
		if isField(args[1], "tool", "name") {
			literal = args[0]
		} else if !isField(args[0], "tool", "name") {
			return nil
		}
		if text, ok := stringLiteral(literal); ok {
			return []nameLiteral{{text, text, literal}}
		}
	case operators.In:
		if !isField(args[0], "tool", "name") || args[1].Kind() != ast.ListKind {
			return nil
		}
		var list []nameLiteral
		for _, item := range args[1].AsList().Elements() {
			if text, ok := stringLiteral(item); ok {
				list = append(list, nameLiteral{text, text, item})
			}
		}
		return list
	case "glob":
		if text, ok := stringLiteral(args[1]); ok && isField(args[0], "tool", "name") {
			return []nameLiteral{{text, text, args[1]}}
		}
	}
	return nil
}

// writingVerbs begin the names of tools that change something.
var writingVerbs = []string{
	"create", "update", "delete", "remove", "write", "edit", "send", "post", "put", "patch", "insert", "add", "set", "move", "rename", "drop",
	"pay", "charge", "transfer", "refund", "buy", "deploy", "merge", "push", "commit", "publish", "cancel", "upload", "append", "reply", "invite",
}

// writes reports whether the name of a tool begins with a word that says that it changes something: create_issue, sendMail.
func writes(name string) bool {
	word := name
	for i, c := range name {
		if c == '_' || c == '-' || c == '.' || i > 0 && c >= 'A' && c <= 'Z' {
			word = name[:i]
			break
		}
	}
	return slices.Contains(writingVerbs, strings.ToLower(word))
}
