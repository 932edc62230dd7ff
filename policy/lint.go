package policy

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"

	"github.com/bentabol/mcp-retry/schema"
)

// ToolInfo is a tool as a snapshot of its server's tools/list tells of it.
type ToolInfo struct {
	Tool               // Effects may be empty: they follow from the annotations and the rules
	InputSchema []byte // JSON Schema of the arguments, raw; nil = not known
}

// Lint looks for what is unwise in the rules of a server whose policy compiled. tools are those of a snapshot; nil means that
// there is none, and leaves out what only they can tell. No finding is an error, and each has one of the IDs above.
//
// Rules that the defaults section of a file states are looked at again for each server: a caller that lints several shows
// findings that are equal once.
func Lint(s *schema.Server, p *Policy, tools []ToolInfo) schema.Findings {
	if s == nil || p == nil || len(p.rules) != len(s.Rules) {
		return nil
	}
	return lintOpen(s, p, tools, nil)
}

// lintOpen is [Lint] where other rules, which are not among those of the server, may state the decisions that are open.
func lintOpen(s *schema.Server, p *Policy, tools []ToolInfo, open map[schema.Decision]bool) schema.Findings {
	l, err := newLinter(s, p, tools, "")
	if err != nil {
		return nil
	}
	l.conditions()
	l.shadows()
	l.costs()
	if !asksAny(open, schema.Retry, schema.RetryUnsafe, schema.MaxRetries, schema.ForwardKey, schema.Deny, schema.IdempotencyKey, schema.BreakerFailure) {
		l.retries()
	}
	if !asksAny(open, schema.CallTimeout, schema.TotalTimeout, schema.MaxRetries, schema.BreakerScope) {
		l.times()
	}
	if !asksAny(open, schema.CacheTTL, schema.CacheKey, schema.Deny) {
		l.caches()
	}
	l.keys()
	l.scopes()
	if tools != nil {
		l.names()
		l.arguments()
	}
	l.findings.Sort()
	return l.findings
}

type linter struct {
	server *schema.Server
	policy *Policy
	tools  []ToolInfo
	env    *cel.Env
	rules  []lintRule

	failures  []Failure // all that are told apart, success last
	asked     facet     // fields that any expression asks for
	manyCodes bool
	leaves    map[string]*leaf
	spaces    []*space
	any       *space            // a tool whose name is not known
	other     *space            // a tool that no rule names; nil with a snapshot, where all names are known
	domains   map[phaseSet]bits // of any
	subjects  []*space          // tools of the snapshot; without one, tools that the file names and whose effects it tells

	call    Call
	unknown []*cel.AttributePatternType

	findings schema.Findings
	said     map[saidKey]bool
	schemas  map[*ToolInfo]*argSchema
	deciders map[*Failure][]*lintRule // of specimens: rules above that surely decide whether they are retried
}

type saidKey struct {
	id  string
	pos schema.Pos
}

// lintRule is a rule beside the text it was compiled from.
type lintRule struct {
	*rule
	src      *schema.Rule
	owner    string       // what its place belongs to: "servers.NAME", "defaults" or "built-in"
	cond     *proposition // nil = it always holds
	over     *outcomes    // of cond, in the space any
	settings []lintSetting
	dead     bool // a finding says so already
	tried    bool // covered is set
	covered  []*space

	narrowing *narrowing
	parts     []part // see conjuncts; nil = not taken apart yet
}

type lintSetting struct {
	*setting
	src    *schema.Setting
	value  *proposition // of an expression, else nil
	phases phaseSet
}

// newLinter takes the rules apart; with a name only those that concern the tool of that name.
func newLinter(s *schema.Server, p *Policy, tools []ToolInfo, only string) (*linter, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	l := &linter{server: s, policy: p, tools: tools, env: env, leaves: map[string]*leaf{}, said: map[saidKey]bool{}, deciders: map[*Failure][]*lintRule{}}
	l.call.Server = &Peer{Name: s.Name}
	var codes []int64
	for i := range p.rules {
		r := lintRule{rule: &p.rules[i], src: &s.Rules[i], owner: ruleOwner(&s.Rules[i])}
		r.dead = len(r.decisions) == 0
		if only != "" && r.tools != "" && !Match(r.tools, only) {
			l.rules = append(l.rules, r)
			continue
		}
		if r.when != nil {
			r.cond = l.proposition(r.when.tree, r.when.tree.Expr())
			codes = appendCodes(codes, r.when.tree)
		}
		for j := range r.decisions {
			set := lintSetting{setting: &r.decisions[j], src: &r.src.Decides[j], phases: 1 << questions[r.decisions[j].ask].phase}
			if set.expr != nil {
				set.value = l.proposition(set.expr.tree, set.expr.tree.Expr())
				codes = appendCodes(codes, set.expr.tree)
			}
			r.settings = append(r.settings, set)
		}
		l.rules = append(l.rules, r)
	}
	for _, f := range l.leaves {
		l.asked |= f.uses
	}
	slices.Sort(codes)
	if codes = slices.Compact(codes); len(codes) > maxCodes {
		l.manyCodes, codes = true, nil
	}
	l.makeFailures(codes)
	l.any = l.newSpace("", false, l.statedEffects(), nil)
	for i := range l.rules {
		if r := &l.rules[i]; r.cond != nil {
			r.over = l.over(r.cond, l.any, nil)
		}
	}
	l.makeSubjects()
	return l, nil
}

