package schema

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// load reads a config that must be without findings.
func load(t *testing.T, file, src string) *Config {
	t.Helper()
	cfg, findings := Load(file, []byte(src), testEnv)
	if len(findings) > 0 {
		t.Fatalf("findings: %v", findings)
	}
	return cfg
}

// decided is what the rules of a server state for a tool without a condition.
func decided(s *Server, tool string, d Decision) any {
	for _, r := range s.Rules {
		if r.When != nil || r.Tools != "" && !matches(r.Tools, tool) {
			continue
		}
		for _, set := range r.Decides {
			if set.Decision == d {
				if set.Expr != nil {
					return set.Expr.Text
				}
				return set.Literal
			}
		}
	}
	return nil
}

// Each file of testdata/good loads, and its normal form is in a file beside it.
func TestGoodFilesDesugar(t *testing.T) {
	env := func(name string) (string, bool) {
		if name == "GITHUB_TOKEN" {
			return "s3cret", true
		}
		return testEnv(name)
	}
	wanted(t, "good", ".normal", func(t *testing.T, name string, src []byte) []byte {
		cfg, findings := Load(name, src, env)
		if len(findings) > 0 {
			t.Fatalf("findings: %v", findings)
		}
		var out bytes.Buffer
		if err := WriteNormal(&out, cfg); err != nil {
			t.Fatal(err)
		}
		var back any
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil {
			t.Errorf("the normal form is no YAML: %v", err)
		}
		if strings.Contains(out.String(), "s3cret") {
			t.Error("the normal form shows a secret")
		}
		return out.Bytes()
	})
}

func TestTheSameConfigInThreeSpellings(t *testing.T) {
	yaml := "servers:\n  a:\n    command: x\n    args: [-y, b]\n    env: {A: '1'}\n    call_timeout: 1.5\n    max_message_bytes: 2048\n" +
		"    retry: {jitter: true, backoff: linear}\n    policy:\n      - name: n\n        when: 'tool.name == \"x\"'\n        retry: false\n        cache_ttl: 30s\n"
	json := `{"servers": {"a": {"command": "x", "args": ["-y", "b"], "env": {"A": "1"}, "call_timeout": 1.5, "max_message_bytes": 2048,
		"retry": {"jitter": true, "backoff": "linear"},
		"policy": [{"name": "n", "when": "tool.name == \"x\"", "retry": false, "cache_ttl": "30s"}]}}}`
	cue := "#ttl: \"30s\"\n_kib: 1024\nservers: a: {command: \"x\", args: [\"-y\", \"b\"], env: A: \"1\", call_timeout: 1.5, max_message_bytes: 2*_kib\n" +
		"retry: {jitter: true, backoff: \"linear\"}\npolicy: [{name: \"n\", when: \"tool.name == \\\"x\\\"\", retry: false, cache_ttl: #ttl}]}"
	strip := func(c *Config) *Config {
		c.File, c.secrets = "", nil
		for _, s := range c.Servers {
			s.Pos = Pos{}
			for i := range s.Rules {
				s.Rules[i].Pos = Pos{}
				if w := s.Rules[i].When; w != nil {
					w.Pos, w.At = Pos{}, nil
				}
				for j := range s.Rules[i].Decides {
					d := &s.Rules[i].Decides[j]
					d.Pos = Pos{}
					if d.Expr != nil {
						d.Expr.Pos, d.Expr.At = Pos{}, nil
					}
				}
			}
		}
		return c
	}
	want := strip(load(t, "a.yaml", yaml))
	for file, src := range map[string]string{"a.json": json, "a.cue": cue} {
		if got := strip(load(t, file, src)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s differs:\n got %+v\nwant %+v", file, got.Servers[0], want.Servers[0])
		}
	}
}

