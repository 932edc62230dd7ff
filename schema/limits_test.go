package schema

import (
	"strings"
	"sync"
	"testing"
)

// A file that is meant to exhaust the process, or the patience of who starts it, is refused.
func TestHostileFilesAreRefused(t *testing.T) {
	deep := strings.Repeat("[", maxFileBytes-100)
	comment := "// \"\n/* \" */"
	column := strings.Repeat("x", maxFileBytes/2)
	tests := map[string]struct{ file, src string }{
		"deep YAML":                {"a.yaml", deep},
		"deep JSON":                {"a.json", comment + deep},
		"deep JSON in YAML":        {"a.yaml", `{"a":` + deep},
		"deep CUE":                 {"a.cue", comment + "a: " + deep},
		"deep block":               {"a.yaml", strings.Repeat("- ", maxFileBytes/4)},
		"many signs in CUE":        {"a.cue", "a: " + strings.Repeat("-", maxFileBytes-100) + "1"},
		"deep parentheses":         {"a.cue", "a: " + strings.Repeat("(", maxFileBytes-100)},
		"a huge number in CUE":     {"a.cue", "import \"math/bits\"\na: bits.Lsh(1, 100000000000)"},
		"too large":                {"a.yaml", "servers: {}" + strings.Repeat("\n", maxFileBytes)},
		"many aliases far out":     {"a.yaml", "x-a: [" + column + ", &a [1, 2]" + strings.Repeat(", *a", 60_000) + "]"},
		"many unknown keys":        {"a.yaml", strings.Repeat("a: 1\n", 50_000)},
		"many servers on one line": {"a.json", `{"servers": {` + strings.Repeat(`"a": {"command": 5.5, "x": "${Y}"},`, 20_000) + `}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, findings := Load(tt.file, []byte(tt.src), testEnv); !findings.HasErrors() {
				t.Error("no error")
			}
		})
	}
}

func TestConfigsLoadAtTheSameTime(t *testing.T) {
	var all sync.WaitGroup
	for _, file := range []string{"a.yaml", "a.json", "a.yaml", "a.json"} {
		all.Go(func() {
			src := `{"servers": {"a": {"command": "x", "retry": {"max_retries": 99}, "bad": 1}}}`
			if _, findings := Load(file, []byte(src), testEnv); len(findings) != 2 {
				t.Errorf("%v", findings)
			}
		})
	}
	all.Wait()
}

// What cannot be evaluated is told once: an import that only it used is none of the author's faults.
func TestCUEImportOfAFaultyValueIsNotBlamed(t *testing.T) {
	src := "import \"strings\"\nimport \"list\"\nservers: a: command: \"x\"\nservers: a: args: [strings.Repeat(\"x\", 10000000000)]\n"
	_, findings := Load("a.cue", []byte(src), testEnv)
	var at []string
	for _, f := range findings {
		at = append(at, f.Pos.String())
	}
	if got := strings.Join(at, " "); got != "a.cue:2:8 a.cue:4:20" {
		t.Errorf("%s: %v", got, findings)
	}
}
