package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// code marks a string of a test rule as an expression; other values are literals.
type code string

// expr is an expression in line 1 of a file of its own, so that columns are offsets plus one.
func expr(text code) *schema.Expr {
	return &schema.Expr{Text: string(text), Pos: schema.Pos{File: "f", Line: 1, Col: 1}, At: func(offset int) schema.Pos {
		line, col := 1, 1
		for _, r := range string(text)[:offset] {
			if col++; r == '\n' {
				line, col = line+1, 1
			}
		}
		return schema.Pos{File: "f", Line: line, Col: col}
	}}
}

// rule makes a rule of alternating decisions and values. The when may be empty.
func newRule(name string, when code, decides ...any) schema.Rule {
	r := schema.Rule{Name: name, Origin: "servers.s.policy.0", Pos: schema.Pos{File: "f", Line: 1, Col: 1}}
	if when != "" {
		r.When = expr(when)
	}
	for i := 0; i < len(decides); i += 2 {
		s := schema.Setting{Decision: decides[i].(schema.Decision), Pos: r.Pos}
		if text, ok := decides[i+1].(code); ok {
			s.Expr = expr(text)
		} else {
			s.Literal = decides[i+1]
		}
		r.Decides = append(r.Decides, s)
	}
	return r
}

func forTools(glob string, r schema.Rule) schema.Rule {
	r.Tools = glob
	return r
}

func required(r schema.Rule) schema.Rule {
	for i := range r.Decides {
		r.Decides[i].Required = true
	}
	return r
}

// builtin is the built-in policy with the numeric defaults.
func builtin() []schema.Rule {
	return append(schema.Builtin(), schema.Rule{Name: "defaults", Origin: "built-in", Decides: newRule("", "",
		schema.CallTimeout, schema.DefaultCallTimeout, schema.MaxCallTime, schema.DefaultMaxCallTime, schema.MaxRetries, int64(schema.DefaultMaxRetries),
		schema.BaseDelay, schema.DefaultBaseDelay, schema.MaxDelay, schema.DefaultMaxDelay, schema.Jitter, schema.DefaultJitter, schema.Backoff, schema.DefaultBackoff,
		schema.FailureThreshold, int64(schema.DefaultFailureThreshold), schema.Cooldown, schema.DefaultCooldown, schema.HalfOpenProbes, int64(schema.DefaultHalfOpenProbes),
		schema.Validate, "off").Decides})
}

// newServer has the rules given and the built-in ones behind them.
func newServer(rules ...schema.Rule) *schema.Server {
	return &schema.Server{Name: "srv", TrustAnnotations: true, Rules: append(rules, builtin()...)}
}

func mustCompile(t testing.TB, rules ...schema.Rule) *Policy {
	t.Helper()
	p, findings := Compile(newServer(rules...))
	if p == nil {
		t.Fatalf("the rules do not compile:\n%s", text(findings))
	}
	return p
}

func text(findings schema.Findings) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s+%d %s: %s", f.Pos, f.Pos.Len, f.ID, f.Message)
		if f.Hint != "" {
			fmt.Fprintf(&b, " (%s)", f.Hint)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// newCall is a call of the tool t with the arguments given.
func newCall(args string) *Call {
	c := &Call{
		Tool:   Tool{Name: "t", Annotated: true, ReadOnly: true},
		Server: &Peer{Name: "srv", Title: "A Server", Version: "1.2", Protocol: "2025-11-25"},
		Client: &Peer{Name: "claude", Version: "9", Protocol: "2025-06-18"},
		Now:    time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if args != "" {
		c.Args = []byte(args)
	}
	return c
}

// before decides one call under the rules given.
func before(t *testing.T, c *Call, rules ...schema.Rule) Before {
	t.Helper()
	var b Before
	mustCompile(t, rules...).For(c.Tool.Name).Before(c, &b)
	return b
}
