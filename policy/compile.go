package policy

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/bentabol/mcp-retry/schema"
)

// Policy is the compiled rules of one server.
type Policy struct {
	server *schema.Server
	rules  []rule
	tables tables
}

// rule is a compiled [schema.Rule].
type rule struct {
	index     int
	name      string
	builtin   bool
	tools     string // glob; "" = every tool
	when      *expression
	whenText  *schema.Expr
	early     bool // when needs nothing that is learned after the call began: one answer for all of its phases
	decisions []setting
}

// setting is a compiled [schema.Setting].
type setting struct {
	ask      int // index into questions
	expr     *expression
	text     *schema.Expr
	literal  any // if expr is nil; see literalOf
	required bool
}

// Compile compiles the rules of a server. It reports every fault of every expression, each at its place in the file. The
// policy is nil if any finding is an [schema.Error].
func Compile(s *schema.Server) (*Policy, schema.Findings) {
	p, findings, _ := compileRules(s)
	return p, findings
}

// compileRules is [Compile]. It says besides which of the rules have an error, by their place in the list.
func compileRules(s *schema.Server) (*Policy, schema.Findings, []bool) {
	c := compiler{server: s}
	c.collect()
	c.compileAll()
	p := &Policy{server: s, rules: make([]rule, len(s.Rules))}
	faulty := make([]bool, len(s.Rules))
	for i := range s.Rules {
		before := len(c.findings)
		p.rules[i] = c.rule(i, &s.Rules[i])
		faulty[i] = c.findings[before:].HasErrors()
	}
	slices.SortStableFunc(c.findings, func(a, b schema.Finding) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Col - b.Pos.Col
	})
	if c.findings.HasErrors() {
		return nil, c.findings, faulty
	}
	return p, c.findings, faulty
}

type compiler struct {
	server   *schema.Server
	texts    []*compiled
	byText   map[compiledKey]*compiled
	findings schema.Findings
}

// compiledKey is what the outcome of compiling a text depends on.
type compiledKey struct {
	text  string
	known varSet
}

type compiled struct {
	compiledKey
	builtin bool
	expr    *expression
	issues  []issue
	uses    []use // of variables, as far as a text that does not compile tells
}

// collect lists the texts to compile, each once.
func (c *compiler) collect() {
	c.byText = map[compiledKey]*compiled{}
	for i := range c.server.Rules {
		r := &c.server.Rules[i]
		c.add(r, r.When, whenVars(r))
		for _, s := range r.Decides {
			ask := questionOf(s.Decision)
			if ask < 0 {
				continue
			}
			known := questions[ask].phase.vars()
			c.add(r, s.Expr, known)
			if list, ok := s.Literal.([]schema.Invalidation); ok {
				for _, item := range list {
					c.add(r, item.Args, known)
				}
			}
		}
	}
}

func (c *compiler) add(r *schema.Rule, x *schema.Expr, known varSet) {
	if x == nil {
		return
	}
	key := compiledKey{x.Text, known}
	if _, ok := c.byText[key]; !ok {
		job := &compiled{compiledKey: key, builtin: isBuiltin(r)}
		c.byText[key] = job
		c.texts = append(c.texts, job)
	}
}

func isBuiltin(r *schema.Rule) bool { return strings.HasPrefix(r.Origin, "built-in") }

// whenVars is what a rule's when may use: what is known in every phase for which the rule decides something. With no decision,
// or none that is sound, nothing says when it would be asked.
func whenVars(r *schema.Rule) varSet {
	vars := ^varSet(0)
	for _, s := range r.Decides {
		if ask := questionOf(s.Decision); ask >= 0 {
			vars &= questions[ask].phase.vars()
		}
	}
	return vars
}

// ofBuiltin keeps the expressions of the built-in policy, which every server of every config shares.
var ofBuiltin sync.Map // compiledKey → *expression

func (c *compiler) compileAll() {
	var next, workers = make(chan *compiled, len(c.texts)), min(runtime.GOMAXPROCS(0), 4, len(c.texts))
	for _, t := range c.texts {
		next <- t
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for t := range next {
				t.compile()
			}
		})
	}
	wg.Wait()
}

func (t *compiled) compile() {
	if t.builtin {
		if e, ok := ofBuiltin.Load(t.compiledKey); ok {
			t.expr = e.(*expression)
			return
		}
	}
	if t.expr, t.issues = compileText(t.text, t.known); t.expr == nil {
		t.uses = usesOf(t.text)
	}
	if t.builtin && t.expr != nil {
		ofBuiltin.Store(t.compiledKey, t.expr)
	}
}

// take returns the compiled expression, or reports why there is none.
func (c *compiler) take(x *schema.Expr, known varSet) *expression {
	job := c.byText[compiledKey{x.Text, known}]
	issues := job.issues
	if job.expr != nil {
		issues = job.expr.warnings
	}
	for _, i := range issues {
		c.findings = append(c.findings, schema.Finding{Pos: place(x, i.offset, i.length), Level: i.level, ID: i.id, Message: i.message, Hint: i.hint})
	}
	return job.expr
}

// report adds a finding that refuses the config.
func (c *compiler) report(pos schema.Pos, id, message, hint string) {
	c.findings = append(c.findings, schema.Finding{Pos: pos, Level: schema.Error, ID: id, Message: message, Hint: hint})
}

