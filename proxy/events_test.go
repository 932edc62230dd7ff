package proxy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Whoever reads the log by a program relies on the list in the package's documentation.
func TestEveryEventIsInTheManual(t *testing.T) {
	manual, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	event := regexp.MustCompile(`(?:Event: |logInvalid\(op, )"(\w+)"`)
	emitted := map[string]bool{}
	for _, dir := range []string{".", "engine", "compose"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range event.FindAllStringSubmatch(string(text), -1) {
				emitted[found[1]] = true
			}
		}
	}
	for name := range emitted {
		if !strings.Contains(string(manual), "\n//\t"+name+" ") {
			t.Errorf("%s is not in the manual", name)
		}
	}
	for _, listed := range regexp.MustCompile(`\n//\t(\w+) +(?:debug|info|warn|error)[ ,]`).FindAllStringSubmatch(string(manual), -1) {
		if !emitted[listed[1]] {
			t.Errorf("%s is in the manual, and nobody logs it", listed[1])
		}
	}
	if len(emitted) < 15 {
		t.Errorf("only these events were found: %v", emitted)
	}
}