func TestPrecedence(t *testing.T) {
	cfg := load(t, "a.yaml", `
defaults:
  call_timeout: 1
  total_timeout: 300
  retry: {max_retries: 1, backoff: constant}
  tools:
    get_*: {call_timeout: 2, max_call_time: 100}
  policy:
    - {max_retries: 9, cache_ttl: 5}
servers:
  a:
    command: x
    call_timeout: 3
    retry: {max_retries: 3, base_delay: 2}
    tools:
      get_*: {call_timeout: 4}
      get_a*: {call_timeout: 5}
      get_abc: {call_timeout: 6, retry: {max_retries: 5}}
      "*c": {call_timeout: 7}
    policy:
      - {cache_ttl: 1}
`)
	s := cfg.Server("a")
	for _, tt := range []struct {
		tool string
		d    Decision
		want any
	}{
		{"other", CallTimeout, 3 * time.Second},
		{"get_x", CallTimeout, 4 * time.Second},
		{"get_ab", CallTimeout, 5 * time.Second},
		{"get_abc", CallTimeout, 6 * time.Second},  // an exact name beats a glob
		{"get_abcc", CallTimeout, 5 * time.Second}, // five literal characters beat one
		{"xc", CallTimeout, 7 * time.Second},
		{"get_x", MaxCallTime, 100 * time.Second},
		{"other", MaxCallTime, DefaultMaxCallTime},
		{"other", MaxRetries, int64(3)},
		{"get_abc", MaxRetries, int64(5)},
		{"get_abc", BaseDelay, 2 * time.Second}, // the tool's retry leaves the other fields to the server's
		{"get_abc", Backoff, "constant"},
		{"get_abc", MaxDelay, DefaultMaxDelay},
		{"other", CacheTTL, time.Second},
		{"other", Jitter, DefaultJitter},
		{"other", Cooldown, DefaultCooldown},
		{"other", BreakerScope, `"server"`},
		{"other", Retry, false},
	} {
		if got := decided(s, tt.tool, tt.d); got != tt.want {
			t.Errorf("%s of %s is %v, want %v", tt.d, tt.tool, got, tt.want)
		}
	}
}

