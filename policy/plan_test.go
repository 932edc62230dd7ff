package policy

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// FuzzPlan: what a plan has found out about its tool changes no decision, no report of an error and no explanation.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := generator{Rand: rand.New(rand.NewPCG(seed, 1))}
		rules := make([]schema.Rule, 1+g.IntN(12))
		for i := range rules {
			rules[i] = g.rule(i)
		}
		p := mustCompile(t, rules...)
		plain := withoutStatics(p)
		name := g.one("pay_order", "get_issue", "search", "pay", "")
		plan, reference := p.For(name), plain.For(name)
		var c, want Call // kept over the calls, as a proxy does
		for range 6 {
			g.call(name, &c, &want)
			if !sameDecisions(t, &g, plan, reference, &c, &want) {
				for _, r := range rules {
					t.Logf("%s", ruleText(&r))
				}
				t.Fatalf("of the tool %+v", c.Tool)
			}
		}
	})
}

// withoutStatics is the policy as it would be if parts of a condition said nothing before a call.
func withoutStatics(p *Policy) *Policy {
	plain := &Policy{server: p.server, rules: append([]rule(nil), p.rules...)}
	for i := range plain.rules {
		if r := &plain.rules[i]; r.when != nil {
			hidden := *r.when
			hidden.static = nil
			r.when = &hidden
		}
	}
	return plain
}

// sameDecisions takes a call through all its phases under both plans.
func sameDecisions(t *testing.T, g *generator, plan, reference *Plan, c, want *Call) bool {
	t.Helper()
	var told, toldWant []string
	if g.IntN(6) == 0 && !g.spends { // it takes time
		c.Observe = func(d Decided) { told = append(told, tell(d)) }
		want.Observe = func(d Decided) { toldWant = append(toldWant, tell(d)) }
	}
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}

	var b, wantB Before
	plan.Before(c, &b)
	reference.Before(want, &wantB)
	fills := b.CacheMayFill
	if b.CacheMayFill && !wantB.CacheMayFill || b.CacheStated && !wantB.CacheStated {
		t.Error("the cache is expected to fill under no rule")
	}
	b.CacheMayFill, b.CacheStated = wantB.CacheMayFill, wantB.CacheStated // nothing known, nothing ruled out
	b.keyBuffer, b.staleBuffer, wantB.keyBuffer, wantB.staleBuffer = nil, nil, nil, nil
	same("before", b, wantB)
	same("effects", c.Tool.Effects, want.Tool.Effects)
	if !fills {
		told, toldWant = withoutCache(told), withoutCache(toldWant)
	}

	failure := g.failure()
	if decided := c.Tool.Effects; g.IntN(3) == 0 { // they are read more carefully for once
		c.Tool.Effects, want.Tool.Effects = EffectsUnsafe, EffectsUnsafe
		same("retry", plan.AfterAttempt(c, failure, 1, time.Second), reference.AfterAttempt(want, failure, 1, time.Second))
		c.Tool.Effects, want.Tool.Effects = decided, decided
	}
	same("retry", plan.AfterAttempt(c, failure, 2, time.Second), reference.AfterAttempt(want, failure, 2, time.Second))
	result := []byte(g.one(`{"ok":true,"content":[]}`, `{"ok":false}`, `{}`))
	failed, rule := plan.BreakerFailure(c, failure, nil)
	wantFailed, wantRule := reference.BreakerFailure(want, failure, nil)
	same("breaker_failure", []any{failed, rule}, []any{wantFailed, wantRule})
	ttl, rule := plan.CacheTTL(c, result, time.Second)
	wantTTL, wantRule := reference.CacheTTL(want, result, time.Second)
	same("cache_ttl", []any{ttl, rule}, []any{wantTTL, wantRule})
	if ttl > 0 && !fills {
		t.Error("a result is kept in a cache that was said not to fill")
	}
	ttl, rule = plan.StaleIfError(c, failure)
	wantTTL, wantRule = reference.StaleIfError(want, failure)
	same("stale_if_error", []any{ttl, rule}, []any{wantTTL, wantRule})

	same("errors", c.Errors, want.Errors)
	same("told", told, toldWant)
	return !t.Failed()
}

