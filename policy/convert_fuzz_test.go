package policy

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// FuzzConvert: whatever a file in mcp-shield's spelling holds, converting it says what cannot be converted, or gives a file in our
// spelling that starts the same servers in the same way, and under which the same is decided about each call.
func FuzzConvert(f *testing.F) {
	spellings := []string{"a.yaml", "a.json", "a.cue"}
	files, err := filepath.Glob("../schema/testdata/convert/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no files", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, spelling := range spellings {
			if filepath.Ext(spelling) == filepath.Ext(file) {
				f.Add(uint8(i), text)
			}
		}
	}
	for _, text := range []string{
		"defaults: {timeout: 5s, circuit_breaker: {threshold: 2, reset_after: 1m}}\nservers:\n  a:\n    command: 'run \"$A b\" c'\n    tools: {x*: {timeout: 1, retries: {max: 1, backoff: linear}}}\n",
		"servers: {a: {command: x y, retries: {base_delay: 2}}, b: {command: x, tools: {\"it's\": {timeout: 3}}}}",
		"servers:\n  a: &a\n    command: x\n    retries: {max: 3}\n  b:\n    <<: *a\n    timeout: 7\n",
	} {
		f.Add(uint8(0), []byte(text))
	}
	f.Fuzz(func(t *testing.T, spelling uint8, text []byte) {
		file := spellings[int(spelling)%len(spellings)]
		if file == "a.cue" && len(text) > 300 {
			return // a program, which may run for as long as it likes
		}
		converted, findings := schema.Convert(file, text)
		if (converted == nil) != findings.HasErrors() {
			t.Fatalf("it became %q, and the findings are %v", converted, findings)
		}
		if converted == nil {
			return
		}
		if again, findings := schema.Convert(file, converted); findings.HasErrors() || !bytes.Equal(again, converted) {
			t.Errorf("%s became %s, and that %s, %v", text, converted, again, findings)
		}
		env := func(name string) (string, bool) { return "<" + name + ">", true }
		before, _ := schema.Load(file, text, env)
		after, findings := schema.Load(file, converted, env)
		if findings.HasErrors() || len(before.Servers) != len(after.Servers) {
			t.Fatalf("%s became %s: %v", text, converted, findings)
		}
		for i, s := range before.Servers {
			sameServer(t, s, after.Servers[i])
		}
		if t.Failed() {
			t.Logf("%s became %s", text, converted)
		}
	})
}

// sameServer compares how two servers are started, and what is decided about calls of them.
func sameServer(t *testing.T, before, after *schema.Server) {
	a, findings := Compile(before)
	if findings.HasErrors() {
		return
	}
	b, findings := Compile(after)
	if findings.HasErrors() {
		t.Errorf("what was converted does not compile: %v", findings)
		return
	}
	names := map[string]bool{"": true, "get_issue": true}
	for _, r := range before.Rules {
		names[r.Tools] = true
		names[strings.NewReplacer("*", "x", "?", "y").Replace(r.Tools)] = true
	}
	for name := range names {
		for _, tool := range []Tool{{Name: name}, {Name: name, Annotated: true, ReadOnly: true}, {Name: name, Annotated: true, Destructive: true}} {
			same(t, name, decided(a, tool), decided(b, tool))
		}
	}
	x, y := *before, *after
	if x.Name != y.Name || x.Command != y.Command || strings.Join(x.Args, "\x00") != strings.Join(y.Args, "\x00") || !reflect.DeepEqual(x.Env, y.Env) || x.Cwd != y.Cwd {
		t.Errorf("%q was started as %q %q %v in %q, and is as %q %q %v in %q", x.Name, x.Command, x.Args, x.Env, x.Cwd, y.Command, y.Args, y.Env, y.Cwd)
	}
	same(t, x.Name, []any{x.StartupTimeout, x.Restart, x.MaxMessageBytes, x.Errors, x.TrustAnnotations, x.MarkResults, x.MaxConcurrency, x.Budget, x.CacheLimit, x.ToolFilter.Allow, x.ToolFilter.Deny},
		[]any{y.StartupTimeout, y.Restart, y.MaxMessageBytes, y.Errors, y.TrustAnnotations, y.MarkResults, y.MaxConcurrency, y.Budget, y.CacheLimit, y.ToolFilter.Allow, y.ToolFilter.Deny})
}

func same(t *testing.T, of string, before, after []any) {
	t.Helper()
	for i := range before {
		if !reflect.DeepEqual(before[i], after[i]) {
			t.Errorf("%q: it was\n%+v, and is\n%+v", of, before[i], after[i])
		}
	}
}

// decided is what is decided about a call, without the names of the rules.
func decided(p *Policy, tool Tool) []any {
	plan := p.For(tool.Name)
	c, b := newCall(`{"a":1}`), Before{}
	c.Tool = tool
	plan.Before(c, &b)
	b.EffectsRule, b.DenyRule, b.KeyRule, b.LimitOn, b.keyBuffer, b.staleBuffer = "", "", "", "", nil, nil
	all := []any{b}
	for _, failure := range []Failure{timeout, rpcFailure(-32603, "a"), rpcFailure(-32602, "b")} {
		r := plan.AfterAttempt(c, &failure, 1, time.Second)
		failed, _ := plan.BreakerFailure(c, &failure, nil)
		stale, _ := plan.StaleIfError(c, &failure)
		all = append(all, r.Retry, failed, stale)
	}
	ttl, _ := plan.CacheTTL(c, []byte(`{"content":[]}`), time.Second)
	return append(all, ttl)
}
