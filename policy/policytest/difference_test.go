package policytest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/bentabol/mcp-retry/schema"
)

func side(t *testing.T, settings string) policytest.Side {
	t.Helper()
	cfg, findings := schema.Load("a.yaml", []byte("servers: {shop: {command: shop, "+settings+"}}"), nil)
	findings = slices.DeleteFunc(findings, func(f schema.Finding) bool { return f.ID == "unset-variable" })
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	compiled, _ := policy.Compile(cfg.Servers[0])
	return policytest.Side{Config: cfg, Policies: []*policy.Policy{compiled}}
}

// The tool is indented over several lines, as a snapshot has it.
const look = `{
  "name": "look",
  "annotations": {"readOnlyHint": true},
  "inputSchema": {"properties": {"sku": {"type": "string"}}, "required": ["sku"]}
}`

// A rule that only one of the configs has is a difference, whatever it decides, and so is a setting of the server.
func TestEveryDecisionAndSettingIsCompared(t *testing.T) {
	const cached = "cache: {tools: {look: 60}}, "
	for _, c := range []struct{ old, now, want string }{
		{"", "policy: [{name: r, retry_delay: 3}]", "retry_delay"},
		{"policy: [{name: r, retry_delay: 3}]", "policy: [{name: r, retry_delay: 4}]", "retry_delay"},
		{"", "policy: [{name: r, idempotency_key: args.sku}]", "idempotency_key"},
		{"policy: [{name: r, cache_key: args.sku}]", "", "cache_key"},
		{cached, cached + "policy: [{name: r, stale_if_error: 90}]", "stale_if_error"},
		{"", "rate_limit: {calls: 5, per: 1}", "rate_limit"},
		{"rate_limit: {calls: 5, per: 1}", "rate_limit: {calls: 5, per: 1, max_wait: 2}", "rate_limit"},
		{"", "validate_results: enforce", "validate_results"},
		{"", "retry_budget: {ratio: 0.1}", "retry_budget"},
		{"", "max_concurrency: 4", "max_concurrency"},
		{"", "errors: result", "errors"},
		{"", "restart: never", "restart"},
		{"", "cache: {max_entries: 5}", "cache.max_entries"},
		{"", "tool_filter: {deny: [none]}", "tool_filter.deny"},
		{"", "args: [-v]", "args"},
		{"args: [a b]", "args: [a, b]", "args"},
		{"", "cwd: /srv", "cwd"},
		{"env: {A: x}", "env: {B: x}", "env"},
		{"env: {A: x}", "env: {A: y}", "env.A"},
		{"env: {A: '${NOT_SET}'}", "env: {A: '${NOT_SET_EITHER}'}", "env.A"},
		{"", "env: {A: '${NOT_SET}'}", "env"},
		{"", "tool_filter: {deny: [look]}", "deny"},
		{"policy: [{name: r, idempotency_key: args.none, required: true}]", "tool_filter: {deny: [look]}", "deny"},
		{"", "policy: [{name: r, idempotency_key: meta.key, required: true}]", "required"},
		{"policy: [{name: r, idempotency_key: args.sku, required: true}]", "policy: [{name: r, idempotency_key: args.sku}]", "required"},
	} {
		d := policytest.Compare(side(t, c.old), side(t, c.now), func(string) []json.RawMessage { return []json.RawMessage{json.RawMessage(look)} })
		var found []string
		for _, tool := range d.Tools {
			for _, change := range tool.Changes {
				found = append(found, string(change.Decision))
			}
		}
		for _, server := range d.Servers {
			for _, change := range server.Settings {
				found = append(found, change.Setting)
			}
		}
		if !slices.Contains(found, c.want) {
			t.Errorf("{%s} and {%s}: found %q, want %s", c.old, c.now, found, c.want)
		}
		if d := policytest.Compare(side(t, c.now), side(t, c.now), func(string) []json.RawMessage { return []json.RawMessage{json.RawMessage(look)} }); len(d.Tools)+len(d.Servers) > 0 {
			t.Errorf("{%s} differs from itself: %+v", c.now, d)
		}
	}
}

// A rule about errors or results that it names by a code or a text is a difference after such a one, and is told after that alone.
func TestDifferencesAfterWhatRulesName(t *testing.T) {
	const rule = "policy: [{name: r, when: '%s', retry: true}]"
	for _, c := range []struct {
		old, now string
		want     []string // the moments of the changes
	}{
		{"error.code == 5", "false", []string{"error 5"}},
		{"error.code == 5", "error.code == 7", []string{"error 5", "error 7"}},
		{"error.code >= 400", "error.code > 400", []string{"error 400"}},
		{"error.code in [5, 429]", "error.code in [5]", []string{"error 429"}},
		{`error.text.contains("rate limit")`, `error.text.contains("quota")`, []string{`a tool error "rate limit"`, `a tool error "quota"`}},
		{`error.kind == "rpc" && error.message.contains("gone") && error.code == 404`, "false", []string{`error 404 "gone"`}},
		{`error.text.matches("(?i)rate.?limit|too m[a-z]ny")`, "false", []string{`a tool error "ratelimit"`, `a tool error "too many"`}},
		{"has(error.data.status) && error.data.status == 429", "false", []string{"another error with data.status 429"}},
		{`error.code == 9 && error.data.a.b == "quota"`, "false", []string{`error 9 with data.a.b "quota"`}},
		{`error.kind == "rpc" && !error.transient`, "false", []string{"another error"}},
		{`error.kind == "malformed"`, "false", []string{"a malformed answer"}},
	} {
		d := compareLook(side(t, fmt.Sprintf(rule, c.old)), side(t, fmt.Sprintf(rule, c.now)))
		for _, want := range c.want {
			if !slices.Contains(momentsOf(d, schema.Retry), want) {
				t.Errorf("%s and %s: differences after %q, want one after %s", c.old, c.now, momentsOf(d, schema.Retry), want)
			}
		}
	}
	partial := side(t, `policy: [{name: r, cache_ttl: 'text(result).contains("partial") ? duration("0s") : duration("1m")'}]`)
	all := side(t, `policy: [{name: r, cache_ttl: 1m}]`)
	if got := momentsOf(compareLook(partial, all), schema.CacheTTL); !slices.Equal(got, []string{`the result "partial"`}) {
		t.Errorf("what is no longer cached differs after %q", got)
	}
	compareLook(side(t, fmt.Sprintf(rule, "error.code in [-9223372036854775808, 9223372036854775807]")), side(t, "")) // which have no neighbour
	always, never := side(t, fmt.Sprintf(rule, "error.code == 5 || error.code != 5")), side(t, fmt.Sprintf(rule, "false"))
	for _, moment := range momentsOf(compareLook(always, never), schema.Retry) {
		if moment == "error 5" {
			t.Error("what is so after any error is told again of error 5")
		}
	}
}

