package policytest_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// An operator may allow an unsafe tool to be sent again after all. Then it can be executed twice, and exploring says so.
func TestExploringFindsWhatShouldNotBe(t *testing.T) {
	e := policytest.Explore(load(t, "explore/explore.test.yaml")[0], policytest.ExploreOptions{MaxSequences: 600})
	if len(e.Calls) != 3 || e.Sequences() == 0 || e.Sequences() > 600 {
		t.Errorf("%d sequences of %d calls; want three calls and at most 600 sequences", e.Sequences(), len(e.Calls))
	}
	idle := &policytest.Exploration{Suite: load(t, "shop/works.test.yaml")[0]}
	for format, ending := range map[string]string{"pretty": "txt", "json": "json", "junit": "xml", "tap": "tap", "github": "github"} {
		var out bytes.Buffer
		r := &policytest.ExploreReport{Files: []*policytest.Exploration{e, idle}}
		if err := r.Write(&out, format, policytest.Style{}); err != nil {
			t.Fatal(err)
		}
		golden(t, "explore/want."+ending, out.Bytes())
		if format == "json" && !json.Valid(out.Bytes()) {
			t.Error("the JSON report is none")
		}
		if err := xml.Unmarshal(out.Bytes(), new(struct{})); format == "junit" && err != nil {
			t.Errorf("the JUnit report is no XML: %v", err)
		}
	}
}

// Whoever pastes all that was found into the file has tests that fail as exploring said, whatever the spelling of the file.
func TestCounterExamplesFailAsTests(t *testing.T) {
	for name, file := range map[string]struct{ start, between, end string }{
		"found.test.yaml": {"config: mcp-retry.yaml\ntools: [{name: transfer, annotations: {readOnlyHint: false}}]\ntests:\n  - {name: a transfer, call: {tool: transfer, args: {to: [kim]}}, server: [ok]}\n", "", ""},
		"found.test.json": {`{"config": "mcp-retry.yaml", "tools": [{"name": "transfer", "annotations": {"readOnlyHint": false}}], "tests": [
			{"name": "a transfer", "call": {"tool": "transfer", "args": {"to": ["kim"]}}, "server": ["ok"]}`, ",", "]}"},
		"found.test.cue": {`config: "mcp-retry.yaml", tools: [{name: "transfer", annotations: {readOnlyHint: false}}], tests: [
			{name: "a transfer", call: {tool: "transfer", args: {to: ["kim"]}}, server: ["ok"]}`, ",", "]"},
	} {
		found, n := "", 0
		for range 2 { // the second time, what was found the first time is there already
			text := file.start + found + file.end
			var loader policytest.Loader
			s, err := loader.LoadText("testdata/explore/"+name, []byte(text))
			if err != nil {
				t.Fatalf("%s: %s\n%s", name, explain(err), text)
			}
			e := policytest.Explore(s, policytest.ExploreOptions{MaxSequences: 600})
			for _, v := range e.Calls[0].Violated {
				found += file.between + v.Test
				n++
			}
		}
		text := file.start + found + file.end
		var loader policytest.Loader
		s, err := loader.LoadText("testdata/explore/"+name, []byte(text))
		if err != nil {
			t.Fatalf("%s: %s\n%s", name, explain(err), text)
		}
		report := policytest.Run([]*policytest.Suite{s}, policytest.Options{})
		if _, failed := report.Count(); n == 0 || failed != n {
			t.Errorf("%s: %d of %d counter-examples fail:\n%s", name, failed, n, pretty(t, report))
		}
		for _, r := range report.Files[0].Results[1:] {
			if f := r.Failures[0]; f.Key != "executions" || f.Want != "1" || f.Got != "2" {
				t.Errorf("%s: %s fails otherwise: %s", name, r.Name(), f.Message())
			}
		}
	}
}

// Whatever becomes of the attempts, no policy of the repository breaks what should hold under any.
func TestExploringFindsNothingElsewhere(t *testing.T) {
	for _, file := range []string{"shop/works.test.yaml", "shop/works.test.json"} {
		e := policytest.Explore(load(t, file)[0], policytest.ExploreOptions{MaxSequences: 3000})
		for _, c := range e.Calls {
			for _, v := range c.Violated {
				t.Errorf("%s: %s\n%s", file, v.Reason, v.Test)
			}
		}
	}
}

// Two tests of a file must not have the same name.
func TestNamesOfCounterExamplesAreTheirOwn(t *testing.T) {
	e := policytest.Explore(load(t, "explore/explore.test.yaml")[0], policytest.ExploreOptions{MaxSequences: 600})
	names := map[string]bool{}
	for _, c := range e.Calls {
		for _, v := range c.Violated {
			name, _, _ := strings.Cut(v.Test, "\n")
			if names[name] {
				t.Errorf("two are %s", name)
			}
			names[name] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("%d counter-examples; want one for each call of transfer", len(names))
	}
}
