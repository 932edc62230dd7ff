package policytest_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file, or writes it under -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	file = filepath.Join("testdata", file)
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

// load loads test files, under names that are the same on every system.
func load(t *testing.T, files ...string) []*policytest.Suite {
	t.Helper()
	loader := policytest.Loader{AnyRule: strings.HasPrefix(files[0], "update/")}
	var suites []*policytest.Suite
	for _, file := range files {
		s, err := loader.Load("testdata/" + file)
		if err != nil {
			t.Fatalf("%s: %v", file, explain(err))
		}
		suites = append(suites, s)
	}
	return suites
}

// explain renders what is wrong with a test file as a user sees it.
func explain(err error) string {
	var fault *policytest.Fault
	if !errors.As(err, &fault) || len(fault.Findings) == 0 {
		return err.Error() + "\n"
	}
	var out strings.Builder
	fault.Findings.Render(&out, fault.Text, false)
	return out.String()
}

func pretty(t *testing.T, r *policytest.Report) string {
	t.Helper()
	var out strings.Builder
	if err := r.WritePretty(&out, policytest.Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Every word of a script, every expectation and every kind of step does what the manual says, in each spelling.
func TestWhatTheManualSaysHolds(t *testing.T) {
	report := policytest.Run(load(t, "shop/works.test.yaml", "shop/works.test.json", "shop/works.test.cue"), policytest.Options{})
	if _, failed := report.Count(); failed > 0 {
		t.Error(pretty(t, report))
	}
}

func TestFailuresAreExplained(t *testing.T) {
	suites := load(t, "failing/failing.test.yaml")
	formats := map[string]func(*policytest.Report, io.Writer) error{
		"txt": func(r *policytest.Report, w io.Writer) error {
			return r.Write(w, "pretty", policytest.Style{Verbose: true})
		},
		"json":   (*policytest.Report).WriteJSON,
		"xml":    (*policytest.Report).WriteJUnit,
		"tap":    (*policytest.Report).WriteTAP,
		"github": (*policytest.Report).WriteGitHub,
	}
	for ending, write := range formats {
		var out bytes.Buffer
		if err := write(policytest.Run(suites, policytest.Options{}), &out); err != nil {
			t.Fatal(err)
		}
		golden(t, "failing/want."+ending, out.Bytes())
		switch ending {
		case "json":
			if !json.Valid(out.Bytes()) {
				t.Error("the JSON report is none")
			}
		case "xml":
			if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil {
				t.Errorf("the JUnit report is no XML: %v", err)
			}
		}
	}
}

// What a row comes to does not depend on which others are run, nor on how many at a time.
func TestRunsAreEqual(t *testing.T) {
	suites := load(t, "failing/failing.test.yaml", "shop/works.test.yaml")
	whole := pretty(t, policytest.Run(suites, policytest.Options{}))
	if again := pretty(t, policytest.Run(suites, policytest.Options{Coverage: true})); again != whole {
		t.Errorf("the second run differs:\n%s", again)
	}
	one := pretty(t, policytest.Run(suites, policytest.Options{Run: regexp.MustCompile("third")}))
	if start, _, _ := strings.Cut(one, "\n\nFAIL "); !strings.Contains(whole, start) {
		t.Errorf("a row that is run alone differs:\n%s", one)
	}
}

func TestOnlyMatchingRowsRun(t *testing.T) {
	suites := load(t, "shop/works.test.yaml")
	for pattern, want := range map[string]int{"^refunds": 4, "refunds / row 2$": 1, "/ it exits": 2, "no such": 0} {
		passed, failed := policytest.Run(suites, policytest.Options{Run: regexp.MustCompile(pattern)}).Count()
		if passed != want || failed != 0 {
			t.Errorf("%s: %d rows passed and %d failed; want %d", pattern, passed, failed, want)
		}
	}
}

func TestFailFastStopsAtTheFirst(t *testing.T) {
	passed, failed := policytest.Run(load(t, "failing/failing.test.yaml"), policytest.Options{FailFast: true}).Count()
	if passed != 1 || failed != 1 {
		t.Errorf("%d passed and %d failed; want one of each", passed, failed)
	}
}

func TestCoverageNamesWhatWasNotReached(t *testing.T) {
	report := policytest.Run(load(t, "failing/failing.test.yaml"), policytest.Options{Coverage: true})
	var text, page bytes.Buffer
	if err := report.Coverage.WriteText(&text, policytest.Style{}); err != nil {
		t.Fatal(err)
	}
	if err := report.Coverage.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	golden(t, "failing/coverage.txt", text.Bytes())
	golden(t, "failing/coverage.html", page.Bytes())
}

func TestExpectationsAreUpdatedInPlace(t *testing.T) {
	report := policytest.Run(load(t, "update/before.test.yaml"), policytest.Options{})
	text, kept := report.Files[0].Update()
	golden(t, "update/after.test.yaml", text)
	var left strings.Builder
	for _, failure := range kept {
		left.WriteString(failure.String() + "\n")
	}
	golden(t, "update/kept.txt", []byte(left.String()))

	var loader policytest.Loader // without AnyRule: only rules that are there have been written
	mended, err := loader.LoadText("testdata/update/before.test.yaml", text)
	if err != nil {
		t.Fatal(explain(err))
	}
	again := policytest.Run([]*policytest.Suite{mended}, policytest.Options{})
	if more, _ := again.Files[0].Update(); !bytes.Equal(more, text) {
		t.Errorf("a second update changes the file again:\n%s", more)
	}
}

// JSON and CUE have comments and values of several lines as well. An expression of CUE gives way to what came.
func TestExpectationsOfOtherSpellingsAreUpdated(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"a.test.json": {`{"config": "mcp-retry.yaml", "tests": [{"name": "a", "call": {"tool": "order", "args": {"id": "o"}}, "expect": {
  "status": // why
    "error",
  "result": { /* in part */
    "content": [ // one
      {"type": "text",
       "text": "it's # not"}
    ],
  },
  "delays": [
    1, // a
    2  // b
  ],
}}]}`, `{"config": "mcp-retry.yaml", "tests": [{"name": "a", "call": {"tool": "order", "args": {"id": "o"}}, "expect": {
  "status": // why
    "ok",
  "result": { /* in part */
    "content": [ // one
      {"type": "text",
       "text": "ok"}
    ],
  },
  // a
  // b
  "delays": [],
}}]}`},
		// what is put in has the order that the server gave it
		"b.test.json": {`{"config": "mcp-retry.yaml", "tests": [{"name": "a", "call": {"tool": "order", "args": {"id": "o"}}, "server": [
  {"result": {"content": [{"type": "text", "text": "<1>", "annotations": {"priority": 1.50, "audience": ["user"]}}]}}],
  "expect": {"result": {"content": []}}}]}`, `{"config": "mcp-retry.yaml", "tests": [{"name": "a", "call": {"tool": "order", "args": {"id": "o"}}, "server": [
  {"result": {"content": [{"type": "text", "text": "<1>", "annotations": {"priority": 1.50, "audience": ["user"]}}]}}],
  "expect": {"result": {"content": [{"type": "text", "text": "<1>", "annotations": {"priority": 1.50, "audience": ["user"]}}]}}}]}`},
		"a.test.cue": {`config: "mcp-retry.yaml"
#one: 5
tests: [{name: "a", call: {tool: "order", args: {id: "o"}}, expect: {
	attempts: #one
	status: "error" // why
	delays: [
		"1s", // a
	]
}}]`, `config: "mcp-retry.yaml"
#one: 5
tests: [{name: "a", call: {tool: "order", args: {id: "o"}}, expect: {
	attempts: 1
	status: "ok" // why
	// a
	delays: []
}}]`},
	} {
		var loader policytest.Loader
		s, err := loader.LoadText("testdata/update/"+name, []byte(c.before))
		if err != nil {
			t.Fatalf("%s: %s", name, explain(err))
		}
		text, _ := policytest.Run([]*policytest.Suite{s}, policytest.Options{}).Files[0].Update()
		if string(text) != c.after {
			t.Errorf("%s is now\n%s", name, text)
		}
	}
}

// What is so of a step is told once, what is so of a call is told of that call, and so are the reasons.
func TestFailuresOfSeveralCallsSayOfWhich(t *testing.T) {
	var loader policytest.Loader
	s, err := loader.LoadText("testdata/update/calls.test.yaml", []byte(`
config: mcp-retry.yaml
tests:
  - name: a
    call: {tool: order, args: {id: o}}
    at: [0s, 0s]
    server: [ok]
    expect: {executions: 2, deduplicated: true, rules: {on_conflict: null}}
`))
	if err != nil {
		t.Fatal(explain(err))
	}
	text := pretty(t, policytest.Run([]*policytest.Suite{s}, policytest.Options{}))
	for want, times := range map[string]int{
		"want 2     got 1\n": 1, "executions ": 1, "want true  got false (call 1 of 2)": 1, "got otherwise (call 2 of 2)": 1,
		"    call 1 of 2\n    idempotency_key": 1, "    call 2 of 2\n    on_conflict": 1,
	} {
		if strings.Count(text, want) != times {
			t.Errorf("%q is not there %d times:\n%s", want, times, text)
		}
	}
}

// A path of the root is one, and not one beside the file.
func TestAbsolutePathsAreUsed(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return strconv.Quote(filepath.ToSlash(file))
	}
	text := fmt.Sprintf("config: %s\ntools: %s\ntests: [{name: a, call: {tool: look}, server: [ok]}]",
		path("c.yaml", "servers: {s: {command: x}}"), path("tools.json", `{"servers": {"s": {"tools": [{"name": "look"}]}}}`))
	var loader policytest.Loader
	s, err := loader.LoadText(filepath.Join(t.TempDir(), "a.test.yaml"), []byte(text))
	if err != nil {
		t.Fatal(explain(err))
	}
	if sources := s.Sources(); len(sources) != 3 || sources[1] != filepath.Join(dir, "c.yaml") || sources[2] != filepath.Join(dir, "tools.json") {
		t.Errorf("the test depends on %q", sources)
	}
}

