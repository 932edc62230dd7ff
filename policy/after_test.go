package policy

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

var timeout = Failure{Kind: "timeout", Message: "timed out", Text: "timed out", Delivery: "unknown", Transient: true}

func TestBuiltInRetry(t *testing.T) {
	for _, tc := range []struct {
		name    string
		tool    Tool
		failure Failure
		want    bool
		rule    string
	}{
		{"read after a timeout", Tool{Annotated: true, ReadOnly: true}, timeout, true, "transient"},
		{"idempotent after a timeout", Tool{Annotated: true, Idempotent: true}, timeout, true, "transient"},
		{"unannotated after a timeout", Tool{}, timeout, true, "transient"},
		{"unsafe after a timeout", Tool{Annotated: true}, timeout, false, "otherwise"},
		{"read after invalid params", Tool{Annotated: true, ReadOnly: true}, Failure{Kind: "rpc", Code: -32602, Delivery: "rejected"}, false, "otherwise"},
		{"unsafe while overloaded", Tool{Annotated: true}, Failure{Kind: "overloaded", Code: -32023, Delivery: "rejected"}, true, "overloaded"},
		{"isError", Tool{Annotated: true, ReadOnly: true}, Failure{Kind: "tool", Text: "rate limit exceeded", Delivery: "answered"}, false, "otherwise"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCall("")
			c.Tool = tc.tool
			c.Tool.Name = "t"
			plan := mustCompile(t).For("t")
			var b Before
			plan.Before(c, &b)
			r := plan.AfterAttempt(c, &tc.failure, 1, time.Second)
			if r.Retry != tc.want || r.Rule != tc.rule || r.Unsafe || r.DelayStated {
				t.Errorf("got %+v, want %v by %q", r, tc.want, tc.rule)
			}
		})
	}
}

func TestAfterAttempt(t *testing.T) {
	f := &Failure{Kind: "rpc", Code: -32000, Message: "busy", Text: "busy", Delivery: "answered", Transient: true,
		RetryAfter: 1500 * time.Millisecond, Data: []byte(` {"retryable":true,"id":9007199254740993,"wait":2} `)}
	for _, tc := range []struct {
		rule schema.Rule
		want string
	}{
		{newRule("r", "", schema.Retry, code(`error.code == -32000 && error.data.retryable`)), "true false 0s false"},
		{newRule("r", "", schema.Retry, code(`error.data.id == 9007199254740993`)), "true false 0s false"},
		{newRule("r", "", schema.Retry, code(`attempt < 2 && elapsed < duration("10s")`)), "false false 0s false"},
		{newRule("r", `error.kind == "rpc" && error.delivery == "answered"`, schema.Retry, true, schema.RetryUnsafe, true), "true true 0s false"},
		{newRule("r", "", schema.RetryDelay, code(`error.retry_after + duration("1s")`)), "true false 2.5s true"},
		{newRule("r", "", schema.RetryDelay, code(`error.data.wait * attempt`)), "true false 4s true"},
		{newRule("r", "", schema.RetryDelay, 7*time.Second), "true false 7s true"},
		{newRule("r", "", schema.Retry, false, schema.RetryDelay, code(`args.never.asked`), schema.RetryUnsafe, code(`args.never.asked`)), "false false 0s false"},
		{newRule("r", "", schema.Retry, code(`error.data == null`)), "false false 0s false"},
	} {
		c := newCall("{}")
		r := mustCompile(t, tc.rule).For("t").AfterAttempt(c, f, 2, 3*time.Second)
		if got := fmt.Sprint(r.Retry, r.Unsafe, r.Delay, r.DelayStated); got != tc.want || len(c.Errors) > 0 {
			t.Errorf("%v: got %s, errors %v; want %s", tc.rule.Decides, got, c.Errors, tc.want)
		}
	}
}

func TestBreakerFailure(t *testing.T) {
	rules := []schema.Rule{
		newRule("slow answers", `error.kind == "" && result.structuredContent.degraded`, schema.BreakerFailure, true),
		newRule("quota", `error.kind == "tool"`, schema.BreakerFailure, code(`text(result).contains("quota")`)),
	}
	for _, tc := range []struct {
		name    string
		failure *Failure
		result  string
		want    bool
		rule    string
	}{
		{"success", nil, `{"structuredContent":{"degraded":false}}`, false, "otherwise"},
		{"success as zero value", &Failure{}, `{"structuredContent":{"degraded":false}}`, false, "otherwise"},
		{"degraded", nil, `{"structuredContent":{"degraded":true}}`, true, "slow answers"},
		{"timeout", &timeout, ``, true, "otherwise"},
		{"isError", &Failure{Kind: "tool"}, `{"isError":true,"content":[{"type":"text","text":"out of quota"}]}`, true, "quota"},
		{"another isError", &Failure{Kind: "tool"}, `{"isError":true,"content":[]}`, false, "quota"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var result []byte
			if tc.result != "" {
				result = []byte(tc.result)
			}
			c := newCall("")
			failed, rule := mustCompile(t, rules...).For("t").BreakerFailure(c, tc.failure, result)
			if failed != tc.want || rule != tc.rule || len(c.Errors) > 0 {
				t.Errorf("%v by %q, errors %v; want %v by %q", failed, rule, c.Errors, tc.want, tc.rule)
			}
		})
	}
}

