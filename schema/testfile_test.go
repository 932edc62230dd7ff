package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cuelang.org/go/cue/cuecontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestTestSchemaCompiles(t *testing.T) {
	if err := cuecontext.New().CompileBytes(TestCUE()).Err(); err != nil {
		t.Error(err)
	}
}

// loadTest loads a file whose only test has these members, which nothing must be said against.
func loadTest(t *testing.T, members string) *Test {
	t.Helper()
	f, findings := LoadTest("a.test.yaml", []byte("config: a.yaml\ntests:\n  - {name: a, "+members+"}\n"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return f.Tests[0]
}

func TestRowsTakeOverWhatTheyDoNotState(t *testing.T) {
	a := loadTest(t, "call: {tool: x}, server: [ok], expect: {status: ok}, each: [{server: [timeout x2]}, {call: {tool: y}, expect: {}}]")
	first, second := a.Rows[0].Steps[0], a.Rows[1].Steps[0]
	if first.Call.Tool != "x" || len(first.Script) != 2 || first.Script[1].Kind != "timeout" || len(first.Expect) != 1 {
		t.Errorf("the first row is %+v", first)
	}
	if second.Call.Tool != "y" || second.Script[0].Kind != "ok" || len(second.Expect) != 0 {
		t.Errorf("the second row is %+v", second)
	}
	b := loadTest(t, "steps: [{call: {tool: x}, server: [ok]}, {advance: 90}, {call: {tool: y}}]")
	if steps := b.Rows[0].Steps; steps[0].Call.Tool != "x" || steps[1].Call != nil || steps[1].Advance != 90*time.Second || steps[2].Call.Tool != "y" {
		t.Errorf("the steps are %+v", steps)
	}
}

// What stands beside steps would be carried out by halves.
func TestATestIsEitherOneCallOrSteps(t *testing.T) {
	for _, beside := range []string{"call: {tool: x}", "expect: {status: ok}", "server: [ok]", "at: [0s]", "cancel: 1s"} {
		text := "config: a.yaml\ntests:\n  - {name: a, " + beside + ", steps: [{call: {tool: y}}]}\n"
		_, findings := LoadTest("a.test.yaml", []byte(text))
		if len(findings) != 1 || findings[0].ID != "bad-value" || findings[0].Pos.Col != 15 {
			t.Errorf("%s: %v", beside, findings)
		}
	}
}

func TestWhatCannotBeMetIsFound(t *testing.T) {
	for members, want := range map[string]string{
		"call: {tool: x}, expect: {took: 5s..1s}":         `no duration is in the range "5s..1s"`,
		"call: {tool: x}, expect: {cache_ttl: '<0s'}":     `no duration is in the range "<0s"`,
		"call: {tool: x}, expect: {delays: [1s, 3s..2s]}": `no duration is in the range "3s..2s"`,
		"call: {tool: x}, expect: {}":                     `"expect" expects nothing`,
		"call: {tool: x}, expect: {error: {}}":            `"error" expects nothing`,
		"steps: [{call: {tool: x}, expect: {rules: {}}}]": `"rules" expects nothing`,
	} {
		_, findings := LoadTest("a.test.yaml", []byte("config: a.yaml\ntests:\n  - {name: a, "+members+"}\n"))
		if len(findings) != 1 || findings[0].Message != want {
			t.Errorf("%s: %v", members, findings)
		}
	}
	_, findings := LoadTest("a.test.yaml", []byte("config: a.yaml\ntools: [{name: x}, {name: y}, {name: x}]\ntests: []\n"))
	if len(findings) != 1 || findings[0].ID != "repeated-name" || findings[0].Pos.String() != "a.test.yaml:2:38" {
		t.Error(findings)
	}
}

func TestWordsOfScriptsAndTheirEffects(t *testing.T) {
	for item, want := range map[string]TestAnswer{
		"ok":                                {Kind: "ok", Effect: true},
		"exit":                              {Kind: "exit"},
		"{exit: , effect: yes}":             {Kind: "exit", Effect: true},
		"{ok: , effect: no}":                {Kind: "ok"},
		"{result: {isError: true}}":         {Kind: "result", Value: []byte(`{"isError":true}`)},
		"{result: {a: 1.50, b: [x, null]}}": {Kind: "result", Value: []byte(`{"a":1.50,"b":["x",null]}`), Effect: true},
		"{hang: 1h}":                        {Kind: "hang", After: time.Hour},
		"{late: 2}":                         {Kind: "late", After: 2 * time.Second, Effect: true},
		"{error: {code: -32000, message: 'no'}, after: 500ms}": {Kind: "error", Value: []byte(`{"code":-32000,"message":"no"}`), After: 500 * time.Millisecond},
		"{tool_error: gone}": {Kind: "tool_error", Value: []byte(`"gone"`)},
	} {
		got := loadTest(t, "call: {tool: x}, server: ["+item+"]").Rows[0].Steps[0].Script[0]
		if got.Kind != want.Kind || got.Effect != want.Effect || got.After != want.After || string(got.Value) != string(want.Value) {
			t.Errorf("%s: %+v %s", item, got, got.Value)
		}
	}
}

func TestRangesOfDurations(t *testing.T) {
	for text, in := range map[string][]time.Duration{
		"2s":           {2 * time.Second},
		"2":            {2 * time.Second},
		"'<=500ms'":    {0, 500 * time.Millisecond},
		"'<500ms'":     {0, 499 * time.Millisecond},
		"'>= 1m30s'":   {90 * time.Second, time.Hour},
		"'>1s'":        {1001 * time.Millisecond},
		"1s..2s":       {time.Second, 2 * time.Second},
		"'1s .. 1.5s'": {1500 * time.Millisecond},
	} {
		span := loadTest(t, "call: {tool: x}, expect: {took: "+text+"}").Rows[0].Steps[0].Expect[0].Want.(Span)
		for _, d := range in {
			if !span.Contains(d) {
				t.Errorf("%s leaves out %s", text, d)
			}
		}
		out := []time.Duration{-1}
		switch text {
		case "'<=500ms'", "'<500ms'":
			out = append(out, 501*time.Millisecond)
		case "'>1s'":
			out = append(out, time.Second)
		case "2s", "2":
			out = append(out, 1999*time.Millisecond, 2001*time.Millisecond)
		case "1s..2s":
			out = append(out, 2001*time.Millisecond, 999*time.Millisecond)
		}
		if i := slices.IndexFunc(out, span.Contains); i >= 0 {
			t.Errorf("%s takes in %s", text, out[i])
		}
	}
}

func TestExpectationsKnowTheirPlace(t *testing.T) {
	f, findings := LoadTest("a.test.yaml", []byte(`config: a.yaml
tests:
  - name: a
    call: {tool: x}
    expect:
      status: ok
      error: {code: -32603, text: /bo+m/}
      rules: {retry: null}
`))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	want := []struct {
		key, pos string
		want     any
	}{
		{"status", "a.test.yaml:6:15", "success"},
		{"error.code", "a.test.yaml:7:21", int64(-32603)},
		{"error.text", "a.test.yaml:7:35", Pattern("bo+m")},
		{"rules.retry", "a.test.yaml:8:22", nil},
	}
	for i, e := range f.Tests[0].Rows[0].Steps[0].Expect {
		if e.Key != want[i].key || e.Pos.String() != want[i].pos || e.Want != want[i].want {
			t.Errorf("%s at %s is %v; want %v", e.Key, e.Pos, e.Want, want[i])
		}
	}
}

func FuzzLoadTest(f *testing.F) {
	f.Add("config: a\ntests: [{name: a, call: {tool: b, args: {c: [1, null]}}, server: [ok x3], expect: {took: <=1s}}]")
	f.Add(`{"config": "a", "tests": [{"name": "a", "steps": [{"advance": 1}]}]}`)
	f.Add("tests: {each: [")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.test.yaml", "a.test.json"} {
			file, findings := LoadTest(name, []byte(text))
			if file == nil && !findings.HasErrors() {
				t.Fatal("neither a file nor a finding")
			}
			lines := strings.Count(strings.ReplaceAll(text, "\r", "\n"), "\n") + 1
			for _, x := range findings {
				if x.Pos.Line < 1 || x.Pos.Line > lines || x.Pos.Col < 1 || x.Message == "" || x.ID == "" {
					t.Errorf("%+v", x)
				}
			}
		}
	})
}

