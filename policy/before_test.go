package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

func TestBeforeTakesTheFirstRuleThatHoldsAndStatesTheDecision(t *testing.T) {
	rules := []schema.Rule{
		newRule("off", `args.kind == "a"`, schema.MaxRetries, int64(0)),
		forTools("other_*", newRule("elsewhere", "", schema.MaxRetries, int64(9), schema.CallTimeout, time.Second)),
		newRule("errs", `args.missing.deep`, schema.MaxRetries, int64(8)),
		newRule("scope only", "", schema.BreakerScope, code(`args.kind`)),
		newRule("b", `args.kind == "b"`, schema.MaxRetries, int64(2), schema.BreakerScope, code(`"never reached"`)),
		newRule("rest", "", schema.MaxRetries, int64(4), schema.CallTimeout, 7*time.Second),
		newRule("late", "", schema.MaxRetries, int64(6), schema.CallTimeout, 9*time.Second),
	}
	for kind, want := range map[string]int{"a": 0, "b": 2, "c": 4} {
		b := before(t, newCall(`{"kind":"`+kind+`"}`), rules...)
		if b.MaxRetries != want || b.BreakerScope != kind || b.CallTimeout != 7*time.Second {
			t.Errorf("kind %s: %d retries, scope %q, call timeout %v; want %d, the kind, 7s", kind, b.MaxRetries, b.BreakerScope, b.CallTimeout, want)
		}
	}
}

func TestBeforeDecisions(t *testing.T) {
	show := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	stated := func(b *Before) string { return show("%v %v", b.IdempotencyTTL, b.IdempotencyStated) }
	limit := schema.RateLimit{Calls: 60, Per: time.Minute}
	const args = `{"n":3,"f":1.5,"big":1e300,"neg":-4,"s":"txt","t":true,"order":{"id":9007199254740993}}`
	for _, tc := range []struct {
		name     string
		decision schema.Decision
		value    any
		got      func(*Before) string
		want     string
	}{
		{"nothing stated", schema.Retry, true, func(b *Before) string {
			return show("%s %q %v %s %q %q %v %v %d %v", b.Effects, b.Deny, b.IdempotencyStated, b.OnConflict, b.OnAmbiguous, b.BreakerScope, b.CallTimeout, b.MaxCallTime, b.MaxRetries, b.Limit)
		}, `none "" false replay "" "server" 30s 10m0s 3 <nil>`},

		{"effects", schema.Effects, "unsafe", func(b *Before) string { return b.Effects + " " + b.EffectsRule }, "unsafe r"},
		{"effects by arguments", schema.Effects, code(`args.n > 2 ? "idempotent" : "none"`), func(b *Before) string { return b.Effects }, "idempotent"},
		{"deny", schema.Deny, code(`args.n > 2 ? "n is " + string(args.n) : ""`), func(b *Before) string { return b.Deny + "; " + b.DenyRule }, "n is 3; r"},
		{"no deny", schema.Deny, code(`args.n > 9 ? "too many" : ""`), func(b *Before) string { return b.Deny + b.DenyRule }, ""},

		{"idempotency TTL", schema.IdempotencyTTL, time.Minute, stated, "1m0s true"},
		{"idempotency TTL in seconds", schema.IdempotencyTTL, code(`args.n`), stated, "3s true"},
		{"idempotency TTL as duration", schema.IdempotencyTTL, code(`duration("90s")`), stated, "1m30s true"},
		{"fraction of a second", schema.IdempotencyTTL, code(`args.f`), stated, "1.5s true"},
		{"less than nothing", schema.IdempotencyTTL, code(`args.neg`), stated, "0s true"},
		{"on_conflict", schema.OnConflict, "reject", func(b *Before) string { return b.OnConflict }, "reject"},
		{"on_conflict by arguments", schema.OnConflict, code(`args.t ? "reject" : "replay"`), func(b *Before) string { return b.OnConflict }, "reject"},
		{"on_ambiguous", schema.OnAmbiguous, "run", func(b *Before) string { return b.OnAmbiguous }, "run"},
		{"forward_key", schema.ForwardKey, "_meta.key", func(b *Before) string { return b.ForwardKey }, "_meta.key"},

		{"scope", schema.BreakerScope, code(`"payments"`), func(b *Before) string { return b.BreakerScope }, "payments"},
		{"scope by argument", schema.BreakerScope, code(`args.s`), func(b *Before) string { return b.BreakerScope }, "txt"},
		{"scope by a number", schema.BreakerScope, code(`args.order.id`), func(b *Before) string { return b.BreakerScope }, "9007199254740993"},
		{"no breaker", schema.BreakerScope, code(`""`), func(b *Before) string { return show("%q", b.BreakerScope) }, `""`},
		{"scope by tool", schema.BreakerScope, code(`server.name + "/" + tool.name`), func(b *Before) string { return b.BreakerScope }, "srv/t"},
		{"rate limit key", schema.RateLimitKey, code(`client.name + "/" + args.s`), func(b *Before) string { return b.RateLimitKey }, "claude/txt"},
		{"rate limit", schema.Limit, limit, func(b *Before) string { return show("%+v %s", *b.Limit, b.LimitOn) }, "{Calls:60 Per:1m0s Burst:60 MaxWait:0s} r"},

		{"call timeout", schema.CallTimeout, code(`args.n * 2`), func(b *Before) string { return b.CallTimeout.String() }, "6s"},
		{"max call time", schema.MaxCallTime, code(`args.n`), func(b *Before) string { return show("%v %v", b.MaxCallTime, b.TotalTimeout) }, "3s 3s"},
		{"retries", schema.MaxRetries, code(`args.n`), func(b *Before) string { return show("%d", b.MaxRetries) }, "3"},
		{"too many retries", schema.MaxRetries, code(`1000`), func(b *Before) string { return show("%d", b.MaxRetries) }, "10"},
		{"fewer retries than none", schema.MaxRetries, code(`args.neg`), func(b *Before) string { return show("%d", b.MaxRetries) }, "0"},

		{"validate results", schema.Validate, "enforce", func(b *Before) string { return b.ValidateResults }, "enforce"},
		{"back-off", schema.Backoff, "linear", func(b *Before) string { return show("%+v", b.Backoff) }, "{Base:500ms Max:20s Jitter:0.2 Kind:linear}"},
		{"breaker", schema.FailureThreshold, int64(2), func(b *Before) string { return show("%+v", b.Breaker) }, "{Threshold:2 Cooldown:30s Probes:1}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCall(args)
			b := before(t, c, newRule("r", "", tc.decision, tc.value))
			if got := tc.got(&b); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if len(c.Errors) > 0 {
				t.Errorf("errors: %v", c.Errors)
			}
		})
	}
}