// stating goes through the settings of the file's rules that may hold for some call.
func (l *linter) stating() iter.Seq2[*lintRule, *lintSetting] {
	return func(yield func(*lintRule, *lintSetting) bool) {
		for i := range l.rules {
			r := &l.rules[i]
			if r.builtin || r.dead {
				continue
			}
			for j := range r.settings {
				if !yield(r, &r.settings[j]) {
					return
				}
			}
		}
	}
}

func ruleOwner(r *schema.Rule) string {
	if isBuiltin(r) {
		return "built-in"
	}
	if strings.HasPrefix(r.Origin, "defaults") {
		return "defaults"
	}
	return "server"
}

func appendCodes(codes []int64, tree *ast.AST) []int64 {
	visit(tree.Expr(), func(e ast.Expr) bool {
		if e.Kind() == ast.CallKind {
			if some, ok := comparedCodes(e.AsCall()); ok {
				codes = append(codes, some...)
			}
		}
		return true
	})
	return codes
}

// phases are those in which the rule decides something.
func (r *lintRule) phases() phaseSet {
	var set phaseSet
	for i := range r.settings {
		set |= r.settings[i].phases
	}
	return set
}

// conditionAt is what the when of a rule comes to for a tool in one world.
func (l *linter) conditionAt(r *lintRule, sp *space, state, failure int) truth {
	if r.tools != "" {
		if !sp.named {
			return l.at(r.cond, sp, state, failure).and(mayHold | mayFail)
		}
		if !Match(r.tools, sp.name) {
			return mayFail
		}
	}
	return l.at(r.cond, sp, state, failure)
}

// contribution is a rule that may decide a question in a world.
type contribution struct {
	rule    *lintRule
	setting *lintSetting
	when    truth
	value   truth
}

// contributions lists the rules that may decide the question for a tool in one world, from the top, up to the one that surely does.
func (l *linter) contributions(ask int, sp *space, state, failure int) []contribution {
	var list []contribution
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.settings {
			s := &r.settings[j]
			if s.ask != ask {
				continue
			}
			when := l.conditionAt(r, sp, state, failure)
			if when&mayHold == 0 {
				break
			}
			c := contribution{r, s, when, l.valueAt(s, sp, state, failure)}
			list = append(list, c)
			if when == mayHold && (s.expr != nil || s.final()) {
				return list
			}
		}
	}
	return list
}

// valueAt is what a setting says in a world: mayHold for true, or for more than nothing.
func (l *linter) valueAt(s *lintSetting, sp *space, state, failure int) truth {
	if s.expr != nil {
		return l.at(s.value, sp, state, failure)
	}
	switch v := s.literal.(type) {
	case bool:
		if !v {
			return mayFail
		}
	case keyLiteral:
		if v.answer != keyStated {
			return mayFail
		}
	case string:
		if v == "" {
			return mayFail
		}
	default:
		if isZero(v) {
			return mayFail
		}
	}
	return mayHold
}

// report adds a finding, unless one of that kind stands at the place already.
func (l *linter) report(level schema.Level, id string, pos schema.Pos, hint, format string, args ...any) {
	key := saidKey{id, pos}
	if l.said[key] {
		return
	}
	l.said[key] = true
	l.findings = append(l.findings, schema.Finding{Pos: pos, Level: level, ID: id, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// place is where a setting stands: its expression, or its key.
func (s *lintSetting) place() schema.Pos {
	if s.text != nil {
		return whole(s.text)
	}
	return s.src.Pos
}

// decision is the name of what the setting decides.
func (s *lintSetting) decision() schema.Decision { return s.src.Decision }

// listed joins names for a message: "a", "b" and 3 more.
func listed(names []string) string {
	const shown = 3
	quoted := make([]string, 0, len(names))
	for _, n := range names {
		quoted = append(quoted, fmt.Sprintf("%q", short(n)))
	}
	switch n := len(quoted); {
	case n == 1:
		return quoted[0]
	case n <= shown:
		return strings.Join(quoted[:n-1], ", ") + " and " + quoted[n-1]
	default:
		return strings.Join(quoted[:shown], ", ") + fmt.Sprintf(" and %d more", n-shown)
	}
}

// sortedNames are the names of tools, each once.
func sortedNames(names []string) []string {
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}