// A snapshot is indented over several lines, and has tools for each server.
func TestToolsOfASnapshotCount(t *testing.T) {
	suites := load(t, "servers/servers.test.yaml")
	if report := policytest.Run(suites, policytest.Options{}); pretty(t, report) != "PASS  2 tests in 1 file\n" {
		t.Error(pretty(t, report))
	}
	e := policytest.Explore(suites[0], policytest.ExploreOptions{MaxSequences: 300})
	if len(e.Calls) != 3 || e.Sequences() == 0 {
		t.Errorf("%d calls were explored; want look, buy and send", len(e.Calls))
	}
}

// Each file of testdata/faults has what is wrong with it, as a user sees it, in a file beside it.
func TestFaultyFilesAreExplained(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.test.*")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			var loader policytest.Loader
			_, err := loader.Load(filepath.ToSlash(file))
			if err == nil {
				t.Fatal("it loads")
			}
			golden(t, "faults/"+filepath.Base(file)+".want", []byte(explain(err)))
		})
	}
}

func TestTestFilesAreFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a.test.yaml", "b.test.yml", "c.test.json", "d.test.cue", "in/side/e.test.yaml", "mcp-retry.yaml", "f.yaml",
		".hidden/g.test.yaml", "node_modules/x/h.test.yaml", "testdata.test",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := policytest.Find([]string{dir, filepath.Join(dir, "a.test.yaml"), filepath.Join(dir, "f.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range found {
		name, _ := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
	}
	want := []string{"a.test.yaml", "b.test.yml", "c.test.json", "d.test.cue", "f.yaml", "in/side/e.test.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	if _, err := policytest.Find([]string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a path that is not there is no error")
	}
}
