package policytest_test

import (
	"bytes"
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

// FuzzUpdate: whatever a test file holds, updating it gives a file that loads, makes the same calls, fails in what was kept and in
// nothing else, and is as it is when it is updated again.
func FuzzUpdate(f *testing.F) {
	names := []string{"fuzz.test.yaml", "fuzz.test.json", "fuzz.test.cue"}
	for i, file := range []string{"update/before.test.yaml", "failing/failing.test.yaml", "shop/works.test.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		if i == 0 {
			f.Add(uint8(0), text)
		}
		for test := range bytes.SplitSeq(text, []byte("\n  - ")) {
			f.Add(uint8(0), append([]byte("config: mcp-retry.yaml\ntests:\n  - "), test...))
		}
	}
	for i, text := range []string{
		"config: mcp-retry.yaml\ntests: [{name: a, call: {tool: order, args: {id: &n 3}}, expect: {attempts: *n}}]",
		"config: mcp-retry.yaml\ntests: [{name: a, call: {tool: order, args: {id: o}}, expect: &e {attempts: 3, status: error}}, {name: b, call: {tool: order}, expect: *e}]",
		"{\"config\": \"mcp-retry.yaml\", \"tests\": [{\"name\": \"a\", \"call\": {\"tool\": \"order\", \"args\": {\"id\": \"o\"}},\n\"expect\": {\"status\": // why\n\"error\", \"delays\": [1, // a\n2]}}]}",
		"config: \"mcp-retry.yaml\"\n#one: 5\ntests: [{name: \"a\", call: {tool: \"order\", args: {id: \"o\"}}, expect: {\n\tattempts: #one\n\tdelays: [\"1s\", // a\n]}}]",
	} {
		f.Add(uint8(max(0, i-1)), []byte(text))
	}
	f.Fuzz(func(t *testing.T, spelling uint8, text []byte) {
		file := filepath.Join("testdata", "update", names[int(spelling)%len(names)])
		if len(text) > 8<<10 || filepath.Ext(file) == ".cue" && len(text) > 300 {
			return
		}
		report, refused := run(file, text)
		if refused != nil {
			return
		}
		updated, kept := report.Update()
		again, refused := run(file, updated)
		if refused != nil {
			t.Fatalf("%s\nbecame\n%s\nwhich is refused: %v", text, updated, refused)
		}
		left := 0
		if len(again.Results) != len(report.Results) {
			t.Fatalf("%s\nbecame\n%s\nwith other tests", text, updated)
		}
		for i, r := range again.Results {
			left += len(r.Failures)
			if before := report.Results[i]; r.Name() != before.Name() || len(r.Steps) != len(before.Steps) {
				t.Errorf("another test is in the place of %q", before.Name())
			}
		}
		if left != len(kept) {
			t.Errorf("%d failures are left, and those were kept: %v", left, kept)
		}
		if more, _ := again.Update(); !bytes.Equal(more, updated) {
			t.Errorf("a second update gives\n%s", more)
		}
		if t.Failed() {
			t.Logf("%s\nbecame\n%s", text, updated)
		}
	})
}

// run runs a test file of that text.
func run(file string, text []byte) (*policytest.FileReport, error) {
	var loader policytest.Loader
	suite, err := loader.LoadText(file, text)
	if err != nil {
		return nil, err
	}
	return &policytest.Run([]*policytest.Suite{suite}, policytest.Options{}).Files[0], nil
}