func TestBeforeKeys(t *testing.T) {
	const args = `{"id":"a\u0041\"é","n":9007199254740993,"u":18446744073709551615,"one":1.0,"f":0.1,"nil":null,"empty":"","order":{"b":[1,{"y":2,"x":1}],"a":"x"},"t":true}`
	for _, tc := range []struct {
		value any
		want  string
	}{
		{code(`args.id`), `"aA\"é"`},
		{code(`args.n`), `9007199254740993`},
		{code(`args.u`), `18446744073709551615`},
		{code(`[args.one, 1, args.f, 1e21, -0.0]`), `[1,1,0.1,1e+21,0]`},
		{code(`args.order`), `{"a":"x","b":[1,{"x":1,"y":2}]}`},
		{code(`{"z": args.order.a, "a": [args.t, null]}`), `{"a":[true,null],"z":"x"}`},
		{code(`[b"\xff\x00", duration("90s"), timestamp("2030-01-02T03:04:05Z")]`), `["/wA=","1m30s","2030-01-02T03:04:05Z"]`},
		{code(`[now, client.name, meta]`), `["2030-01-02T03:04:05Z","claude",{}]`},
		{code(`args.?id`), `"aA\"é"`},
		{code(`[args.?missing]`), `[null]`},
		{code(`tool.name`), `"t"`},
		{code(`"constant"`), `"constant"`},
		{code(`[client]`), `[{"name":"claude","version":"9","protocol":"2025-06-18"}]`},

		// No opinion: the next rule is asked.
		{code(`args.nil`), `"next"`},
		{code(`null`), `"next"`},
		{code(`args.?missing`), `"next"`},
		{code(`args.empty`), `"next"`},
		{nil, `"next"`},

		{false, `off`},
		{code(`false`), `off`},
		{code(`args.t ? dyn(false) : args.id`), `off`},
	} {
		t.Run(fmt.Sprint(tc.value), func(t *testing.T) {
			c := newCall(args)
			b := before(t, c, newRule("r", "", schema.IdempotencyKey, tc.value), newRule("next", "", schema.IdempotencyKey, code(`"next"`)))
			got, rule := string(b.Key), "r"
			if b.NoDedup {
				got = "off"
			}
			if got == `"next"` {
				rule = "next"
			}
			if got != tc.want || b.KeyRule != rule || b.KeyRequired || b.KeyError != "" {
				t.Errorf("got %s by %q (required %v, error %q), want %s", got, b.KeyRule, b.KeyRequired, b.KeyError, tc.want)
			}
			if len(c.Errors) > 0 {
				t.Errorf("errors: %v", c.Errors)
			}
		})
	}
}

