// Package examples_test keeps the examples true: every config loads and compiles without a complaint, decides what its README
// says, and has a test file that fits it.
package examples_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// environment sets every variable that the examples name without a default.
func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"DATABASE_URL":                 "postgres://localhost/test",
		"GITHUB_PERSONAL_ACCESS_TOKEN": "token",
		"GITHUB_TOKEN":                 "token",
		"PAYMENTS_API_KEY":             "key",
	}[name]
	return value, ok
}

// names lists the examples: the folders beside this file.
func names(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*/mcp-retry.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no example was found: %v", err)
	}
	for i := range files {
		files[i] = filepath.Dir(files[i])
	}
	return files
}

// load returns the config of an example, which nothing must be said against.
func load(t *testing.T, name string) *schema.Config {
	t.Helper()
	cfg, findings, err := schema.LoadFile(filepath.Join(name, "mcp-retry.yaml"), environment)
	if err != nil {
		t.Fatal(err)
	}
	complain(t, findings)
	return cfg
}

// compile returns the policy of a server of an example, which nothing must be said against.
func compile(t *testing.T, s *schema.Server) *policy.Policy {
	t.Helper()
	p, findings := policy.Compile(s)
	complain(t, findings)
	if p == nil {
		t.FailNow()
	}
	return p
}

func complain(t *testing.T, findings schema.Findings) {
	t.Helper()
	for _, f := range findings {
		if f.Level != schema.Note {
			t.Errorf("%v", f)
		}
	}
}

func TestEveryConfigIsSound(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			for _, s := range load(t, name).Servers {
				compile(t, s)
			}
		})
	}
}

func TestEveryFolderIsComplete(t *testing.T) {
	folders, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		for _, file := range []string{"mcp-retry.yaml", "mcp-retry.test.yaml", "README.md"} {
			if _, err := os.Stat(filepath.Join(folder.Name(), file)); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEveryTestFileFitsItsConfig(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(name, "mcp-retry.test.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f, findings := schema.LoadTest(path, text)
			complain(t, findings)
			cfg := load(t, name)
			for _, test := range f.Tests {
				for _, row := range test.Rows {
					for _, step := range row.Steps {
						checkStep(t, f, cfg, step)
					}
				}
			}
		})
	}
}

// checkStep complains of a call of which nothing is expected, or that is of no tool in the list, and of rules that there are not.
func checkStep(t *testing.T, f *schema.TestFile, cfg *schema.Config, step *schema.TestStep) {
	t.Helper()
	if step.Call == nil {
		return
	}
	if len(step.Expect) == 0 {
		t.Errorf("%v: a call without expectation", step.Pos)
	}
	listed := func(tool json.RawMessage) bool {
		var entry struct{ Name string }
		return json.Unmarshal(tool, &entry) == nil && entry.Name == step.Call.Tool
	}
	if !slices.ContainsFunc(f.Tools, listed) {
		t.Errorf("%v: no tool is named %q", step.Call.Pos, step.Call.Tool)
	}
	for _, e := range step.Expect {
		if rule, is := e.Want.(string); is && strings.HasPrefix(e.Key, "rules.") && !hasRule(cfg, rule) {
			t.Errorf("%v: no rule is named %q", e.Pos, rule)
		}
	}
}

func hasRule(cfg *schema.Config, name string) bool {
	return slices.ContainsFunc(cfg.Servers, func(s *schema.Server) bool {
		return slices.ContainsFunc(s.Rules, func(r schema.Rule) bool { return r.Name == name })
	})
}
