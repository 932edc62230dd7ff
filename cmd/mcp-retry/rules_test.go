package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

var updateGoldens = flag.Bool("update", false, "write the golden files of whole outputs anew")

// shopTools are the tools that the examples of the catalogue are checked against where a rule needs them.
const shopTools = `{"servers": {"shop": {"tools": [
	{"name": "get_issue", "annotations": {"readOnlyHint": true}, "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}},
	{"name": "create_issue", "annotations": {"readOnlyHint": false}, "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}, "labels": {"type": "array"}}, "required": ["title"]}},
	{"name": "delete_issue", "annotations": {"destructiveHint": true}, "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}},
	{"name": "pay", "annotations": {"destructiveHint": true}, "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}}}
]}}}`

// ofMost are the notes that are true of most configs.
var ofMost = []string{policy.LintRetryUnannotated, policy.LintOutlasts}

// asFile makes a file of an example of the catalogue, which may be the settings of a server alone.
func asFile(example string) string {
	if strings.HasPrefix(example, "servers:") || strings.HasPrefix(example, "{") {
		return example + "\n"
	}
	var out strings.Builder
	out.WriteString("servers:\n  shop:\n    command: shop-server\n")
	for line := range strings.Lines(example + "\n") {
		out.WriteString("    " + line)
	}
	return out.String()
}

// validated is what validate finds in a text.
func validated(t *testing.T, text string, tools *snapshot, notes bool) ([]byte, schema.Findings) {
	t.Helper()
	l := loadText("mcp-retry.yaml", []byte(text))
	findings := l.lint("mcp-retry.yaml", tools, notes)
	var out bytes.Buffer
	findings.Render(&out, l.shown(), false)
	return out.Bytes(), findings
}

func hasFinding(findings schema.Findings, id string) bool {
	for _, f := range findings {
		if f.ID == id {
			return true
		}
	}
	return false
}

// Every rule finds its bad example and lets its good one pass. What is said of the bad one is in a file of testdata/rules, with
// the example above it.
func TestEveryRuleFindsItsExample(t *testing.T) {
	var tools snapshot
	if err := json.Unmarshal([]byte(shopTools), &tools); err != nil {
		t.Fatal(err)
	}
	for _, e := range schema.Catalog() {
		if e.Bad == "" {
			continue
		}
		t.Run(e.Code()+" "+e.ID, func(t *testing.T) {
			known := (*snapshot)(nil)
			bad, findings := validated(t, asFile(e.Bad), known, e.Level == schema.Note)
			if !hasFinding(findings, e.ID) && e.Depends == schema.OnTools {
				known = &tools
				bad, findings = validated(t, asFile(e.Bad), known, e.Level == schema.Note)
			}
			if !hasFinding(findings, e.ID) {
				t.Errorf("not found in\n%s\n%s", asFile(e.Bad), bad)
			}
			for _, f := range findings {
				if f.ID == e.ID && f.Level != e.Level {
					t.Errorf("it is %s, and the catalogue says %s", f.Level, e.Level)
				}
			}
			out, findings := validated(t, asFile(e.Good), known, true)
			if slices.ContainsFunc(findings, func(f schema.Finding) bool { return f.ID == e.ID || !slices.Contains(ofMost, f.ID) }) {
				t.Errorf("the good example is not worth copying:\n%s\n%s", asFile(e.Good), out)
			}
			golden(t, filepath.Join("testdata", "rules", e.Code()+".txt"), append([]byte(asFile(e.Bad)+"\n"), bad...))
		})
	}
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *updateGoldens {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s; got:\n%s", file, got)
	}
}

// validate and run load a file alike: what one calls an error, the other refuses, and nothing else.
func TestValidateAndRunAgree(t *testing.T) {
	t.Setenv("PROGRAM", "server")
	var files []string
	for _, dir := range []string{"faults", "good"} {
		found, err := filepath.Glob("../../schema/testdata/" + dir + "/*")
		if err != nil || len(found) == 0 {
			t.Fatal(dir, err)
		}
		files = append(files, found...)
	}
	dir := t.TempDir()
	for _, e := range schema.Catalog() {
		for name, text := range map[string]string{"bad": e.Bad, "good": e.Good} {
			file := filepath.Join(dir, e.ID+"."+name+".yaml")
			if err := os.WriteFile(file, []byte(asFile(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		l, err := loadConfig(file)
		if err != nil {
			t.Fatal(err)
		}
		unset := hasFinding(l.findings, unsetVariable)
		faulty := l.lint(file, nil, true).HasErrors()
		var stderr bytes.Buffer
		u := &ui{stdout: &stderr, stderr: &stderr}
		_, err = u.openServers(file, nil)
		if refused := err != nil; refused != (faulty || unset) {
			t.Errorf("%s: validate says %t, run refuses: %t\n%s", file, faulty, refused, stderr.String())
		}
	}
}
