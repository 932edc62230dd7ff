package policytest_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// FuzzTestFile: whatever a test file holds, it is refused with findings or runs to an end, and every report of it can be written.
func FuzzTestFile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.test.yaml")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && len(text) < 4<<10 {
			f.Add(text)
		}
	}
	f.Add([]byte("config: mcp-retry.yaml\ntests: [{name: a, call: {tool: get_stock, args: {sku: a}}, server: [timeout x2, {error: {code: -32000}}, ok], expect: {attempts: 4}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 {
			return
		}
		var loader policytest.Loader
		suite, err := loader.LoadText(filepath.Join("testdata", "shop", "fuzz.test.yaml"), text)
		if err != nil {
			if err.Error() == "" {
				t.Error("refused without a word")
			}
			return
		}
		report := policytest.Run([]*policytest.Suite{suite}, policytest.Options{Coverage: true})
		for _, format := range policytest.Formats {
			if err := report.Write(io.Discard, format, policytest.Style{Verbose: true}); err != nil {
				t.Errorf("%s: %v", format, err)
			}
		}
		passed, failed := report.Count()
		if rows := len(report.Files[0].Results); passed+failed != rows {
			t.Errorf("%d passed and %d failed of %d", passed, failed, rows)
		}
	})
}
