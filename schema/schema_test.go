package schema

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
)

// plainValue is a checked tree as CUE would see it, with what is taken as written as text.
func plainValue(n *node) any {
	switch n.kind {
	case object:
		m := map[string]any{}
		for _, f := range n.fields {
			m[f.key.text] = plainValue(f.value)
		}
		return m
	case list:
		l := make([]any, 0, len(n.items))
		for _, i := range n.items {
			l = append(l, plainValue(i))
		}
		return l
	case text:
		return n.text
	}
	switch v := n.value.(type) {
	case nil, bool, int64, float64, string:
		return v
	}
	if i, err := parseNumber(n.text); err == nil {
		return i
	}
	return n.text
}

// The walk checks place by place; a file that it passes must pass the schema as a whole too.
func TestGoodFilesPassTheSchemaAsAWhole(t *testing.T) {
	for file, d := range map[string]*dialect{"everything.yaml": ours, "readme.yaml": ours, "mcp-shield.yaml": shield} {
		src, err := os.ReadFile("testdata/good/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var r report
		root := parse(newSource(file, string(src)), &r)
		check(d, root, &r)
		if len(r.findings) > 0 {
			t.Fatal(r.findings)
		}
		whole := d.config().value.Unify(d.ctx.Encode(plainValue(root)))
		if err := whole.Validate(cue.Concrete(true)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// everyKey walks the schema and returns the keys that it names.
func everyKey(s *shape, keys map[string]bool, depth int) {
	if s == nil || depth > 8 {
		return
	}
	s.fill()
	for _, n := range s.names {
		keys[n] = true
		everyKey(s.fields[n], keys, depth+1)
	}
	everyKey(s.pattern, keys, depth+1)
	everyKey(s.elem, keys, depth+1)
}

func TestTheExampleWithEveryKeyHasEveryKey(t *testing.T) {
	src, err := os.ReadFile("testdata/good/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	everyKey(ours.config(), keys, 0)
	if len(keys) < 60 {
		t.Fatalf("only %d keys", len(keys))
	}
	for k := range keys {
		if k == "$schema" || k == "url" || k == "headers" {
			continue
		}
		if !regexp.MustCompile(`\b` + k + `:`).Match(src) {
			t.Errorf("no %q", k)
		}
	}
}

// A key that the schema knows and the desugaring does not would be ignored without a word.
func TestEveryKeyOfARuleIsADecision(t *testing.T) {
	known := []Decision{
		Effects, Deny, IdempotencyKey, IdempotencyTTL, OnConflict, OnAmbiguous, ForwardKey, CacheKey, BreakerScope, RateLimitKey,
		CallTimeout, TotalTimeout, MaxRetries, Retry, RetryUnsafe, RetryDelay, BreakerFailure, CacheTTL, StaleIfError, Invalidates,
	}
	s := ours.config().field("servers").field("a").field("policy").fill().elem.fill()
	for _, n := range s.names {
		if n != "name" && n != "when" && n != "required" && !slices.Contains(known, Decision(n)) {
			t.Errorf("the schema has %q, which is no decision", n)
		}
	}
	for _, d := range known {
		if !slices.Contains(s.names, string(d)) {
			t.Errorf("the schema lacks %q", d)
		}
	}
}

func TestEveryPatternOfTheSchemaHasWords(t *testing.T) {
	for _, d := range []*dialect{ours, shield} {
		for _, m := range regexp.MustCompile(`(?m)^(#\w+): +=~`).FindAllStringSubmatch(string(d.text), -1) {
			if name := m[1]; phrases[name] == "" && name != "#Duration" && name != "#Bytes" {
				t.Errorf("%s: a message about %s would say only %q", d.file, name, "text")
			}
		}
	}
}

func TestTheSchemaHasNoDefaults(t *testing.T) {
	for _, text := range []string{string(CUE()), string(shieldCUE)} {
		for line := range strings.Lines(text) {
			code, _, _ := strings.Cut(line, "//")
			if regexp.MustCompile(`(^|[|:(])\s*\*`).MatchString(code) {
				t.Errorf("a default: %s", line)
			}
		}
	}
}
