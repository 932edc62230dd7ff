package policy

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

func TestLiteralDecisionsAllocateNothing(t *testing.T) {
	plan := mustCompile(t,
		newRule("r", `tool.name.startsWith("t")`, schema.Effects, "none", schema.IdempotencyTTL, time.Minute, schema.BreakerScope, code(`"payments"`),
			schema.Invalidates, []string{"a*", "b"}, schema.IdempotencyKey, code(`tool.name`), schema.CacheTTL, time.Minute),
		newRule("limit", "", schema.Limit, schema.RateLimit{Calls: 60, Per: time.Minute}),
	).For("t")
	c := newCall(smallArgs)
	var b Before
	if n := testing.AllocsPerRun(100, func() {
		plan.Before(c, &b)
		plan.CacheTTL(c, nil, 0)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if b.BreakerScope != "payments" || string(b.Key) != `"t"` || len(b.Invalidates) != 2 {
		t.Errorf("decided %+v", b)
	}
	if c.memo.argsReady {
		t.Error("the arguments were looked at")
	}
}

func TestDecisionsOnArgumentsAllocateLittle(t *testing.T) {
	plan := mustCompile(t, fourDecisions()...).For("t")
	c := newCall("")
	var b Before
	raw := []byte(smallArgs)
	if n := testing.AllocsPerRun(100, func() {
		c.Reset()
		c.Tool, c.Args = Tool{Name: "t"}, raw
		plan.Before(c, &b)
	}); n > 30 {
		t.Errorf("%v allocations", n)
	}
}

func TestExpressionsThatDoNotTouchTheArgumentsDoNotScanThem(t *testing.T) {
	plan := mustCompile(t, newRule("r", `tool.effects == "none" && client.name != ""`, schema.BreakerScope, code(`client.name + server.version`), schema.IdempotencyKey, code(`[tool.name, meta.k]`))).For("t")
	c := newCall(`this is no JSON`)
	c.Meta = []byte(`{"k":1}`)
	var b Before
	plan.Before(c, &b)
	if len(c.Errors) > 0 || string(b.Key) != `["t",1]` {
		t.Errorf("key %s, errors %v", b.Key, c.Errors)
	}
}