// tell is a decision with the fate of every rule that was asked.
func tell(d Decided) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %v:", d.Decision, d.Rule, d.Value)
	for _, c := range d.Considered() {
		fmt.Fprintf(&b, " %s %s;", c.Rule, c.Fate)
	}
	return b.String()
}

func withoutCache(told []string) []string {
	var rest []string
	for _, line := range told {
		if !strings.HasPrefix(line, string(schema.CacheTTL)) {
			rest = append(rest, line)
		}
	}
	return rest
}

func ruleText(r *schema.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %q", r.Name, r.Tools)
	if r.When != nil {
		fmt.Fprintf(&b, " when %s", r.When.Text)
	}
	for _, s := range r.Decides {
		if s.Expr != nil {
			fmt.Fprintf(&b, "; %s: %s", s.Decision, s.Expr.Text)
		} else {
			fmt.Fprintf(&b, "; %s = %v", s.Decision, s.Literal)
		}
	}
	return b.String()
}

// generator makes up rules and calls. An expression that goes to the limit of its cost takes a thousand times as long as any other, and
// each of a dozen decisions may ask it anew: so there is one at most, and one call that drives it there, which is not watched.
type generator struct {
	*rand.Rand
	costly, spent bool // there has been such an expression, and such a call
	spends        bool // the present call is the one
}

func (g *generator) one(list ...string) string { return list[g.IntN(len(list))] }

// condition makes up a condition of things known of the tool, things known of the call, and things that fail.
func (g *generator) condition(depth int, late bool) string {
	if depth > 0 {
		a, b := g.condition(depth-1, late), g.condition(depth-1, late)
		switch g.IntN(8) {
		case 0, 1, 2:
			return "(" + a + " && " + b + ")"
		case 3, 4:
			return "(" + a + " || " + b + ")"
		case 5:
			return "!(" + a + ")"
		case 6:
			return "(" + a + " ? " + b + " : " + g.condition(0, late) + ")"
		}
		return a
	}
	switch n := g.IntN(10); {
	case n < 3:
		return g.one(`tool.name == "pay_order"`, `"search" != tool.name`, `tool.name in ["pay", "get_issue"]`, `glob(tool.name, "pay*")`, `tool.name.startsWith("pay_")`,
			`tool.name.endsWith("issue")`, `tool.name.contains("ea")`, `tool.name.matches("^(get|pay)_")`, `server.name == "srv"`, `server.name == "other"`,
			`["a", "pay"].exists(p, tool.name.startsWith(p))`, `tool.name.split("_")[1] == "order"`, `tool.name.size() > 3`, `tool.name == string(args.name)`, `true`, `false`)
	case n < 6:
		return g.one(`tool.effects == "none"`, `tool.effects != "unsafe"`, `tool.effects in ["none", "idempotent"]`, `tool.readOnly`, `tool.annotated == false`, `tool.destructive`,
			`tool.idempotent != tool.openWorld`, `tool.openWorld`, `tool.title == ""`, `tool.effects.startsWith("un")`)
	case n < 7 && late:
		return g.one(`error.transient`, `error.kind == "timeout"`, `error.data.x == 1`, `error.code < 0`)
	}
	if g.IntN(50) == 0 && !g.costly { // more than an expression may cost, for the longest list
		g.costly = true
		return `args.l.all(x, args.l.all(y, args.l.all(z, x + y + z >= 0)))`
	}
	return g.one(`args.n > 1`, `args.missing == 1`, `has(args.n)`, `args.flag`, `args.l.exists(x, x == 2)`,
		`client.name == "claude"`, `args.s.matches("a+")`, `1 / args.zero == 1`, `meta.k == 1`)
}

