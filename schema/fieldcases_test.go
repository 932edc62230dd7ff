package schema

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// ids returns "line id" of each finding.
func ids(fs Findings) []string {
	var out []string
	for _, f := range fs {
		out = append(out, fmt.Sprintf("%d %s", f.Pos.Line, f.ID))
	}
	return out
}

// B76: ${VAR} or an editor's placeholder reaches the server as literal text, and it fails later with an authentication error.
func TestB76VariablesAreReplacedOrRefused(t *testing.T) {
	one := func(text string) (string, Findings) {
		cfg, findings := Load("a.yaml", []byte("servers:\n  a:\n    command: x\n    args:\n      - '"+text+"'\n"), testEnv)
		return cfg.Servers[0].Args[0], findings
	}
	for text, want := range map[string]string{
		"${TOKEN}":                 "s3cret",
		"a${TOKEN}b${SET}":         "as3cretbyes",
		"${TOKEN:-x}":              "s3cret",
		"${UNSET:-}":               "",
		"${EMPTY}":                 "",
		"${EMPTY:-x}":              "x",
		"${UNSET:-x y}":            "x y",
		"${UNSET:-${TOKEN}}":       "s3cret",
		"${UNSET:-${X:-a}b${Y:-}}": "ab",
		"${UNSET:-$${X}}":          "${X}",
		"$${TOKEN}":                "${TOKEN}",
		"$TOKEN $1 $ a$":           "$TOKEN $1 $ a$",
		"$$TOKEN":                  "$$TOKEN",
		"}{${SET}}":                "}{yes}",
	} {
		if got, findings := one(text); got != want || len(findings) > 0 {
			t.Errorf("%s is %q with %v, want %q", text, got, findings, want)
		}
	}
	for text, want := range map[string]string{
		"${UNSET}":             "unset-variable",
		"x${UNSET:-${UNSET2}}": "unset-variable",
		"${input:api-key}":     "editor-placeholder",
		"${env:TOKEN}":         "editor-placeholder",
		"${workspaceFolder}/x": "editor-placeholder",
		"${config:a.b}":        "editor-placeholder",
		"${UNSET":              "bad-value",
		"${}":                  "bad-value",
		"${TOKEN:=x}":          "bad-value",
		"${TOKEN:?x}":          "bad-value",
		"${TOKEN-x}":           "bad-value",
	} {
		if _, findings := one(text); len(findings) != 1 || findings[0].ID != want || findings[0].Level != Error {
			t.Errorf("%s: %v, want %s", text, findings, want)
		}
	}
	// What a variable holds is not expanded again.
	env := func(name string) (string, bool) { return "${OTHER} $${x}", true }
	cfg, findings := Load("a.yaml", []byte("servers: {a: {command: '${A}', cwd: '/${A}', env: {B: '${A}'}}}"), env)
	if s := cfg.Servers[0]; len(findings) > 0 || s.Command != "${OTHER} $${x}" || s.Cwd != "/${OTHER} $${x}" || s.Env["B"] != "${OTHER} $${x}" {
		t.Errorf("%+v, %v", s, findings)
	}
}

func TestB76AnUnsetVariableIsNamedInItsPlace(t *testing.T) {
	_, findings := Load("a.yaml", []byte("servers:\n  a:\n    command: x\n    env:\n      T: \"\\u00e9 ${SOME_TOKEN}\"\n"), testEnv)
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "SOME_TOKEN") || findings[0].Pos != (Pos{"a.yaml", 5, 18, 13}) {
		t.Errorf("%+v", findings)
	}
}

// B77: a strict JSON reader refuses comments, trailing commas or a byte order mark.
func TestB77JSONWithCommentsCommasAndBOM(t *testing.T) {
	src := "\xef\xbb\xbf// first\n{\n\t/* the servers */ \"servers\": {\n\t\t\"web\": {\"command\": \"x\", \"args\": [\"https://example.com/mcp\", \"/* no comment */\",],},\n\t},\n}\n"
	for _, file := range []string{"a.json", "a.jsonc"} {
		cfg := load(t, file, src)
		if s := cfg.Servers[0]; !slices.Equal(s.Args, []string{"https://example.com/mcp", "/* no comment */"}) || s.Pos.Line != 4 {
			t.Errorf("%s: %q at %v", file, s.Args, s.Pos)
		}
	}
}