func TestBeforeRefusesACallWhoseRequiredKeyCannotBeComputed(t *testing.T) {
	for _, tc := range []struct {
		value    any
		required bool
		want     string // KeyError
	}{
		{code(`args.order.id`), true, "f:1:6: no such key: order"},
		{code(`args.order.id`), false, "f:1:6: no such key: order"},
		{code(`args.t`), true, "f:1:1: expected a string, list, map or false, got true"},
		{code(`args.nil`), true, "the key is null"},
		{nil, true, "the key is null"},
		{code(`args.nil`), false, ""},
	} {
		r := newRule("r", "", schema.IdempotencyKey, tc.value)
		if tc.required {
			r = required(r)
		}
		b := before(t, newCall(`{"nil":null,"t":true}`), r)
		if b.KeyRequired != tc.required || b.KeyError != tc.want || b.Key != nil {
			t.Errorf("%v: required %v, error %q, key %q; want %v, %q, none", tc.value, b.KeyRequired, b.KeyError, b.Key, tc.required, tc.want)
		}
	}
}

func TestBeforeDecidesTheCacheKey(t *testing.T) {
	for value, want := range map[code]string{
		`[args.a, tool.name]`: `[1,"t"]`,
		`args.nil`:            ``,
		`args.missing`:        `none`,
		`dyn(false)`:          `none`,
	} {
		b := before(t, newCall(`{"a":1,"nil":null}`), newRule("r", "", schema.CacheKey, value))
		got := string(b.CacheKey)
		if b.NoCache {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

func TestBeforeKeepsBothKeysApart(t *testing.T) {
	c := newCall(`{"a":"first","b":"second"}`)
	plan := mustCompile(t, newRule("r", "", schema.IdempotencyKey, code(`args.a`), schema.CacheKey, code(`args.b`))).For("t")
	var b Before
	for range 3 {
		plan.Before(c, &b)
		if string(b.Key) != `"first"` || string(b.CacheKey) != `"second"` {
			t.Fatalf("key %s, cache key %s", b.Key, b.CacheKey)
		}
	}
}

func TestDenyIsTheFirstReasonOfAnyRule(t *testing.T) {
	b := before(t, newCall(`{"path":"/etc/passwd"}`),
		newRule("home", "", schema.Deny, code(`args.path.startsWith("/home") ? "not at home" : ""`)),
		newRule("open", "", schema.Deny, ""),
		newRule("etc", "", schema.Deny, code(`args.path.startsWith("/etc") ? "not the system's files" : ""`)),
		newRule("all", "", schema.Deny, code(`"nothing at all"`)))
	if b.Deny != "not the system's files" || b.DenyRule != "etc" {
		t.Errorf("denied with %q by %q", b.Deny, b.DenyRule)
	}
}

func TestEffects(t *testing.T) {
	for _, tc := range []struct {
		tool  Tool
		trust bool
		want  string
	}{
		{Tool{}, true, EffectsUnannotated},
		{Tool{Annotated: true}, true, EffectsUnsafe},
		{Tool{Annotated: true, ReadOnly: true}, true, EffectsNone},
		{Tool{Annotated: true, Idempotent: true}, true, EffectsIdempotent},
		{Tool{Annotated: true, ReadOnly: true, Idempotent: true}, true, EffectsNone},
		{Tool{Annotated: true, ReadOnly: true}, false, EffectsUnsafe},
		{Tool{}, false, EffectsUnsafe},
	} {
		if got := tc.tool.AnnotatedEffects(tc.trust); got != tc.want {
			t.Errorf("%+v, trusted %v: %s, want %s", tc.tool, tc.trust, got, tc.want)
		}
	}
}

func TestEveryOtherExpressionSeesTheDecidedEffects(t *testing.T) {
	c := newCall(`{"q":1}`)
	c.Tool = Tool{Name: "t"} // unannotated
	b := before(t, c,
		newRule("search", `tool.effects == "unannotated" && has(args.q)`, schema.Effects, "none", schema.MaxRetries, int64(9)),
		newRule("reads", `tool.effects == "none"`, schema.MaxRetries, int64(7), schema.BreakerScope, code(`tool.effects`)))
	if b.Effects != EffectsNone || b.EffectsRule != "search" || c.Tool.Effects != EffectsNone || b.BreakerScope != "none" {
		t.Errorf("effects %q by %q, tool %q, scope %q", b.Effects, b.EffectsRule, c.Tool.Effects, b.BreakerScope)
	}
	if b.MaxRetries != 7 {
		t.Errorf("%d retries: the when of the first rule was not asked again after the effects were decided", b.MaxRetries)
	}
}

func TestUntrustedAnnotationsAreIgnoredUnlessARuleStatesEffects(t *testing.T) {
	s := newServer(forTools("read_*", newRule("r", "", schema.Effects, "none")))
	s.TrustAnnotations = false
	p, _ := Compile(s)
	for tool, want := range map[string]string{"read_file": EffectsNone, "list": EffectsUnsafe} {
		c := newCall("")
		c.Tool.Name = tool
		var b Before
		if p.For(tool).Before(c, &b); b.Effects != want {
			t.Errorf("%s: %s, want %s", tool, b.Effects, want)
		}
	}
}

func TestTotalTimeout(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rules []schema.Rule
		want  time.Duration
	}{
		{"nothing stated", nil, 55 * time.Second},
		{"stated", []schema.Rule{newRule("r", "", schema.TotalTimeout, 12*time.Second, schema.CallTimeout, 5*time.Second)}, 12 * time.Second},
		// 4 × 5 s and waits of 0.6, 1.2 and 2.4 s
		{"call timeout stated", []schema.Rule{newRule("r", "", schema.CallTimeout, 5*time.Second)}, 24200 * time.Millisecond},
		{"retries stated", []schema.Rule{newRule("r", "", schema.MaxRetries, int64(1))}, 60600 * time.Millisecond},
		{"no retries stated", []schema.Rule{newRule("r", "", schema.MaxRetries, int64(0))}, 30 * time.Second},
		// 4 × 30 s and waits of 10 (not 12), 10 and 10 s
		{"waits are capped", []schema.Rule{newRule("r", "", schema.BaseDelay, 10*time.Second, schema.MaxDelay, 10*time.Second)}, 150 * time.Second},
		// waits of 1.2, 2.4 and 3.6 s
		{"linear", []schema.Rule{newRule("r", "", schema.Backoff, "linear", schema.BaseDelay, time.Second)}, 127200 * time.Millisecond},
		{"constant", []schema.Rule{newRule("r", "", schema.Backoff, "constant", schema.BaseDelay, time.Second)}, 123600 * time.Millisecond},
		{"never beyond the absolute end", []schema.Rule{newRule("r", "", schema.CallTimeout, 5*time.Minute)}, 10 * time.Minute},
		{"stated beyond the absolute end", []schema.Rule{newRule("r", "", schema.TotalTimeout, time.Hour)}, 10 * time.Minute},
		{"by arguments", []schema.Rule{newRule("r", "", schema.CallTimeout, code(`args.t`))}, 24200 * time.Millisecond},
		{"by a when that fails", []schema.Rule{newRule("r", "args.t > 9", schema.CallTimeout, time.Second)}, 55 * time.Second},
		{"by an expression that errs", []schema.Rule{newRule("r", "", schema.CallTimeout, code(`args.missing`))}, 55 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if b := before(t, newCall(`{"t":5}`), tc.rules...); b.TotalTimeout != tc.want {
				t.Errorf("%v, want %v", b.TotalTimeout, tc.want)
			}
		})
	}
}

func TestInvalidates(t *testing.T) {
	const args = `{"path":"/a","also":["x_*"]}`
	for _, tc := range []struct {
		name  string
		value any
		want  string
	}{
		{"list", []string{"read_*", "list"}, "read_* list"},
		{"nothing", []string{}, ""},
		{"with arguments", []schema.Invalidation{{Tool: "read_*", Args: expr(`{"path": args.path}`)}, {Tool: "list"}}, `read_*{"path":"/a"} list`},
		{"with fixed arguments", []schema.Invalidation{{Tool: "read", Args: expr(`{"b": 1, "a": 2.0}`)}}, `read{"a":2,"b":1}`},
		{"expression of globs", code(`args.also + ["y"]`), "x_* y"},
		{"expression of maps", code(`[{"tool": "read", "args": {"p": args.path}}, {"tool": "list"}]`), `read{"p":"/a"} list`},
		{"by name", code(`["get_" + tool.name]`), "get_t"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCall(args)
			b := before(t, c, newRule("r", "", schema.Invalidates, tc.value), newRule("later", "", schema.Invalidates, []string{"everything"}))
			var got []string
			for _, i := range b.Invalidates {
				got = append(got, i.Tool+string(i.Args))
			}
			if strings.Join(got, " ") != tc.want || !b.InvalidatesStated || b.InvalidatesAll || len(c.Errors) > 0 {
				t.Errorf("got %q (stated %v, all %v, errors %v), want %q", got, b.InvalidatesStated, b.InvalidatesAll, c.Errors, tc.want)
			}
		})
	}
	if b := before(t, newCall(args)); b.InvalidatesStated || b.Invalidates != nil {
		t.Errorf("stated without a rule: %+v", b.Invalidates)
	}
}