func (g *generator) rule(i int) schema.Rule {
	pick := func(list ...any) any { return list[g.IntN(len(list))] }
	late := g.IntN(3) == 0
	var decides []any
	add := func(d schema.Decision, values ...any) {
		if g.IntN(3) == 0 {
			decides = append(decides, d, pick(values...))
		}
	}
	if !late {
		add(schema.Effects, "none", "unsafe", code(`tool.readOnly ? "idempotent" : "unsafe"`), code(`string(args.effects)`), code(`tool.effects`))
		add(schema.Deny, "", code(`args.n > 2 ? "no" : ""`), code(`tool.name == "pay" ? "never" : ""`), code(`string(args.missing)`))
		add(schema.IdempotencyKey, code(`[tool.name, args.n]`), code(`args.missing`), code(`tool.name`), code(`tool.effects == "none" ? dyn(null) : dyn("k")`), code(`false`))
		add(schema.BreakerScope, code(`"s" + string(args.n)`), code(`tool.name`), code(`tool.effects`), code(`args.missing`), code(`server.name`))
		add(schema.CallTimeout, time.Second, code(`args.n`), code(`tool.readOnly ? 1 : 2`))
		add(schema.MaxRetries, int64(1), code(`args.n`), code(`size(tool.name)`))
		add(schema.Invalidates, []string{"get_*"}, code(`[tool.name]`), code(`[args.s]`), code(`args.missing`))
	}
	add(schema.Retry, true, false, code(`tool.effects == "none"`), code(`error.data.x`))
	add(schema.RetryDelay, time.Second, code(`attempt * 2`), code(`error.data.x`))
	if !late {
		add(schema.BreakerFailure, true, code(`error.kind == "timeout"`), code(`error.data.x`))
		add(schema.CacheTTL, time.Minute, time.Duration(0), code(`result.ok ? 60 : 0`), code(`size(tool.name)`), code(`result.missing`))
	}
	add(schema.StaleIfError, time.Minute, code(`tool.readOnly ? 60 : 0`), code(`error.data.x`))
	if len(decides) == 0 {
		decides = []any{schema.Retry, true}
	}
	var when code
	if g.IntN(6) > 0 {
		when = code(g.condition(g.IntN(4), late))
	}
	r := newRule(fmt.Sprintf("r%d", i), when, decides...)
	if g.IntN(5) == 0 {
		r.Tools = g.one("pay*", "*", "search")
	}
	return r
}

// call fills both with the same call.
func (g *generator) call(name string, calls ...*Call) {
	long := `{"n":2,"l":[` + strings.Repeat("1,", 80) + `1]}`
	args := g.one("", `{"n":1,"l":[1,2],"s":"aa","flag":true,"zero":0}`, `{"n":3,"flag":5,"effects":"none","name":"pay","l":[]}`, `{"n":"x","s":7}`, long)
	if args == long && g.spent {
		args = `{"n":2,"l":[1,1,1]}`
	}
	g.spends = args == long && g.costly
	g.spent = g.spent || g.spends
	made := newCall(args)
	made.Tool = Tool{
		Name: name, Annotated: g.IntN(2) == 0, ReadOnly: g.IntN(2) == 0, Destructive: g.IntN(2) == 0,
		Idempotent: g.IntN(2) == 0, OpenWorld: g.IntN(2) == 0,
	}
	for _, c := range calls {
		c.Reset()
		c.Tool, c.Server, c.Client, c.Args, c.Now = made.Tool, made.Server, made.Client, made.Args, made.Now
	}
}

func (g *generator) failure() *Failure {
	return []*Failure{
		&timeout, {Kind: "rpc", Code: -32000, Delivery: "answered", Transient: true, Data: []byte(`{"x":true}`)},
		{Kind: "overloaded", Delivery: "rejected"}, {Kind: "tool", Delivery: "answered", Text: "no", Data: []byte(`{"x":1}`)},
	}[g.IntN(4)]
}

func TestAPlanHoldsOnlyTheRulesThatCanMatch(t *testing.T) {
	few, many := mustCompile(t, rulesForTools(10)...), mustCompile(t, rulesForTools(1000)...)
	for i := range 5 {
		tool := Tool{Name: fmt.Sprintf("tool_%d", i), Annotated: true}
		got, want := many.For(tool.Name).byHints(&tool), few.For(tool.Name).byHints(&tool)
		if got.size != want.size || got.slots != want.slots {
			t.Errorf("%s: %d candidates under %d conditions, want %d and %d", tool.Name, got.size, got.slots, want.size, want.slots)
		}
	}
}

