package schema

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testEnv is the environment of all tests.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{"HOME": "/home/me", "PROGRAM": "server", "EMPTY": "", "SET": "yes", "TOKEN": "s3cret"}[name]
	return v, ok
}

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
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

// Each file of testdata/faults has its findings, as a user sees them, in a file beside it.
func TestFaultsAreExplained(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, findings := Load(filepath.Base(file), src, testEnv)
			if len(findings) == 0 {
				t.Fatal("no findings")
			}
			var out bytes.Buffer
			findings.Render(&out, src, false)
			golden(t, file+".want", out.Bytes())
			inOrder := slices.IsSortedFunc(findings, func(a, b Finding) int {
				if a.Pos.Line != b.Pos.Line {
					return a.Pos.Line - b.Pos.Line
				}
				return a.Pos.Col - b.Pos.Col
			})
			if !inOrder {
				t.Error("the findings are not in the order of the file")
			}
			for _, raw := range []string{"conflicting values", "disjunction", "hujson", "incomplete value", "_|_", "mapping values"} {
				if bytes.Contains(out.Bytes(), []byte(raw)) {
					t.Errorf("the words of a library show: %q", raw)
				}
			}
		})
	}
}