func TestWhetherACallCanMeetACachedResult(t *testing.T) {
	reads := newRule("reads", `tool.effects == "none"`, schema.CacheTTL, 30*time.Second)
	for _, tc := range []struct {
		name  string
		rules []schema.Rule
		args  string
		want  bool
	}{
		{"nothing stated", nil, `{}`, false},
		{"a TTL", []schema.Rule{newRule("r", "", schema.CacheTTL, time.Second)}, `{}`, true},
		{"zero", []schema.Rule{newRule("r", "", schema.CacheTTL, time.Duration(0)), newRule("s", "", schema.CacheTTL, time.Second)}, `{}`, false},
		{"another tool's", []schema.Rule{forTools("u", newRule("r", "", schema.CacheTTL, time.Second))}, `{}`, false},
		{"an expression", []schema.Rule{newRule("r", "", schema.CacheTTL, code(`result.fresh ? 9 : 0`))}, `{}`, true},
		{"a when that holds", []schema.Rule{reads}, `{}`, true},
		{"a when that does not", []schema.Rule{newRule("r", `args.live`, schema.CacheTTL, time.Second)}, `{"live":false}`, false},
		{"zero under a when that holds", []schema.Rule{newRule("r", `args.live`, schema.CacheTTL, time.Duration(0)), reads}, `{"live":true}`, false},
		{"a when that is asked later", []schema.Rule{newRule("r", `result.ok`, schema.CacheTTL, time.Second)}, `{}`, true},
		{"zero under a when that is asked later", []schema.Rule{newRule("r", `result.ok`, schema.CacheTTL, time.Duration(0)), reads}, `{}`, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := before(t, newCall(tc.args), tc.rules...)
			if b.CacheMayFill != tc.want || b.CacheStated != tc.want {
				t.Errorf("may fill %v, stated %v; want %v", b.CacheMayFill, b.CacheStated, tc.want)
			}
		})
	}
}

func TestBeforeForgetsTheCallBefore(t *testing.T) {
	plan := mustCompile(t, newRule("r", `args.x == 1`, schema.IdempotencyKey, code(`args.x`), schema.Invalidates, code(`[string(args.x)]`), schema.Deny, code(`"no"`))).For("t")
	var b Before
	c := newCall(`{"x":1}`)
	plan.Before(c, &b)
	if b.Deny == "" || string(b.Key) != "1" || len(b.Invalidates) != 1 {
		t.Fatalf("first call: %+v", b)
	}
	c.Reset()
	c.Tool.Name, c.Args = "t", []byte(`{"x":2}`)
	plan.Before(c, &b)
	if b.Deny != "" || b.Key != nil || b.Invalidates != nil || b.KeyRule != "" {
		t.Errorf("second call: %+v", b)
	}
}
