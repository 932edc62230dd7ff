package policytest_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/bentabol/mcp-retry/schema"
)

func side(t *testing.T, settings string) policytest.Side {
	t.Helper()
	cfg, findings := schema.Load("a.yaml", []byte("servers: {shop: {command: shop, "+settings+"}}"), nil)
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