func TestB77OneBrokenEntryDoesNotDropTheOthers(t *testing.T) {
	cfg, findings := Load("a.json", []byte(`{"servers": {"a": {"command": 5.5, "argz": []}, "b": {"command": "x"}}, "inputs": []}`), testEnv)
	if cfg.Server("b") == nil || cfg.Server("b").Command != "x" || len(findings) != 2 {
		t.Errorf("%v, %v", cfg.Servers, findings)
	}
}

// B79: an entry with a url is dropped without a word.
func TestB79AnEntryWithAURLIsRefusedByName(t *testing.T) {
	for _, entry := range []string{
		"{url: 'https://x'}", "{type: http, url: 'https://x'}", "{type: streamable-http, url: 'https://x'}",
		"{type: streamableHttp, url: 'https://x'}", "{type: sse, url: 'https://x'}", "{url: 'https://x', command: y}", "{type: http}",
	} {
		_, findings := Load("a.yaml", []byte("servers:\n  web: "+entry+"\n"), testEnv)
		if len(findings) != 1 || findings[0].ID != "unsupported" || !strings.Contains(findings[0].Message, `"web"`) {
			t.Errorf("%s: %v", entry, findings)
		}
	}
}

// B82: timeout: 30 means 30 nanoseconds, or a type error.
func TestB82Durations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "0.001": time.Millisecond, "1e2": 100 * time.Second,
		"30s": 30 * time.Second, "1m30s": 90 * time.Second, "500ms": 500 * time.Millisecond, "2h": 2 * time.Hour, "'20s'": 20 * time.Second,
		"1.5s": 1500 * time.Millisecond, "24h": 24 * time.Hour,
	} {
		for _, place := range []string{"call_timeout: %s", "policy: [{call_timeout: %s}]"} {
			src := fmt.Sprintf("servers: {a: {command: x, "+place+"}}", text)
			if got := decided(load(t, "a.yaml", src).Servers[0], "", CallTimeout); got != want {
				t.Errorf("%s is %v, want %v", src, got, want)
			}
		}
	}
	for text, hint := range map[string]string{
		`"30"`: `"30s"`, "-1s": "20s", "-1": "20s", "1d": `"24h"`, "30 s": `"30s"`, "0": "leave the key out", "1e9": "20s", "100000": `"100000ms"`,
		"30sec": `"30s"`, "25h": "", "1h30": "20s", "5 minutes": `"5m"`, "030": "leading zero", "99999999999999999999h": "", "1s2": "20s",
	} {
		_, findings := Load("a.yaml", []byte("servers: {a: {command: x, call_timeout: "+text+"}}"), testEnv)
		if len(findings) != 1 || findings[0].ID != "bad-value" || !strings.Contains(findings[0].Hint, hint) {
			t.Errorf("%s: %+v, want a hint with %s", text, findings, hint)
		}
	}
	if got := decided(load(t, "a.yaml", "servers: {a: {command: x, idempotency_ttl: 0}}").Servers[0], "", IdempotencyTTL); got != time.Duration(0) {
		t.Errorf("a TTL of 0 is %v", got)
	}
}

// B84: no, on, 0123, 1e3 and their like are read as something else; tabs give a cryptic error.
func TestB84NamesAreUsedAsWritten(t *testing.T) {
	names := []string{"no", "on", "off", "yes", "null", "1e3", "0123", "12:30:00", "true", "2026-01-01", "0x1F", "1_000", "~", ".inf", "3.10"}
	var keys, items strings.Builder
	for _, n := range names {
		fmt.Fprintf(&keys, "      %s: 5\n", n)
		fmt.Fprintf(&items, "        - %s\n", n)
	}
	cfg := load(t, "a.yaml", "servers:\n  a:\n    command: x\n    cache:\n     tools:\n"+keys.String()+"    tool_filter:\n      allow:\n"+items.String())
	s := cfg.Servers[0]
	if !slices.Equal(s.ToolFilter.Allow, names) {
		t.Errorf("items are %q", s.ToolFilter.Allow)
	}
	var tools []string
	for _, r := range s.Rules {
		if r.Tools != "" {
			tools = append(tools, r.Tools)
		}
	}
	if !slices.Equal(tools, names) {
		t.Errorf("keys are %q", tools)
	}
}

