package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// Message says on a line what was not as expected.
func (f *Failure) Message() string {
	if f.Key == "" {
		return f.Text
	}
	have := f.Got
	if have == "" {
		have = "nothing"
	}
	return fmt.Sprintf("%s: want %s, got %s", f.Key, f.Want, have)
}

// explained is all that the pretty report says of a row that failed.
func explained(s *Suite, r *Result) string {
	var text strings.Builder
	p := &pretty{w: &text}
	p.failures(r)
	p.timeline(r)
	p.reasons(r)
	return text.String()
}

// The parts of a JUnit report that CI systems agree on: a suite for each file, a case for each row of a test.
type (
	junitReport struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr,omitempty"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",cdata"`
	}
)

// WriteJUnit writes the report for CI systems that show tests.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junitReport{Name: "mcp-retry test"}
	for _, f := range r.Files {
		suite := junitSuite{Name: f.Suite.File.File, Tests: len(f.Results)}
		for _, result := range f.Results {
			c := junitCase{Name: result.Name(), Class: result.File, File: result.File, Line: result.Pos.Line}
			if !result.Passed() {
				suite.Failures++
				c.Failure = &junitFailure{Message: result.Failures[0].Message(), Text: "\n" + explained(f.Suite, result)}
			}
			suite.Cases = append(suite.Cases, c)
		}
		out.Tests += suite.Tests
		out.Failures += suite.Failures
		out.Suites = append(out.Suites, suite)
	}
	for _, result := range r.faulty() {
		c := junitCase{Name: result.Name(), Class: result.File, File: result.File, Line: result.Pos.Line,
			Failure: &junitFailure{Message: result.Failures[0].Message(), Text: "\n" + explained(nil, result)}}
		out.Tests, out.Failures = out.Tests+1, out.Failures+1
		out.Suites = append(out.Suites, junitSuite{Name: result.File, Tests: 1, Failures: 1, Cases: []junitCase{c}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteTAP writes the report in the Test Anything Protocol, version 13.
func (r *Report) WriteTAP(w io.Writer) error {
	p := &pretty{w: w}
	passed, failed := r.Count()
	p.printf("TAP version 13\n1..%d\n", passed+failed)
	n := 0
	write := func(s *Suite, result *Result) {
		n++
		verdict := "ok"
		if !result.Passed() {
			verdict = "not ok"
		}
		name := strings.NewReplacer("#", `\#`, "\n", " ").Replace(result.File + ": " + result.Name())
		p.printf("%s %d - %s\n", verdict, n, name)
		if result.Passed() {
			return
		}
		for line := range strings.Lines(explained(s, result)) {
			p.printf("# %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, f := range r.Files {
		for _, result := range f.Results {
			write(f.Suite, result)
		}
	}
	for _, result := range r.faulty() {
		write(nil, result)
	}
	return p.err
}

// WriteGitHub writes each failure as an annotation of its place, for GitHub Actions, and what else there is to say in a group
// of the log.
func (r *Report) WriteGitHub(w io.Writer) error {
	p := &pretty{w: w}
	annotate := func(result *Result) {
		for _, failure := range result.Failures {
			p.printf("::error file=%s,line=%d,col=%d,title=%s::%s\n", property(failure.Pos.File), max(failure.Pos.Line, 1), max(failure.Pos.Col, 1),
				property(result.Name()), annotation(failure.Message()))
		}
	}
	for _, result := range r.faulty() {
		annotate(result)
	}
	for _, f := range r.Files {
		for _, result := range f.Results {
			annotate(result)
			if !result.Passed() {
				p.printf("::group::%s\n%s::endgroup::\n", annotation(result.Name()), explained(f.Suite, result))
			}
		}
	}
	passed, failed := r.Count()
	p.printf("%d passed, %d failed\n", passed, failed)
	return p.err
}

// annotation escapes the message of a workflow command, property a property of one (GitHub Actions, "Workflow commands").
func annotation(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(annotation(s))
}
