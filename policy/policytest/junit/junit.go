// Package junit writes reports in the XML format that came from JUnit, as far as CI systems agree on it: suites of cases, each of
// which passed or failed. The format has no standard; this is what Jenkins, GitLab and the reporters for GitHub read alike.
package junit

import (
	"encoding/xml"
	"io"
)

// Report is a whole report.
type Report struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"` // of what was run
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suites   []Suite  `xml:"testsuite"`
}

// Suite is the cases of a file.
type Suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Cases    []Case `xml:"testcase"`
}

// Case is one thing that was looked at.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"` // what it is listed under: the file
	File    string   `xml:"file,attr"`
	Line    int      `xml:"line,attr,omitempty"` // 0 = it is about the file
	Failure *Failure `xml:"failure"`             // nil = it passed
	Output  *Output  `xml:"system-out"`          // nil = there is nothing to say
}

// Failure is why a case failed.
type Failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",cdata"`
}

// Output is what there is to say of a case, failed or not.
type Output struct {
	Text string `xml:",cdata"`
}

// Add adds a suite, and counts it and its cases.
func (r *Report) Add(s Suite) {
	s.Tests, s.Failures = len(s.Cases), 0
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
	}
	r.Tests += s.Tests
	r.Failures += s.Failures
	r.Suites = append(r.Suites, s)
}

// Write writes the report.
func (r *Report) Write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
