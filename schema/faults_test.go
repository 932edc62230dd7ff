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

// wanted compares what comes of each file in a folder of testdata with the file beside it that has an ending more.
func wanted(t *testing.T, folder, ending string, come func(t *testing.T, name string, src []byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ending) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file+ending, come(t, filepath.Base(file), src))
		})
	}
}

// Each file of testdata/faults has its findings, as a user sees them, in a file beside it.
func TestFaultsAreExplained(t *testing.T) {
	wanted(t, "faults", ".want", func(t *testing.T, name string, src []byte) []byte {
		_, findings := Load(name, src, testEnv)
		if len(findings) == 0 {
			t.Fatal("no findings")
		}
		var out bytes.Buffer
		findings.Render(&out, src, false)
		if !slices.IsSortedFunc(findings, func(a, b Finding) int { return comparePos(a.Pos, b.Pos) }) {
			t.Error("the findings are not in the order of the file")
		}
		for _, raw := range []string{"conflicting values", "disjunction", "hujson", "incomplete value", "_|_", "mapping values"} {
			if bytes.Contains(out.Bytes(), []byte(raw)) {
				t.Errorf("the words of a library show: %q", raw)
			}
		}
		return out.Bytes()
	})
}
