package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

const traced = `
servers:
  s:
    command: s
    call_timeout: 10s
    policy:
      - name: known
        when: tool.name == "read" && args.size < 10
        max_retries: 1
        cache_ttl: 'has(result.etag) ? duration("1m") : duration("0s")'
      - name: named
        when: tool.name == "write"
        effects: 'args.dry ? "none" : "unsafe"'
        idempotency_key: args.id
      - name: twice
        when: error.kind == "timeout" || error.code in [1, 2].filter(x, x > 1)
        retry: attempt < 2
        retry_delay: 'cel.bind(n, attempt * 2, n > 3 ? duration("9s") : duration("3s"))'
`

// watch compiles the policy and returns a call of a tool whose decisions are taken down.
func watch(t *testing.T, tool, args string) (*policy.Plan, *policy.Call, map[schema.Decision]policy.Decided, map[schema.Decision][]policy.Considered) {
	t.Helper()
	cfg, findings := schema.Load("a.yaml", []byte(traced), nil)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	p, findings := policy.Compile(cfg.Servers[0])
	if p == nil {
		t.Fatal(findings)
	}
	decided := map[schema.Decision]policy.Decided{}
	considered := map[schema.Decision][]policy.Considered{}
	c := &policy.Call{
		Tool: policy.Tool{Name: tool}, Args: []byte(args), Server: &policy.Peer{Name: "s"}, Client: &policy.Peer{}, Now: time.Unix(0, 0),
	}
	c.Observe = func(d policy.Decided) {
		decided[d.Decision], considered[d.Decision] = d, d.Considered()
	}
	return p.For(tool), c, decided, considered
}

func TestDecisionsAreObservedWithTheirRules(t *testing.T) {
	plan, c, decided, considered := watch(t, "write", `{"dry":true,"id":"x"}`)
	var b policy.Before
	plan.Before(c, &b)
	for decision, want := range map[schema.Decision]struct {
		rule  string
		value any
	}{
		schema.Effects:        {"named", "none"},
		schema.IdempotencyKey: {"named", policy.Key(`"x"`)},
		schema.CallTimeout:    {"call_timeout", 10 * time.Second},
		schema.MaxRetries:     {"defaults", 3},
		schema.Deny:           {"", ""},
		schema.CacheTTL:       {"otherwise", time.Duration(0)},
	} {
		if d := decided[decision]; d.Rule != want.rule || d.Value != want.value {
			t.Errorf("%s: %v by %q, want %v by %q", decision, d.Value, d.Rule, want.value, want.rule)
		}
	}
	// What effects was decided on is what the tool's hints said, not what came of it.
	if last := considered[schema.Effects]; len(last) != 1 || last[0].Fate != policy.Took || last[0].Values[0].Value != `"none"` {
		t.Errorf("effects: %+v", last)
	}
	// Rules that the tool's name alone rules out are told of too.
	if first := considered[schema.MaxRetries][0]; first.Rule != "known" || first.Fate != policy.WhenFalse || part(first.When, `tool.name == "read"`) != "false" ||
		part(first.When, "args.size < 10") != "" {
		t.Errorf("max_retries: %+v", first)
	}
}

func TestFailedConditionsAreTold(t *testing.T) {
	plan, c, _, considered := watch(t, "read", `{}`)
	var b policy.Before
	plan.Before(c, &b)
	if first := considered[schema.MaxRetries][0]; first.Fate != policy.WhenFailed || first.When.Err != "no such key: size" || part(first.When, "args.size") != "failed" {
		t.Errorf("max_retries: %+v", first)
	}
}

func TestWhatFollowsAnAttemptIsObserved(t *testing.T) {
	plan, c, decided, considered := watch(t, "read", `{"size":1}`)
	var b policy.Before
	plan.Before(c, &b)
	if _, asked := decided[schema.CacheTTL]; asked {
		t.Error("cache_ttl is decided before there is a result")
	}
	plan.AfterAttempt(c, &policy.Failure{Kind: "timeout", Transient: true}, 1, time.Second)
	if d := decided[schema.Retry]; d.Rule != "twice" || d.Value != true {
		t.Errorf("retry: %v by %q", d.Value, d.Rule)
	}
	if d := decided[schema.RetryDelay]; d.Rule != "twice" || d.Value != 3*time.Second {
		t.Errorf("retry_delay: %v by %q", d.Value, d.Rule)
	}
	if delay := considered[schema.RetryDelay][0].Values[0]; part(delay, "n > 3") != "false" || delay.Value != `duration("3s")` {
		t.Errorf("retry_delay: %+v", delay)
	}
	if when := considered[schema.Retry][0].When; part(when, "error.code in [1, 2].filter(x, x > 1)") != "" {
		t.Errorf("what was not reached has a value: %+v", when)
	}
	plan.CacheTTL(c, []byte(`{"etag":"7"}`), time.Second)
	if d := decided[schema.CacheTTL]; d.Rule != "known" || d.Value != time.Minute || part(considered[schema.CacheTTL][0].Values[0], "has(result.etag)") != "true" {
		t.Errorf("cache_ttl: %v by %q, %+v", d.Value, d.Rule, considered[schema.CacheTTL])
	}
}

// part is the value of a part of an expression.
func part(e *policy.Evaluated, text string) string {
	for _, p := range e.Parts {
		if strings.TrimSpace(p.Text) == text {
			return p.Value
		}
	}
	return "there is no such part"
}

func TestStatedRulesListTheirConditions(t *testing.T) {
	cfg, _ := schema.Load("a.yaml", []byte(traced), nil)
	p, _ := policy.Compile(cfg.Servers[0])
	var conditions []string
	for _, r := range p.Stated() {
		if r.Builtin || r.When == nil {
			continue
		}
		for _, part := range r.When.Parts {
			if part.Boolean {
				conditions = append(conditions, part.Text)
			}
		}
	}
	want := `tool.name == "read"|tool.name == "read" && args.size < 10|args.size < 10|tool.name == "write"|error.kind == "timeout"|` +
		`error.kind == "timeout" || error.code in [1, 2].filter(x, x > 1)|error.code in [1, 2].filter(x, x > 1)`
	if got := strings.Join(conditions, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
