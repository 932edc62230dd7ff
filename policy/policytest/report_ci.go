package policytest

import (
	"fmt"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/policy/policytest/junit"
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

// WriteJUnit writes the report for CI systems that show tests: a suite for each file, a case for each row of a test.
func (r *Report) WriteJUnit(w io.Writer) error {
	out := junit.Report{Name: "mcp-retry test"}
	for _, f := range r.Files {
		suite := junit.Suite{Name: harmless(f.Suite.File.File)}
		for _, result := range f.Results {
			suite.Cases = append(suite.Cases, junitCase(f.Suite, result))
		}
		out.Add(suite)
	}
	for _, result := range r.faulty() {
		out.Add(junit.Suite{Name: harmless(result.File), Cases: []junit.Case{junitCase(nil, result)}})
	}
	return out.Write(w)
}

func junitCase(s *Suite, r *Result) junit.Case {
	c := junit.Case{Name: harmless(r.Name()), Class: harmless(r.File), File: harmless(r.File), Line: r.Pos.Line}
	if !r.Passed() {
		c.Failure = &junit.Failure{Message: harmless(r.Failures[0].Message()), Text: "\n" + explained(s, r)}
	}
	return c
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
			p.printf("%s\n", strings.TrimRight("# "+line, " \n"))
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
	p := &pretty{w: w, commands: true}
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
				p.printf("::group::%s\n%s::endgroup::\n", annotation(result.Name()), ready(explained(f.Suite, result)))
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
