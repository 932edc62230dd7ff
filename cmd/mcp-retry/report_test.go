package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/bentabol/mcp-retry/policy/policytest/junit"
	"github.com/bentabol/mcp-retry/schema"
)

// hostileFiles have what reports must escape: in names, in messages, and in the text that is quoted.
func hostileFiles(t *testing.T) []checkedFile {
	t.Helper()
	var files []checkedFile
	for name, text := range map[string]string{
		"a b,c:%d.yaml":      "servers:\n  a:\n    command: x\n    \"call%::_timeout,\\r\\n]]>&<\\e[31m\": 5\n    retry: {max_retires: 5}\n",
		"dir/<&>\"'.yaml":    "servers:\n  日本語:\n    command: x\n    args: x\n",
		"good.yaml":          "servers: {a: {command: x}}\n",
		"/root/broken.yaml":  "servers: {a: {command: \x00}}\n",
		"notutf8.yaml":       "servers: {a: {command: \xff}}\n",
		"secret.yaml":        "servers: {a: {command: x, env: {T: ghp_16C7e42F292c6912E7710c838347Ae178B4a}}}\n",
		"empty.yaml":         "",
		"with\nnewline.yaml": "servers: {}\n",
	} {
		l := loadText(name, []byte(text))
		files = append(files, checkedFile{name: name, text: l.shown(), findings: l.lint(name, nil, true)})
	}
	// one of each rule
	for _, e := range schema.Catalog() {
		l := loadText("mcp-retry.yaml", []byte(asFile(e.Bad)))
		files = append(files, checkedFile{name: e.ID + ".yaml", text: l.shown(), findings: l.lint("mcp-retry.yaml", nil, true)})
	}
	return files
}

func reported(t *testing.T, format string, files []checkedFile) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := formats[format](&out, files, reportStyle{failLevel: schema.Error}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out.Bytes(), []byte("16C7e42F")) {
		t.Error("it shows a secret")
	}
	return out.Bytes()
}

// The schema is the one that OASIS publishes with the standard.
func TestSARIFFollowsTheStandard(t *testing.T) {
	text, err := os.ReadFile("testdata/sarif/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	standard, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]checkedFile{"hostile": hostileFiles(t), "none": nil} {
		out := reported(t, "sarif", files)
		log, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := standard.Validate(log); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSARIFNamesEachFindingByRulePlaceAndFingerprint(t *testing.T) {
	var log sarifLog
	files := hostileFiles(t)
	if err := json.Unmarshal(reported(t, "sarif", files), &log); err != nil {
		t.Fatal(err)
	}
	run, n := log.Runs[0], 0
	prints := map[string]bool{}
	for _, file := range files {
		for _, f := range file.findings {
			r := run.Results[n]
			at := r.Locations[0].Physical
			rule := run.Tool.Driver.Rules[r.RuleIndex]
			if rule.ID != r.RuleID || r.RuleID != f.Code() || at.Region.StartLine != f.Pos.Line || at.Region.StartColumn != f.Pos.Col ||
				at.Region.EndColumn != f.Pos.Col+max(f.Pos.Len, 1) || run.Artifacts[at.Artifact.Index].Location.URI != at.Artifact.URI {
				t.Errorf("%v: %+v", f, r)
			}
			print := at.Artifact.URI + r.Fingerprints["finding/v1"]
			if prints[print] {
				t.Errorf("%v: a fingerprint twice", f)
			}
			prints[print] = true
			n++
		}
	}
	if n != len(run.Results) || n < 40 {
		t.Errorf("%d findings, %d results", n, len(run.Results))
	}
}

func TestFingerprintsOutliveLinesAddedAbove(t *testing.T) {
	of := func(text string) string {
		l := loadText("a.yaml", []byte(text))
		return fingerprint(checkedFile{text: l.text}, l.findings[0])
	}
	if a, b := of("servers:\n  a: {command: x, restrt: never}\n"), of("# more\n\nservers:\n  a: {command: x, restrt: never}\n"); a != b {
		t.Error(a, b)
	}
}

func TestGitHubCommandsCannotBeBrokenOutOf(t *testing.T) {
	files := hostileFiles(t)
	errors, warnings, notes := count(files)
	lines := strings.Split(strings.TrimSuffix(string(reported(t, "github", files)), "\n"), "\n")
	if len(lines) != errors+warnings+notes {
		t.Fatalf("%d lines for %d findings", len(lines), errors+warnings+notes)
	}
	for _, line := range lines {
		command, rest, ok := strings.Cut(strings.TrimPrefix(line, "::"), " ")
		properties, message, found := strings.Cut(rest, "::")
		if !ok || !found || message == "" || command != "error" && command != "warning" && command != "notice" {
			t.Errorf("no command: %s", line)
		}
		names := ""
		for _, p := range strings.Split(properties, ",") {
			name, value, ok := strings.Cut(p, "=")
			if names += name + " "; !ok || value == "" || strings.Contains(value, ":") {
				t.Errorf("%s: a broken property %q", line, p)
			}
		}
		if names != "file line endLine col endColumn title " {
			t.Errorf("%s: properties %s", line, names)
		}
	}
}

func TestJUnitIsWellFormedAndCounts(t *testing.T) {
	files := hostileFiles(t)
	out := reported(t, "junit", files)
	decoder := xml.NewDecoder(bytes.NewReader(out))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
	}
	var report junit.Report
	if err := xml.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	errors, _, _ := count(files)
	cases, failures := 0, 0
	for _, s := range report.Suites {
		cases += len(s.Cases)
		for _, c := range s.Cases {
			if c.Failure != nil {
				failures++
			}
		}
	}
	if report.Failures != errors || failures != errors || cases != report.Tests || len(report.Suites) != len(files) {
		t.Errorf("%d failures for %d errors, %d cases, said to be %d", failures, errors, cases, report.Tests)
	}
}

// full takes nothing, as a disk that has no room left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// Silence means that all is well: a report that does not get through must not be one.
func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	files := hostileFiles(t)
	for _, format := range formatNames() {
		if err := formats[format](full{}, files, reportStyle{failLevel: schema.Error}); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
}

func TestCompactIsALineForEachFinding(t *testing.T) {
	files := hostileFiles(t)
	errors, warnings, notes := count(files)
	out := string(reported(t, "compact", files))
	if n := strings.Count(out, "\n"); n != errors+warnings+notes {
		t.Errorf("%d lines", n)
	}
	if strings.ContainsAny(out, "\x1b\r\x00") {
		t.Error("it acts on a terminal")
	}
}

func TestJSONReportHasEveryFinding(t *testing.T) {
	files := hostileFiles(t)
	var report struct {
		Files                   []string
		Errors, Warnings, Notes int
		Findings                []jsonFinding
	}
	if err := json.Unmarshal(reported(t, "json", files), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Files) != len(files) || len(report.Findings) != report.Errors+report.Warnings+report.Notes {
		t.Errorf("%+v", report)
	}
	for _, f := range report.Findings {
		if f.Rule == "" || f.ID == "" || f.Line < 1 || f.Column < 1 || f.Length < 1 || f.Message == "" {
			t.Errorf("%+v", f)
		}
	}
}