func TestARuleThatTheHintsExcludeIsNoCandidate(t *testing.T) {
	p := mustCompile(t,
		newRule("reads", `tool.effects == "none" && args.n > 0`, schema.BreakerScope, code(`"reads"`)),
		newRule("declared", `tool.effects == "idempotent"`, schema.Effects, "unsafe"),
		newRule("kept", `tool.effects == "none" && result.ok`, schema.CacheTTL, time.Minute))
	for _, c := range []struct {
		tool  Tool
		slots int // conditions that are left to be asked before a call, and of the built-in policy
		kept  bool
	}{
		{Tool{Annotated: true, ReadOnly: true}, 2, true},
		{Tool{Annotated: true, Idempotent: true}, 0, false},
		{Tool{Annotated: true}, 0, false},
	} {
		plan := p.For("t")
		table := plan.byHints(&c.tool)
		if asked := len(table.asks); asked != min(c.slots, 1) {
			t.Errorf("%+v: %d decisions depend on the call", c.tool, asked)
		}
		call, b := newCall(`{"n":1}`), Before{}
		call.Tool = c.tool
		if plan.Before(call, &b); b.CacheStated != c.kept {
			t.Errorf("%+v: a TTL is stated: %v", c.tool, b.CacheStated)
		}
	}
}

// A call with a key that its server honours, say, may be sent again though its effects are stated to be unsafe.
func TestWhatFollowsAnAttemptSeesTheEffectsAsTheyAreReadThen(t *testing.T) {
	plan := mustCompile(t,
		newRule("stated", "", schema.Effects, "unsafe"),
		newRule("safe", `tool.effects == "idempotent"`, schema.Retry, true),
		newRule("else", "", schema.Retry, false)).For("pay")
	call, b := newCall(`{}`), Before{}
	plan.Before(call, &b)
	for _, effects := range []string{EffectsUnsafe, EffectsIdempotent, EffectsUnsafe, EffectsIdempotent} {
		call.Tool.Effects = effects
		if r := plan.AfterAttempt(call, &timeout, 1, 0); r.Retry != (effects == EffectsIdempotent) {
			t.Errorf("with effects %s: %+v", effects, r)
		}
	}
}

func TestPlansOfMadeUpToolsTakeBoundedMemory(t *testing.T) {
	rules := make([]schema.Rule, 500)
	for i := range rules {
		rules[i] = newRule("r", code(fmt.Sprintf("args.n == %d", i)), schema.BreakerScope, code(`"s" + string(args.n)`))
	}
	p := mustCompile(t, rules...)
	var plans []*Plan
	decide := func(plan *Plan) {
		t.Helper()
		c, b := newCall(`{"n":499}`), Before{}
		if plan.Before(c, &b); b.BreakerScope != "s499" {
			t.Fatalf("the scope is %q", b.BreakerScope)
		}
	}
	for i := range 1000 {
		plans = append(plans, p.For(fmt.Sprintf("made up %d", i)))
		decide(plans[i])
	}
	kept := 0
	for _, plan := range plans {
		if table := plan.hinted.Load(); table != nil {
			kept += table.size
		}
	}
	if kept > maxKept || kept == 0 {
		t.Errorf("%d candidates are kept, at most %d should be", kept, maxKept)
	}
	decide(plans[0])
}

func TestAPlanServesManyCallersAtOnce(t *testing.T) {
	plan := mustCompile(t, newRule("reads", `tool.readOnly && args.n > 0`, schema.BreakerScope, code(`"reads"`))).For("t")
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := range 100 {
				c, b := newCall(`{"n":1}`), Before{}
				c.Tool.ReadOnly = (i+caller)%2 == 0
				plan.Before(c, &b)
				plan.AfterAttempt(c, &timeout, 1, 0)
				if got := b.BreakerScope == "reads"; got != c.Tool.ReadOnly {
					t.Errorf("readOnly %v: the scope is %q", c.Tool.ReadOnly, b.BreakerScope)
				}
			}
		})
	}
	wg.Wait()
}