func TestCacheTTLAndStaleIfError(t *testing.T) {
	plan := mustCompile(t,
		newRule("fresh", `has(result.ttl)`, schema.CacheTTL, code(`result.ttl`)),
		newRule("slow", `elapsed > duration("5s")`, schema.CacheTTL, 60*time.Second),
		newRule("stale", `error.kind == "timeout"`, schema.StaleIfError, time.Hour),
	).For("t")
	c := newCall("")
	for _, tc := range []struct {
		result  string
		elapsed time.Duration
		want    time.Duration
		rule    string
	}{
		{`{"ttl":30}`, time.Second, 30 * time.Second, "fresh"},
		{`{"ttl":0}`, 9 * time.Second, 0, "fresh"},
		{`{}`, 9 * time.Second, time.Minute, "slow"},
		{`{}`, time.Second, 0, "otherwise"},
	} {
		if ttl, rule := plan.CacheTTL(c, []byte(tc.result), tc.elapsed); ttl != tc.want || rule != tc.rule {
			t.Errorf("%s after %v: %v by %q, want %v by %q", tc.result, tc.elapsed, ttl, rule, tc.want, tc.rule)
		}
	}
	if d, rule := plan.StaleIfError(c, &timeout); d != time.Hour || rule != "stale" {
		t.Errorf("after a timeout: %v by %q", d, rule)
	}
	if d, rule := plan.StaleIfError(c, &Failure{Kind: "exit"}); d != 0 || rule != "otherwise" {
		t.Errorf("after an exit: %v by %q", d, rule)
	}
	if len(c.Errors) > 0 {
		t.Errorf("errors: %v", c.Errors)
	}
}

func TestAWhenIsAskedOnceForThePhaseAndAgainForEachAttempt(t *testing.T) {
	plan := mustCompile(t,
		newRule("early", `args.missing`, schema.Retry, true, schema.RetryDelay, time.Second, schema.CacheTTL, time.Second),
		newRule("late", `attempt == 2 && error.transient`, schema.Retry, true, schema.RetryDelay, code(`args.nothing`), schema.RetryUnsafe, code(`attempt > 1`)),
		newRule("never", `error.data.x`, schema.Retry, true, schema.RetryUnsafe, true, schema.RetryDelay, time.Second),
	).For("t")
	c := newCall(`{}`)
	var b Before
	plan.Before(c, &b)
	for attempt := 1; attempt <= 3; attempt++ {
		r := plan.AfterAttempt(c, &timeout, attempt, time.Second)
		if r.Unsafe != (attempt == 2) || !r.Retry {
			t.Errorf("attempt %d: %+v", attempt, r)
		}
	}
	count := map[string]int{}
	for _, e := range c.Errors {
		count[e.Rule+" "+e.Decision]++
	}
	// early: once for the call. never: once an attempt, though three decisions ask.
	want := map[string]int{"early when": 1, "never when": 3, "late retry_delay": 1}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("errors by rule %v, want %v", count, want)
	}
}

func TestAWhenIsAskedAgainWhenTheEffectsChangeAfterAnAttempt(t *testing.T) {
	plan := mustCompile(t, newRule("r", `tool.effects == "unannotated"`, schema.Retry, true, schema.CacheTTL, time.Second), newRule("no", "", schema.Retry, false)).For("t")
	c := newCall("")
	c.Tool = Tool{Name: "t"}
	var b Before
	plan.Before(c, &b)
	if !plan.AfterAttempt(c, &timeout, 1, 0).Retry {
		t.Error("not retried while unannotated")
	}
	c.Tool.Effects = EffectsUnsafe
	if plan.AfterAttempt(c, &timeout, 2, 0).Retry {
		t.Error("retried though unsafe now")
	}
}

func TestPlansAreSafeForConcurrentUse(t *testing.T) {
	plan := mustCompile(t,
		newRule("r", `args.n > 0 && args.list.exists(x, x == args.n)`, schema.IdempotencyKey, code(`[args.n, args.list]`), schema.BreakerScope, code(`args.n + "x"`)),
		newRule("late", `error.transient && args.n + "x" != ""`, schema.Retry, true),
	).For("t")
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			c := newCall("")
			var b Before
			for range 50 {
				c.Reset()
				c.Tool = Tool{Name: "t", Annotated: true, ReadOnly: true}
				c.Args = fmt.Appendf(nil, `{"n":%d,"list":[1,2,3,4,5,6,7,8]}`, n+1)
				plan.Before(c, &b)
				if want := fmt.Sprintf(`[%d,[1,2,3,4,5,6,7,8]]`, n+1); string(b.Key) != want || b.BreakerScope != "server" {
					t.Errorf("key %s, want %s; scope %q", b.Key, want, b.BreakerScope)
				}
				if r := plan.AfterAttempt(c, &timeout, 1, 0); !r.Retry || r.Rule != "transient" {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	wg.Wait()
}
