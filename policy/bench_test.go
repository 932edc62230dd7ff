package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// fourDecisions read the arguments.
func fourDecisions() []schema.Rule {
	return []schema.Rule{
		newRule("key", "", schema.IdempotencyKey, code(`[tool.name, args.order, args.amount]`)),
		newRule("cache", "", schema.CacheKey, code(`[args.region, args.order]`)),
		newRule("scope", "", schema.BreakerScope, code(`has(args.region) ? args.region : "default"`)),
		newRule("rate", "", schema.RateLimitKey, code(`tool.name + "/" + args.region`)),
	}
}

const smallArgs = `{"order":"ord_8f3k2j1m9q","amount":1299,"region":"eu-west-1","d":0}`

func BenchmarkBeforeFourDecisions(b *testing.B) {
	plan := mustCompile(b, fourDecisions()...).For("t")
	c := newCall(smallArgs)
	var out Before
	b.ReportAllocs()
	for b.Loop() {
		plan.Before(c, &out)
	}
	if len(c.Errors) > 0 {
		b.Fatal(c.Errors)
	}
}

func BenchmarkBeforeLiteral(b *testing.B) {
	plan := mustCompile(b,
		newRule("lit", `tool.name.startsWith("t")`, schema.Effects, "none", schema.IdempotencyTTL, time.Minute, schema.BreakerScope, code(`"payments"`)),
	).For("t")
	c := newCall(smallArgs)
	var out Before
	b.ReportAllocs()
	for b.Loop() {
		plan.Before(c, &out)
	}
}

func BenchmarkAfterAttempt(b *testing.B) {
	plan := mustCompile(b).For("t")
	c := newCall(smallArgs)
	var out Before
	plan.Before(c, &out)
	f := &Failure{Kind: "timeout", Delivery: "unknown", Transient: true}
	b.ReportAllocs()
	for b.Loop() {
		if !plan.AfterAttempt(c, f, 1, time.Second).Retry {
			b.Fatal("not retried")
		}
	}
}

func BenchmarkBreakerFailure(b *testing.B) {
	plan := mustCompile(b).For("t")
	c := newCall(smallArgs)
	b.ReportAllocs()
	for b.Loop() {
		plan.BreakerFailure(c, nil, nil)
	}
}

func BenchmarkFor(b *testing.B) {
	p := mustCompile(b, fourDecisions()...)
	b.ReportAllocs()
	for b.Loop() {
		p.For("t")
	}
}

func BenchmarkCompile(b *testing.B) {
	s := newServer(fourDecisions()...)
	b.ReportAllocs()
	for b.Loop() {
		Compile(s)
	}
}

// rulesForTools are for many tools, two for each, in the forms that people write; the tools are named tool_0, tool_1, …
func rulesForTools(n int) []schema.Rule {
	rules := make([]schema.Rule, n)
	for i := range rules {
		tool := fmt.Sprintf("tool_%d", i/2)
		name := fmt.Sprintf("r%d", i)
		switch i % 5 {
		case 0:
			rules[i] = newRule(name, code(fmt.Sprintf(`tool.name == %q && args.amount > %d`, tool, i)), schema.IdempotencyKey, code(`[args.order, args.amount]`))
		case 1:
			rules[i] = newRule(name, code(fmt.Sprintf(`glob(tool.name, %q)`, tool)), schema.BreakerScope, code(`"in " + args.region`))
		case 2:
			rules[i] = newRule(name, code(fmt.Sprintf(`tool.name.matches("^%s$") && has(args.region)`, tool)), schema.RateLimitKey, code(`args.region`))
		case 3:
			rules[i] = newRule(name, code(fmt.Sprintf(`tool.name in [%q] && error.kind == "rpc"`, tool)), schema.Retry, code(`error.code == -32000`))
		case 4:
			rules[i] = forTools(tool, newRule(name, `tool.effects == "none" && args.d == 0`, schema.CacheTTL, time.Minute))
		}
	}
	return rules
}

// decideAll takes a call of the tool through all of its phases.
func decideAll(plan *Plan, c *Call, out *Before, tool string) {
	c.Reset()
	c.Tool, c.Server, c.Client, c.Args = Tool{Name: tool, Annotated: true, ReadOnly: true}, &noPeer, &noPeer, []byte(smallArgs)
	plan.Before(c, out)
	plan.AfterAttempt(c, &Failure{Kind: "rpc", Code: -32000, Delivery: "answered", Transient: true}, 1, time.Second)
	plan.BreakerFailure(c, nil, nil)
	plan.CacheTTL(c, nil, time.Second)
}

// BenchmarkScale measures all decisions of a call under 1000 rules for 500 tools, and reports the ratio to what they cost under
// the 10 of them that are for the tools called, measured in turns.
func BenchmarkScale(b *testing.B) {
	const tools = 5
	var plans [2][tools]*Plan
	for i, p := range []*Policy{mustCompile(b, rulesForTools(2*tools)...), mustCompile(b, rulesForTools(1000)...)} {
		for t := range tools {
			plans[i][t] = p.For(fmt.Sprintf("tool_%d", t))
		}
	}
	var ratios []float64
	var out Before
	c := newCall(smallArgs)
	for b.Loop() {
		var spent [2]time.Duration
		for i := range plans {
			start := time.Now()
			for _, plan := range plans[i] {
				decideAll(plan, c, &out, plan.tool)
			}
			spent[i] = time.Since(start)
		}
		ratios = append(ratios, float64(spent[1])/float64(spent[0]))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "×ten-rules")
}

// BenchmarkFirstCall measures what is found out about a tool at its first call, under 1000 rules.
func BenchmarkFirstCall(b *testing.B) {
	p := mustCompile(b, rulesForTools(1000)...)
	c, out := newCall(smallArgs), Before{}
	b.ReportAllocs()
	for b.Loop() {
		decideAll(p.For("tool_1"), c, &out, "tool_1")
	}
}

// BenchmarkCompileMany compiles 1000 rules.
func BenchmarkCompileMany(b *testing.B) {
	s := newServer(rulesForTools(1000)...)
	b.ReportAllocs()
	for b.Loop() {
		Compile(s)
	}
}
