package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Every decision that an expression may decide has a careful side, to which an error at run time falls. The expression
// fails because an argument is missing; a rule behind it states something else.
func TestAnExpressionThatErrsFallsToTheCarefulSide(t *testing.T) {
	show := func(args ...any) string { return fmt.Sprint(args...) }
	type outcome struct {
		b     Before
		retry Retry
		plan  *Plan
		c     *Call
	}
	f := &timeout
	cases := map[schema.Decision]struct {
		later any // what a later rule states
		got   func(*outcome) string
		want  string
	}{
		schema.Effects:        {"none", func(o *outcome) string { return o.b.Effects + " " + o.b.EffectsRule }, "unsafe errs"},
		schema.Deny:           {"", func(o *outcome) string { return o.b.Deny + "; " + o.b.DenyRule }, "the rule that may deny this call could not be evaluated: f:1:6: no such key: missing; errs"},
		schema.IdempotencyKey: {code(`"later"`), func(o *outcome) string { return show(o.b.Key == nil, o.b.KeyRequired, o.b.NoDedup) }, "true false false"},
		schema.IdempotencyTTL: {time.Hour, func(o *outcome) string { return show(o.b.IdempotencyTTL) }, "1h0m0s"},
		schema.OnConflict:     {"reject", func(o *outcome) string { return o.b.OnConflict }, "reject"},
		schema.OnAmbiguous:    {"run", func(o *outcome) string { return o.b.OnAmbiguous }, "refuse"},
		schema.ForwardKey:     {"_meta.k", func(o *outcome) string { return o.b.ForwardKey }, "_meta.k"},
		schema.CacheKey:       {code(`"later"`), func(o *outcome) string { return show(o.b.NoCache, o.b.CacheKey == nil) }, "true true"},
		schema.BreakerScope:   {code(`"later"`), func(o *outcome) string { return o.b.BreakerScope }, "server"},
		schema.RateLimitKey:   {code(`"later"`), func(o *outcome) string { return o.b.RateLimitKey }, ""},
		schema.CallTimeout:    {time.Minute, func(o *outcome) string { return show(o.b.CallTimeout) }, "1m0s"},
		schema.TotalTimeout:   {time.Minute, func(o *outcome) string { return show(o.b.TotalTimeout) }, "1m0s"},
		schema.MaxCallTime:    {time.Minute, func(o *outcome) string { return show(o.b.MaxCallTime) }, "1m0s"},
		schema.MaxRetries:     {int64(7), func(o *outcome) string { return show(o.b.MaxRetries) }, "7"},
		schema.Invalidates:    {[]string{"later"}, func(o *outcome) string { return show(o.b.InvalidatesAll, o.b.InvalidatesStated, len(o.b.Invalidates)) }, "true true 0"},
		schema.Validate:       {"warn", func(o *outcome) string { return o.b.ValidateResults }, "warn"},
		schema.Retry:          {true, func(o *outcome) string { return show(o.retry.Retry) + " " + o.retry.Rule }, "false errs"},
		schema.RetryUnsafe:    {true, func(o *outcome) string { return show(o.retry.Unsafe) }, "false"},
		schema.RetryDelay:     {time.Minute, func(o *outcome) string { return show(o.retry.Delay, o.retry.DelayStated) }, "1m0s true"},
		schema.BreakerFailure: {false, func(o *outcome) string {
			failed, rule := o.plan.BreakerFailure(o.c, f, nil)
			return show(failed) + " " + rule
		}, "true otherwise"},
		schema.CacheTTL: {time.Minute, func(o *outcome) string {
			ttl, rule := o.plan.CacheTTL(o.c, []byte(`{}`), 0)
			return show(ttl) + " " + rule
		}, "0s errs"},
		schema.StaleIfError: {time.Minute, func(o *outcome) string {
			d, rule := o.plan.StaleIfError(o.c, f)
			return show(d) + " " + rule
		}, "0s errs"},
	}
	for _, phase := range Phases {
		for _, d := range phase.Decisions() {
			if questions[questionOf(d)].constant {
				continue
			}
			tc, ok := cases[d]
			if !ok {
				t.Errorf("%s has no careful side in this table", d)
				continue
			}
			t.Run(string(d), func(t *testing.T) {
				plan := mustCompile(t, newRule("errs", "", d, code(`args.missing`)), newRule("later", "", d, tc.later)).For("t")
				o := outcome{plan: plan, c: newCall(`{}`)}
				plan.Before(o.c, &o.b)
				o.retry = plan.AfterAttempt(o.c, f, 1, time.Second)
				if got := tc.got(&o); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				want := EvalError{Decision: string(d), Rule: "errs", Message: "f:1:6: no such key: missing"}
				if len(o.c.Errors) != 1 || o.c.Errors[0] != want {
					t.Errorf("errors %+v, want %+v", o.c.Errors, want)
				}
			})
		}
	}
}

