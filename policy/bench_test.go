package policy

import (
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