func (c *compiler) rule(index int, r *schema.Rule) rule {
	out := rule{index: index, name: r.Name, builtin: isBuiltin(r), tools: r.Tools, whenText: r.When}
	if r.When != nil {
		known := whenVars(r)
		e := c.take(r.When, known)
		c.checkWhen(r, e, known)
		if e != nil {
			out.when = e
			out.early = varsBefore.has(e.vars)
		}
	}
	for i := range r.Decides {
		s := &r.Decides[i]
		ask := questionOf(s.Decision)
		if ask < 0 {
			c.report(s.Pos, "unknown-key", fmt.Sprintf("there is no decision %q", s.Decision), "")
			continue
		}
		if questions[ask].constant && r.When != nil {
			c.report(s.Pos, "bad-value", fmt.Sprintf("%s cannot stand under a when: it is a parameter, not a decision", s.Decision), "move it to a rule without when, or to tools")
		}
		out.decisions = append(out.decisions, c.setting(ask, s))
	}
	return out
}

func (c *compiler) setting(ask int, s *schema.Setting) setting {
	q := &questions[ask]
	out := setting{ask: ask, text: s.Expr, required: s.Required}
	known := q.phase.vars()
	if s.Expr == nil {
		literal, err := c.literal(q, s.Literal)
		if err != nil {
			c.report(s.Pos, "bad-value", fmt.Sprintf("%s: %v", s.Decision, err), "")
		}
		out.literal = literal
		return out
	}
	e := c.take(s.Expr, known)
	if e == nil {
		c.checkPhase(s.Expr, q)
		return out
	}
	if q.constant {
		c.report(place(s.Expr, 0, 0), "bad-value", fmt.Sprintf("%s takes a plain value, not an expression", s.Decision), "")
		return out
	}
	if !c.checkPhase(s.Expr, q) {
		return out
	}
	if message, hint := checkResult(q.form, e); message != "" {
		c.report(place(s.Expr, 0, tokensLen(s.Expr.Text)), "cel-type", fmt.Sprintf("%s: %s", s.Decision, message), hint)
		return out
	}
	out.expr = e
	if e.constant != nil {
		literal, err := literalOf(q, e.constant)
		if err != nil {
			c.report(place(s.Expr, 0, tokensLen(s.Expr.Text)), "bad-value", fmt.Sprintf("%s: %v", s.Decision, err), "")
			return out
		}
		out.literal, out.expr = literal, nil
	}
	return out
}

// checkWhen reports a when that is no condition or that uses what some decision of its rule comes too early for. e is nil if it does
// not compile.
func (c *compiler) checkWhen(r *schema.Rule, e *expression, known varSet) {
	if e != nil {
		if message, hint := checkResult(formBool, e); message != "" {
			c.report(place(r.When, 0, tokensLen(r.When.Text)), "cel-type", "when: "+message, hint)
		}
	}
	for _, u := range c.unknown(r.When, known) {
		// Which decisions of the rule want the variable too early, and which could have it?
		var early, late []string
		var phase Phase
		for _, s := range r.Decides {
			if ask := questionOf(s.Decision); ask >= 0 {
				if p := questions[ask].phase; p.vars().has(u.set) {
					late = append(late, string(s.Decision))
				} else {
					if len(early) == 0 {
						phase = p
					}
					early = append(early, string(s.Decision))
				}
			}
		}
		hint := fmt.Sprintf("%s is decided %s", strings.Join(early, ", "), phase)
		if len(late) > 0 {
			hint = fmt.Sprintf("split the rule: %s is decided %s, %s later", strings.Join(early, ", "), phase, strings.Join(late, ", "))
		}
		c.tooEarly(r.When, u, phase, known, hint)
	}
}

// unknown lists the variables that an expression of one of the rules uses and the set lacks, each where it is used first.
func (c *compiler) unknown(x *schema.Expr, known varSet) []use {
	job := c.byText[compiledKey{x.Text, known}]
	uses := job.uses
	if job.expr != nil {
		uses = job.expr.uses
	}
	var list []use
	for _, u := range uses {
		if !known.has(u.set) && !slices.ContainsFunc(list, func(o use) bool { return o.name == u.name }) {
			list = append(list, u)
		}
	}
	return list
}

// checkPhase reports the variables that the expression uses and the question's phase does not have.
func (c *compiler) checkPhase(x *schema.Expr, q *question) bool {
	known := q.phase.vars()
	missing := c.unknown(x, known)
	for _, u := range missing {
		c.tooEarly(x, u, q.phase, known, fmt.Sprintf("%s is decided %s", q.decision, q.phase))
	}
	return len(missing) == 0
}

func (c *compiler) tooEarly(x *schema.Expr, u use, phase Phase, known varSet, hint string) {
	c.report(place(x, u.offset, len(u.name)), "cel-phase",
		fmt.Sprintf("`%s` is not known %s; here you have %s", u.name, phase, known), hint)
}

// tokensLen is the number of characters of a text of one line, for the caret; 1 if it has several.
func tokensLen(text string) int {
	if strings.ContainsRune(text, '\n') {
		return 1
	}
	return max(1, len([]rune(text)))
}