func compareLook(old, now policytest.Side) *policytest.Difference {
	return policytest.Compare(old, now, func(string) []json.RawMessage { return []json.RawMessage{json.RawMessage(look)} })
}

// momentsOf are the endings of attempts after which a decision differs.
func momentsOf(d *policytest.Difference, of schema.Decision) (moments []string) {
	for _, tool := range d.Tools {
		for _, c := range tool.Changes {
			if c.Decision == of {
				moments = append(moments, c.After...)
			}
		}
	}
	return moments
}

// What the file or the environment keeps secret is not shown by saying that it has changed.
func TestDifferencesShowNoSecrets(t *testing.T) {
	old := side(t, "args: [--token, Zx81kQp0], env: {A: quite-plain}")
	now := side(t, "args: [--token, 'ghp_16C7e42F292c6912E7710c838347Ae178B4a'], env: {A: not-to-be-seen}")
	text := fmt.Sprintf("%+v", policytest.Compare(old, now, func(string) []json.RawMessage { return nil }))
	for _, secret := range []string{"Zx81", "16C7e42F", "plain", "seen"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is shown: %s", secret, text)
		}
	}
	if !strings.Contains(text, "env.A") || !strings.Contains(text, "args") {
		t.Errorf("nothing is said: %s", text)
	}
}

// How tools are called by the client depends on how many servers there are, and on what stands between the names.
func TestNamesOfToolsAreCompared(t *testing.T) {
	load := func(text string) policytest.Side {
		cfg, findings := schema.Load("a.yaml", []byte(text), nil)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		s := policytest.Side{Config: cfg}
		for _, server := range cfg.Servers {
			compiled, _ := policy.Compile(server)
			s.Policies = append(s.Policies, compiled)
		}
		return s
	}
	const one, two = "servers: {a: {command: x}}", "servers: {a: {command: x}, b: {command: x}}"
	for _, c := range []struct{ old, now, want string }{
		{one, two, `tool names "TOOL" → "SERVER__TOOL"`},
		{two, two + "\ncompose: {separator: '-'}", `separator "__" → "-"`},
		{two + "\ncompose: {separator: '-'}", one, `tool names "SERVER-TOOL" → "TOOL"`},
		{one, one + "\ncompose: {separator: '-'}", ""},
		{two, two + "\ncompose: {separator: __}", ""},
	} {
		got := ""
		for _, s := range policytest.Compare(load(c.old), load(c.now), func(string) []json.RawMessage { return nil }).Settings {
			got += fmt.Sprintf("%s %q → %q", s.Setting, s.Old, s.New)
		}
		if got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.old, c.now, got, c.want)
		}
	}
}

// The annotations count though the entry is indented: a read is tried again after a timeout, an unannotated tool is not idempotent.
func TestIndentedToolsKeepTheirAnnotations(t *testing.T) {
	s := side(t, "")
	e := policytest.Explain(policytest.Question{
		Server: s.Config.Servers[0], Policy: s.Policies[0], Tools: json.RawMessage("[\n" + look + "\n]"),
		Call: schema.TestCall{Tool: "look", Args: json.RawMessage("{\n  \"sku\": \"a\"\n}")},
	})
	i := slices.IndexFunc(e.Call.Decisions, func(d policytest.Decision) bool { return d.Decision == schema.Effects })
	if i < 0 || e.Call.Decisions[i].Value != `"none"` || e.Call.Status != "success" {
		t.Errorf("%s, %+v", e.Call.Status, e.Call.Decisions)
	}
}

// An answer that is no valid message tells that the server has answered: nothing is waited for.
func TestMalformedIsAnAnswer(t *testing.T) {
	s := side(t, "")
	e := policytest.Explain(policytest.Question{
		Server: s.Config.Servers[0], Policy: s.Policies[0], Tools: json.RawMessage("[" + look + "]"),
		Call: schema.TestCall{Tool: "look", Args: json.RawMessage(`{"sku":"a"}`)}, Script: []schema.TestAnswer{{Kind: "malformed"}},
	})
	if e.Call.Took != 0 || e.Call.Kind != "malformed" || e.Call.Attempts[0].Outcome != "malformed" {
		t.Errorf("%s after %s: kind %q", e.Call.Status, e.Call.Took, e.Call.Kind)
	}
}