func TestAnswersOfTheWrongTypeAreErrors(t *testing.T) {
	const args = `{"s":"30s","n":1,"nan":0,"list":[1],"huge":1e300,"words":["none"],"nil":null}`
	for _, tc := range []struct {
		decision schema.Decision
		value    code
		want     string // of the message
	}{
		{schema.Effects, `args.s`, `expected one of none, idempotent, unsafe, unannotated, got "30s"`},
		{schema.Effects, `args.n`, `expected one of none, idempotent, unsafe, unannotated, got int`},
		{schema.Deny, `args.nil`, `expected a string, got null`},
		{schema.CallTimeout, `args.s`, `expected a duration or a number of seconds, got a string; write duration(…) around it`},
		{schema.CallTimeout, `args.n - 1`, `a timeout must be more than 0`},
		{schema.CallTimeout, `args.n / 0`, `division by zero`},
		{schema.CallTimeout, `args.huge`, `1e+300 is no number of seconds`},
		{schema.CallTimeout, `0.0 / double(args.nan)`, `NaN is no number of seconds`},
		{schema.IdempotencyTTL, `args.n * 9223372036854775807`, `a duration of 9223372036854775807 seconds is longer than a year`},
		{schema.MaxRetries, `args.s`, `expected an int, got string`},
		{schema.MaxRetries, `dyn(1.5 * double(args.n))`, `expected a whole number, got 1.5`},
		{schema.BreakerScope, `args.list`, `expected a string, got list`},
		{schema.ForwardKey, `args.s`, `expected _meta.NAME or arguments.NAME, got "30s"`},
		{schema.Invalidates, `args.list`, `item 1: expected a glob or {tool, args}, got int`},
		{schema.Invalidates, `args.s`, `expected a list of tools, got string`},
		{schema.Invalidates, `[{"args": args}]`, `item 1: expected {"tool": …, "args": …} with a string for tool`},
		{schema.Invalidates, `[{"tool": "x", "args": args.n}]`, `item 1: expected a map of arguments, got int`},
		{schema.IdempotencyKey, `[0.0 / double(args.nan)]`, `the number NaN has no JSON form`},
		{schema.IdempotencyKey, `{1: args.n, "1": args.n}`, `two keys of a map read "1"`},
		{schema.IdempotencyKey, `[type(args.n)]`, `a value of type type has no JSON form`},
	} {
		t.Run(string(tc.value), func(t *testing.T) {
			c := newCall(args)
			before(t, c, newRule("r", "", tc.decision, tc.value))
			if len(c.Errors) != 1 || !strings.HasSuffix(c.Errors[0].Message, ": "+tc.want) {
				t.Errorf("errors %v, want %s", c.Errors, tc.want)
			}
		})
	}
}

func TestAWhenThatErrsSkipsItsRule(t *testing.T) {
	for _, when := range []code{`args.missing == 1`, `args.s`, `args.s + 1 == 2`, `args.missing || false`} {
		c := newCall(`{"s":"x"}`)
		b := before(t, c, newRule("errs", when, schema.MaxRetries, int64(9), schema.Deny, code(`"no"`)))
		if b.MaxRetries != 3 || b.Deny != "" || len(c.Errors) != 1 || c.Errors[0].Decision != "when" {
			t.Errorf("%s: %d retries, deny %q, errors %v", when, b.MaxRetries, b.Deny, c.Errors)
		}
	}
}

func TestEvaluationIsBounded(t *testing.T) {
	list := `[` + strings.Repeat("1,", 2000) + `1]`
	long := strings.Repeat("ab", 1<<20)
	for name, when := range map[string]code{
		"nested loops":      `args.l.all(a, args.l.all(b, args.l.all(c, c == a + b - a)))`,
		"growing strings":   `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30].map(i, args.s + args.s).size() > 0`,
		"hashing in a loop": `args.l.all(a, hash(args) != "")`,
		"pattern in a loop": `args.l.all(a, !args.t.matches("(a|b)*c"))`,
		"doubling":          `cel.bind(a, args.s+args.s, cel.bind(b, a+a+a+a, cel.bind(c, b+b+b+b, cel.bind(d, c+c+c+c, d+d+d+d+d+d)))).size() > 0`,
		"range of ranges":   `lists.range(10000 * args.l[0]).all(i, lists.range(10000).size() > 0)`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(`{"l":` + list + `,"s":"` + long + `","t":"` + long[:100<<10] + `"}`)
			before(t, c, newRule("r", when, schema.MaxRetries, int64(9)))
			if len(c.Errors) != 1 || !strings.Contains(c.Errors[0].Message, "cost limit") {
				t.Errorf("errors %v, want the cost limit's", c.Errors)
			}
		})
	}
}

func TestFunctionsRefuseArgumentsThatWouldBlowUp(t *testing.T) {
	list := `[` + strings.Repeat("1,", 2000) + `1]`
	long := strings.Repeat("ab", 1<<20)
	for name, when := range map[string]code{
		"pattern on a long text": `args.s.matches("x")`,
		"pattern of the caller":  `"x".matches(args.p)`,
		"extract":                `regex.extract(args.s, "x").hasValue()`,
		"replacing each gap":     `args.t.replace("", args.t) == ""`,
		"replacing by pattern":   `regex.replace(args.t, "a", args.t) == ""`,
		"splitting":              `args.s.split("").size() > 0`,
		"joining":                `args.l.map(x, string(x)).join(args.s) == ""`,
		"sets":                   `sets.contains(args.l, args.l)`,
		"distinct":               `args.l.distinct().size() > 0`,
		"range":                  `lists.range(args.big).size() > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall(`{"l":` + list + `,"s":"` + long + `","t":"` + long[:100<<10] + `","p":"(a{30}){30}","big":1000000000}`)
			before(t, c, newRule("r", when, schema.MaxRetries, int64(9)))
			if len(c.Errors) != 1 {
				t.Fatalf("errors %v, want one", c.Errors)
			}
			if m := c.Errors[0].Message; !strings.Contains(m, "too large") && !strings.Contains(m, "exceeds") {
				t.Errorf("error %s", m)
			}
		})
	}
}
