package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// The parts of a JUnit report that CI systems agree on: a suite for each file, a case for each finding. One of the --fail-level
// or above fails its case; any other is a case that passes, with its text as output. A file without findings is one case that passes.
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
		Output  *junitOutput  `xml:"system-out"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",cdata"`
	}
	junitOutput struct {
		Text string `xml:",cdata"`
	}
)

// reportJUnit is for CI systems that show tests.
func reportJUnit(w io.Writer, files []checkedFile, style reportStyle) error {
	report := junitReport{Name: "mcp-retry validate"}
	for _, file := range files {
		suite := junitSuite{Name: file.name}
		for _, f := range file.findings {
			var text strings.Builder
			schema.Findings{f}.Render(&text, file.text, false)
			c := junitCase{
				Name:  fmt.Sprintf("%s %s at %d:%d", f.Code(), f.ID, f.Pos.Line, f.Pos.Col),
				Class: file.name, File: file.name, Line: f.Pos.Line,
			}
			if f.Level <= style.failLevel {
				c.Failure = &junitFailure{Message: f.Message, Type: f.ID, Text: "\n" + text.String()}
				suite.Failures++
			} else {
				c.Output = &junitOutput{"\n" + text.String()}
			}
			suite.Cases = append(suite.Cases, c)
		}
		if len(suite.Cases) == 0 {
			suite.Cases = []junitCase{{Name: "no findings", Class: file.name, File: file.name}}
		}
		suite.Tests = len(suite.Cases)
		report.Tests += suite.Tests
		report.Failures += suite.Failures
		report.Suites = append(report.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