func TestB84ATabIsNamedAndPlaced(t *testing.T) {
	cfg, findings := Load("a.yaml", []byte("servers:\n  a:\n    command: x\n  \targs: [a]\n"), testEnv)
	if cfg != nil || len(findings) != 1 {
		t.Fatalf("%v", findings)
	}
	if f := findings[0]; f.Pos.Line != 4 || f.Pos.Col != 3 || !strings.Contains(f.Message, "tab") || !strings.Contains(f.Message, "line 4") {
		t.Errorf("%+v", f)
	}
}

// B85: an expression without quotes breaks the YAML around it, or is cut without a word.
func TestB85UnquotedExpressions(t *testing.T) {
	for text, id := range map[string]string{
		`a ? b : c`:                     "syntax",
		`msg.contains('rate: 1')`:       "syntax",
		`!is_error`:                     "syntax",
		`!tool.annotated && x`:          "syntax",
		`!(a || b)`:                     "syntax",
		`x == 'a #b'`:                   "syntax",
		`(a == 1 #b`:                    "syntax",
		`"x" in args`:                   "syntax",
		`'a' == tool.name`:              "syntax",
		`[1, 2].exists(x, x == args.n)`: "syntax",
		`{"a": 1}.a == 1`:               "syntax",
		`&& x`:                          "syntax",
		`*x`:                            "syntax",
		`@x`:                            "syntax",
		`%x`:                            "syntax",
		"`x`":                           "syntax",
		`{'k': 1}`:                      "bad-value",
		`[args.a, args.b]`:              "bad-value",
	} {
		_, findings := Load("a.yaml", []byte("servers:\n  a:\n    command: x\n    policy:\n      - cache_key: "+text+"\n        retyr: false\n"), testEnv)
		if got := ids(findings); !slices.Equal(got, []string{"5 " + id, "6 unknown-key"}) {
			t.Errorf("%s: %v", text, findings)
			continue
		}
		if f := findings[0]; !strings.Contains(f.Message, `"cache_key"`) || !strings.Contains(f.Hint, "quotes") && !strings.Contains(f.Hint, `write "`) {
			t.Errorf("%s: %+v", text, f)
		}
		block := "servers:\n  a:\n    command: x\n    policy:\n      - cache_key: |\n          " + text + "\n"
		if got := firstExpr(t, "a.yaml", block).Text; got != text+"\n" {
			t.Errorf("as a block %q is %q", text, got)
		}
		quoted := "servers: {a: {command: x, policy: [{cache_key: '" + strings.ReplaceAll(text, "'", "''") + "'}]}}"
		if got := firstExpr(t, "a.yaml", quoted).Text; got != text {
			t.Errorf("in quotes %q is %q", text, got)
		}
	}
}

func TestFindingsShowWhereTheyAreEvenOnALongLine(t *testing.T) {
	src := []byte(`{"servers": {"a": {"command": "` + strings.Repeat("é", 500) + `", "call_timeout": "5 s", "args": ["` + strings.Repeat("x", 500) + `"]}}}`)
	_, findings := Load("a.json", src, testEnv)
	var out bytes.Buffer
	findings.Render(&out, src, true)
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || len([]rune(lines[1])) > 150 {
		t.Fatalf("%q", lines)
	}
	caret := strings.Index(strings.ReplaceAll(lines[2], "\x1b[1;31m", ""), "^^^^^")
	if text := []rune(lines[1]); string(text[caret:caret+5]) != `"5 s"` {
		t.Errorf("the caret is not under the value:\n%s", out.String())
	}
	if !strings.Contains(lines[0], "\x1b[1;31merror[bad-value]\x1b[0m") {
		t.Errorf("no colour: %q", lines[0])
	}
}

func TestNothingOfTheFileActsOnTheTerminal(t *testing.T) {
	src := []byte("servers: {a: {command: x, \"\\e[31m\": \"\x1b[31m\"}}")
	_, findings := Load("a.yaml", src, testEnv)
	var out bytes.Buffer
	findings.Render(&out, src, false)
	if len(findings) == 0 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out.String())
	}
}
