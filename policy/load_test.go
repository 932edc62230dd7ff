package policy

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

func load(t *testing.T, file string) *schema.Config {
	t.Helper()
	cfg, findings := schema.Load("f.yaml", []byte(file), func(string) (string, bool) { return "", false })
	if cfg == nil || len(findings) > 0 {
		t.Fatalf("the file does not load:\n%s", text(findings))
	}
	return cfg
}

func TestAFileDecidesAsItsTextSays(t *testing.T) {
	cfg := load(t, `
servers:
  github:
    command: npx
    call_timeout: 20
    retry: {max_retries: 4, base_delay: 1, jitter: 0}
    cache: {default_ttl: 0, tools: {list_directory: 30}}
    idempotency_ttl: 300
    rate_limit: {calls: 60, per: 60}
    tools:
      search_*: {retry: {max_retries: 5}, call_timeout: 40, effects: none}
    policy:
      - name: payments
        when: glob(tool.name, "pay_*")
        idempotency_key: '[args.order, args.amount]'
        required: true
        breaker_scope: '"payments"'
        retry: false
      - name: busy
        when: error.kind == "tool" && error.text.contains("rate limit")
        retry: true
        retry_delay: 5s
`)
	p, findings := Compile(cfg.Servers[0])
	if p == nil {
		t.Fatal(text(findings))
	}
	decide := func(tool, args string) (*Plan, *Call, Before) {
		c := newCall(args)
		c.Tool.Name = tool
		var b Before
		plan := p.For(tool)
		plan.Before(c, &b)
		if len(c.Errors) > 0 {
			t.Errorf("%s: %v", tool, c.Errors)
		}
		return plan, c, b
	}

	_, _, b := decide("pay_order", `{"order":7,"amount":1.50}`)
	if string(b.Key) != `[7,1.5]` || b.KeyRule != "payments" || b.BreakerScope != "payments" || b.IdempotencyTTL != 5*time.Minute || !b.IdempotencyStated {
		t.Errorf("pay_order: %+v", b)
	}
	_, _, b = decide("search_code", `{}`)
	if b.MaxRetries != 5 || b.CallTimeout != 40*time.Second || b.Effects != EffectsNone || b.Key != nil {
		t.Errorf("search_code: %+v", b)
	}
	// 5 attempts of 20 s and waits of 1, 2, 4 and 8 s
	plan, c, b := decide("list_directory", `{}`)
	if b.MaxRetries != 4 || b.TotalTimeout != 115*time.Second || !b.CacheStated || b.Limit == nil || b.Backoff.Base != time.Second {
		t.Errorf("list_directory: %+v", b)
	}
	if ttl, _ := plan.CacheTTL(c, []byte(`{}`), 0); ttl != 30*time.Second {
		t.Errorf("list_directory is kept for %v", ttl)
	}
	if r := plan.AfterAttempt(c, &Failure{Kind: "tool", Text: "rate limit exceeded", Delivery: "answered"}, 1, 0); !r.Retry || r.Rule != "busy" || r.Delay != 5*time.Second {
		t.Errorf("after a rate limit: %+v", r)
	}
	if r := plan.AfterAttempt(c, &timeout, 1, 0); !r.Retry || r.Rule != "transient" {
		t.Errorf("after a timeout: %+v", r)
	}
}

func TestFaultsOfExpressionsStandAtTheirPlaceInTheFile(t *testing.T) {
	cfg := load(t, `servers:
  s:
    command: x
    policy:
      - when: 'error.knd == ''timeout'''
        retry: true
      - when: >-
          tool.readOnly
          && result.ok
        max_retries: 2
      - cache_ttl: "\"é\" + resul.ttl"
`)
	_, findings := Compile(cfg.Servers[0])
	want := []string{
		`f.yaml:5:22+3 cel-field: error has no field "knd" (did you mean "kind"?)`,
		"f.yaml:9:14+6 cel-phase: `result` is not known before the call; here you have tool, args, meta, client, server, now (max_retries is decided before the call)",
		`f.yaml:11:29+5 cel-name: there is no variable "resul" (did you mean "result"?)`,
	}
	if got := strings.TrimSpace(text(findings)); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestGoodFilesCompile(t *testing.T) {
	files, _ := filepath.Glob("../schema/testdata/good/*.yaml")
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			cfg, _, err := schema.LoadFile(file, func(string) (string, bool) { return "x", true })
			if err != nil || cfg == nil {
				t.Fatalf("it does not load: %v", err)
			}
			for _, s := range cfg.Servers {
				if p, findings := Compile(s); p == nil {
					t.Errorf("%s:\n%s", s.Name, text(findings))
				}
			}
		})
	}
}