// Editors that check a test file with the JSON Schema say what LoadTest says.
func TestJSONSchemaOfTestFilesAgrees(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(TestJSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("test.json")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../examples/*/*.test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range append(files, "../policy/policytest/testdata/shop/works.test.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, step := range []string{
		"call: {tol: x}", "call: {tool: x}, server: [okay]", "call: {tool: x}, expect: {state: ok}", "call: {tool: x}, expect: {attempts: -1}",
		"call: {tool: x}, expect: {took: soon}", "call: {tool: x}, server: [{ok: , effect: maybe}]", "restart: client",
	} {
		text := []byte("config: a.yaml\ntests: [{name: a, steps: [{" + step + "}]}]\n")
		if s.Validate(asJSON(t, text)) == nil {
			t.Errorf("the JSON schema takes %s", step)
		}
		if _, findings := LoadTest("a.test.yaml", text); !findings.HasErrors() {
			t.Errorf("LoadTest takes %s", step)
		}
	}
	const x = "call: {tool: x}"
	for test, good := range map[string]bool{
		x:                              true,
		"steps: [{" + x + "}]":         true,
		"each: [{" + x + "}]":          true,
		x + ", each: [{server: [ok]}]": true,
		"steps: [{advance: 1}, {restart: proxy}, {notify: a}, {" + x + ", at: [0], cancel: 1}]": true,
		x + ", server: [{timeout: , effect: yes}, {ok: , after: 1}, {hang: 3s, times: 2}]":      true,
		"server: [ok]":                              false,
		x + ", steps: [{" + x + "}]":                false,
		"server: [ok], steps: [{" + x + "}]":        false,
		"steps: [{" + x + "}], each: [{" + x + "}]": false,
		"each: [{" + x + "}, {server: [ok]}]":       false,
		"steps: [{}]":                               false,
		"steps: [{server: [ok]}]":                   false,
		"steps: [{" + x + ", advance: 1}]":          false,
		"steps: [{advance: 1, restart: proxy}]":     false,
		"steps: [{advance: 1, cancel: 1}]":          false,
		x + ", server: [{ok: , timeout: }]":         false,
		x + ", server: [{after: 1s}]":               false,
	} {
		text := []byte("config: a.yaml\ntests: [{name: a, " + test + "}]\n")
		if err := s.Validate(asJSON(t, text)); (err == nil) != good {
			t.Errorf("the JSON schema on %s: %v", test, err)
		}
		if _, findings := LoadTest("a.test.yaml", text); findings.HasErrors() == good {
			t.Errorf("LoadTest on %s: %v", test, findings)
		}
	}
}
