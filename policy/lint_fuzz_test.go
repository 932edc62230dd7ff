package policy

import (
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/schema"
)

var lintIDs = []string{
	LintNever, LintAlways, LintShadowed, LintCost, LintRetryUnsafe, LintRetryUnsafeIdle, LintRetryAnswered, LintRetryUnannotated, LintRetryHopeless, LintNoJitter,
	LintWorstCase, LintOutlasts, LintCacheWrites, LintCacheUnannotated, LintStaleLong, LintKeyConstant, LintKeyVolatile, LintKeyConcat, LintBreakerOneCall, LintBreakerAnswers,
	LintScopeUnbounded, LintLimitUnbounded, LintNoTool, LintNoArgument, LintArgUnguarded, LintDeadRule,
}

// FuzzLint: no expression and no inputSchema makes Lint panic, every finding has an ID and a place in the text, and what it calls
// constant is so.
func FuzzLint(f *testing.F) {
	for _, text := range []string{
		`error.kind == "timeout" && error.kind == "exit"`, `!(error.code > 5 || error.code <= 5)`, `error.code % 2 == 0`, `tool.name == "x" || tool.effects in ["none"]`,
		`has(args.a) && args.a.b > 1`, `args.?a.?b.orValue(1) == 1`, `[error.kind].exists(tool, tool == "exit")`, `cel.bind(error, args, error.kind == "x")`, `dyn(error).code == 1`,
		`error == error`, `-5 > error.code`, `error.code in [1, error.code]`, `error.transient ? error.kind == "tool" : error.kind == "timeout"`, `tool.annotated || !tool.readOnly`,
		`size(error.text) > -1`, `"a" in args && args["a"] == args.a`, `args.a + "-" + args.b`, `"%s%s".format([args.a, args.b])`, `hash(args)`, `[args.a, now, args.nonce]`,
		`duration("48h")`, `args.l.all(a, args.l.all(b, a == b))`, `error.text.matches("40[13]")`, `'é😀' + args.x`, "'''a\nb''' == args.x", `r"\" == args.x`, `.tool.readOnly`,
		`1 == 1`, `1 / 0 == 1`, `optional.of(tool.name).hasValue()`, `tool.name.startsWith("")`, `glob(tool.name, "*?*")`, `tool.title == ""`, `server.name == "srv"`, `true`, `false && true`,
	} {
		f.Add(text, []byte(`{"type":"object","properties":{"a":{"properties":{"b":{}}}},"required":["a"]}`))
	}
	f.Add(`args.a.b.c == 1`, []byte(`{"$ref":"#"}`))
	f.Add(`args.a.b.c == 1`, []byte(`{"properties":{"a":{"$ref":"#"}},"allOf":[{"$ref":"#/properties/a"},{"anyOf":[true,1]}]}`))
	f.Fuzz(func(t *testing.T, text string, inputSchema []byte) {
		x := &schema.Expr{Text: text, At: func(offset int) schema.Pos {
			if offset < 0 || offset > len(text) {
				t.Errorf("offset %d of a text of %d bytes", offset, len(text))
			}
			return schema.Pos{Line: 1, Col: offset + 1}
		}}
		start := schema.Pos{Line: 1, Col: 1}
		tools := []ToolInfo{{Tool{Name: "t", Annotated: true}, inputSchema}, {Tool{Name: "u"}, nil}}
		for _, d := range []schema.Decision{schema.MaxRetries, schema.IdempotencyKey, schema.BreakerScope, schema.StaleIfError, schema.Retry, schema.BreakerFailure, schema.CacheTTL, schema.RetryUnsafe} {
			rules := []schema.Rule{
				{Name: "when", Pos: start, When: x, Decides: []schema.Setting{{Decision: d, Pos: start, Literal: literalFor(d)}}},
				{Name: "value", Pos: start, Decides: []schema.Setting{{Decision: d, Pos: start, Expr: x}}},
			}
			for _, rule := range rules {
				s := newServer(rule)
				s.Pos = start
				p, _ := Compile(s)
				if p == nil {
					continue
				}
				began := time.Now()
				for _, known := range [][]ToolInfo{nil, tools, {}} {
					for _, found := range Lint(s, p, known) {
						if !slices.Contains(lintIDs, found.ID) || found.Pos.Line != 1 || found.Level == schema.Error || !utf8.ValidString(found.Message+found.Hint) {
							t.Errorf("%+v", found)
						}
						checkConstancy(t, p, &found, text, d, rule.When != nil)
					}
				}
				for i := range tools {
					p.Verdicts(tools[i])
				}
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
			}
		}
	})
}

func literalFor(d schema.Decision) any {
	switch d {
	case schema.IdempotencyKey:
		return false
	case schema.BreakerScope:
		return ""
	case schema.MaxRetries:
		return int64(1)
	case schema.StaleIfError, schema.CacheTTL:
		return time.Second
	}
	return true
}

// checkConstancy evaluates an expression that is said to be constant, for calls of many kinds.
func checkConstancy(t *testing.T, p *Policy, found *schema.Finding, text string, d schema.Decision, isWhen bool) {
	if found.ID != LintNever && found.ID != LintAlways || found.Pos.Col != 1 || found.Pos.Len < len(text) {
		return // a part of it
	}
	r := &p.rules[0]
	e := r.when
	if !isWhen {
		e = r.decisions[0].expr
	}
	if e == nil {
		return
	}
	failures := []Failure{
		timeout, {Kind: "exit", Delivery: "unknown", Transient: true}, {Kind: "tool", Delivery: "answered", Text: "401", Message: "401"}, rpcFailure(-32603, "a"),
		rpcFailure(-32602, ""), rpcFailure(7, "x"), rpcFailure(-32000, "busy"), {Kind: "overloaded", Code: -32023, Delivery: "rejected", RetryAfter: time.Second},
	}
	switch questions[questionOf(d)].phase {
	case BeforeCall, AfterSuccess:
		failures = []Failure{{}}
	case AfterAttempt:
		failures = append(failures, Failure{})
	}
	for i := range failures {
		for _, tool := range []Tool{{Name: "t"}, {Name: "x", Annotated: true, ReadOnly: true}, {Name: "y", Annotated: true, Destructive: true}, {Name: "", Annotated: true, Idempotent: true}} {
			for _, args := range []string{"", everyKind, `{"a":{"b":1},"x":"x","l":[1]}`} {
				c := newCall(args)
				tool.Effects = tool.AnnotatedEffects(true)
				c.Tool = tool
				c.enter(1, &failures[i], []byte(`{"content":[]}`), 1, time.Second)
				v, err := e.eval(c)
				holds := false
				if err == nil {
					holds, _ = toBool(v)
				}
				if holds != (found.ID == LintAlways) {
					t.Errorf("%q is said to be constant (%s), but comes to %v, %v for %+v and %+v", text, found.ID, v, err, failures[i], tool)
				}
			}
		}
	}
}