func TestRuleNamesAreUniqueAndTellThePlace(t *testing.T) {
	cfg := load(t, "a.yaml", `
defaults:
  retry: {max_retries: 1}
  policy: [{name: reads, retry: false}, {retry: false}]
servers:
  a:
    command: x
    retry: {max_retries: 1}
    tools: {t: {retry: {max_retries: 2}}}
    cache: {default_ttl: 1, tools: {t: 1}}
    policy: [{name: reads, retry: false}, {retry: false}, {name: transient, retry: false}]
`)
	var got []string
	for _, r := range cfg.Servers[0].Rules {
		got = append(got, r.Name+" @ "+r.Origin)
	}
	want := []string{
		"reads @ servers.a.policy.0", "policy[1] @ servers.a.policy.1", "transient @ servers.a.policy.2",
		"tools.t.retry @ servers.a.tools.t.retry", "retry @ servers.a.retry",
		"cache.tools.t @ servers.a.cache.tools.t", "cache.default_ttl @ servers.a.cache.default_ttl",
		"defaults.reads @ defaults.policy.0", "defaults.policy[1] @ defaults.policy.1", "defaults.retry @ defaults.retry",
		"defaults @ built-in", "overloaded @ built-in", "built-in.transient @ built-in", "otherwise @ built-in",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestServerSettingsMergeWithDefaults(t *testing.T) {
	cfg := load(t, "testdata/c/a.yaml", `
defaults:
  retry_budget: {ratio: 0.1, burst: 5}
  cache: {max_entries: 7}
  tool_filter: {allow: [a, b], deny: [c]}
  errors: result
servers:
  a: {command: x, retry_budget: {burst: 9}, cache: {max_bytes: 4096}, tool_filter: {allow: []}, cwd: sub}
  b: {command: x, retry_budget: false, cwd: ~/x}
  c: {command: x, cwd: /abs}
`)
	a, b, c := cfg.Servers[0], cfg.Servers[1], cfg.Servers[2]
	if *a.Budget != (Budget{Ratio: 0.1, PerSecond: DefaultBudgetPerSecond, Burst: 9}) || b.Budget != nil {
		t.Errorf("budgets %v, %v", a.Budget, b.Budget)
	}
	if a.CacheLimit != (CacheLimit{7, 4096}) || b.CacheLimit.MaxBytes != DefaultCacheMaxBytes {
		t.Errorf("cache limits %v, %v", a.CacheLimit, b.CacheLimit)
	}
	if a.ToolFilter.Allow == nil || len(a.ToolFilter.Allow) != 0 || len(a.ToolFilter.Deny) != 1 || len(b.ToolFilter.Allow) != 2 {
		t.Errorf("filters %v, %v", a.ToolFilter, b.ToolFilter)
	}
	if a.Errors != "result" || a.Restart != "on_demand" || !a.TrustAnnotations || a.StartupTimeout != 60*time.Second {
		t.Errorf("settings %+v", a)
	}
	if a.Cwd != "testdata/c/sub" || b.Cwd != "/home/me/x" || c.Cwd != "/abs" {
		t.Errorf("directories %q, %q, %q", a.Cwd, b.Cwd, c.Cwd)
	}
}

func TestMergeKeys(t *testing.T) {
	cfg := load(t, "a.yaml", `
x-base: &base {call_timeout: 40, retry: {max_retries: 5}}
x-more: &more {call_timeout: 41, idempotency_ttl: 9}
servers:
  a: {<<: *base, command: x}
  b: {command: x, call_timeout: 3, <<: [*base, *more]}
`)
	a, b := cfg.Servers[0], cfg.Servers[1]
	if decided(a, "", CallTimeout) != 40*time.Second || decided(a, "", MaxRetries) != int64(5) {
		t.Error("a merge key is not read")
	}
	if decided(b, "", CallTimeout) != 3*time.Second || decided(b, "", IdempotencyTTL) != 9*time.Second || decided(b, "", MaxRetries) != int64(5) {
		t.Error("of merged maps, the map's own keys win, then the first")
	}
}

func TestWhatIsSoundIsKept(t *testing.T) {
	cfg, findings := Load("a.yaml", []byte(`
servers:
  a:
    command: x
    call_timeout: 5
    retry: {max_retries: 99, base_delay: 2}
    policy:
      - {when: 5, retry: false}
      - {cache_ttl: 5, retry: 7}
  b: 5
  c: {command: "${UNSET}", env: {A: "${UNSET}", B: b}}
`), testEnv)
	if len(findings) != 6 || !findings.HasErrors() {
		t.Errorf("findings %v", findings)
	}
	if len(cfg.Servers) != 2 {
		t.Fatalf("%d servers", len(cfg.Servers))
	}
	a, c := cfg.Servers[0], cfg.Servers[1]
	if decided(a, "", CallTimeout) != 5*time.Second || decided(a, "", BaseDelay) != 2*time.Second || decided(a, "", CacheTTL) != 5*time.Second {
		t.Error("a fault takes its neighbours along")
	}
	if decided(a, "", MaxRetries) != int64(DefaultMaxRetries) || a.Rules[0].When == nil || a.Rules[0].When.Text != "false" {
		t.Error("a faulty value is used, or a rule whose condition is faulty holds for every call")
	}
	if _, has := c.Env["A"]; has || c.Env["B"] != "b" {
		t.Errorf("env %v", c.Env)
	}
}

func TestWarningsAreNoErrors(t *testing.T) {
	_, findings := Load("a.yaml", []byte("servers: {a: {command: x, call_timeout: 30000}}"), testEnv)
	if len(findings) != 1 || findings[0].Level != Warning || findings.HasErrors() {
		t.Errorf("findings %v", findings)
	}
	if got, want := findings[0].String(), `a.yaml:1:41: warning[milliseconds] "call_timeout" is 30000 seconds, which is 8h20m0s`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShieldFilesRetryTwiceFromOneSecond(t *testing.T) {
	cfg := load(t, "a.yaml", "servers: {a: {command: 'x y', timeout: 5s, retries: {jitter: true}}}")
	s := cfg.Servers[0]
	if decided(s, "", MaxRetries) != int64(2) || decided(s, "", BaseDelay) != time.Second || decided(s, "", Jitter) != 0.5 {
		t.Error("the defaults are not mcp-shield's")
	}
	if s.Command != "x" || !slices.Equal(s.Args, []string{"y"}) || s.Rules[0].Origin != "servers.a.timeout" {
		t.Errorf("%q %q %q", s.Command, s.Args, s.Rules[0].Origin)
	}
	cfg = load(t, "a.yaml", "servers: {a: {command: 'x y', args: [z], timeout: 5s}}")
	if s := cfg.Servers[0]; s.Command != "x y" || !slices.Equal(s.Args, []string{"z"}) {
		t.Errorf("beside args, the command is %q with %q", s.Command, s.Args)
	}
}

func TestWrap(t *testing.T) {
	timeout, retries := 5*time.Second, 0
	c := Wrap("npx", []string{"npx", "-y", "${HOME}"}, WrapOptions{Timeout: &timeout, Retries: &retries})
	s := c.Server("npx")
	if s == nil || s.Command != "npx" || !slices.Equal(s.Args, []string{"-y", "${HOME}"}) || c.File != "" {
		t.Fatalf("%+v", s)
	}
	if decided(s, "", CallTimeout) != timeout || decided(s, "", MaxRetries) != int64(0) || decided(s, "", BaseDelay) != time.Second {
		t.Error("the flags do not decide")
	}
	s = Wrap("npx", []string{"npx"}, WrapOptions{}).Servers[0]
	if decided(s, "", CallTimeout) != DefaultCallTimeout || decided(s, "", MaxRetries) != int64(2) {
		t.Error("the defaults are not those of wrap")
	}
}

func TestBuiltinIsACopy(t *testing.T) {
	a := Builtin()
	if len(a) != 3 || a[0].Name != "overloaded" || a[1].Name != "transient" || a[2].Name != "otherwise" {
		t.Fatalf("%v", a)
	}
	a[2].Decides[0].Literal = true
	a[0].Name = "changed"
	if b := Builtin(); b[2].Decides[0].Literal != false || b[0].Name != "overloaded" {
		t.Error("a caller can change the built-in policy")
	}
}

func TestLoadFileThatIsNotThere(t *testing.T) {
	if _, _, err := LoadFile("testdata/none.yaml", testEnv); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestOfAFileThatIsTooLargeNoMoreIsReadThanTellsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp-retry.yaml")
	if err := os.WriteFile(path, bytes.Repeat([]byte("# a comment\n"), 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := ReadFile(path)
	if err != nil || len(text) > maxFileBytes+1 {
		t.Fatalf("%d bytes were read, error %v", len(text), err)
	}
	if _, findings, _ := LoadFile(path, nil); len(findings) != 1 || !strings.Contains(findings[0].Message, "larger than 1 MiB") {
		t.Errorf("findings: %v", findings)
	}
}

func TestAFileOfMcpShieldIsKnownByItsNameWhereItsKeysFitBoth(t *testing.T) {
	text := []byte("servers:\n  github:\n    command: npx 'a server' --flag\n")
	cfg, findings := Load("conf/mcp-shield.yaml", text, nil)
	if len(findings) > 0 {
		t.Fatalf("findings: %v", findings)
	}
	if got := cfg.Servers[0].Args; len(got) != 2 || got[0] != "a server" {
		t.Errorf("the arguments are %q", got)
	}
	if cfg, _ = Load("mcp-retry.yaml", text, nil); len(cfg.Servers[0].Args) != 0 {
		t.Errorf("our own command was split: %q", cfg.Servers[0].Args)
	}
}

func TestJSONMayEndWithACommentThatNoLineEnds(t *testing.T) {
	for _, end := range []string{" // the end", "\n//", " // the end\n", " /* the end */"} {
		if cfg, findings := Load("a.json", []byte(`{"servers": {"a": {"command": "x"}}}`+end), testEnv); len(findings) > 0 || cfg.Server("a") == nil {
			t.Errorf("%q: %v", end, findings)
		}
	}
}
