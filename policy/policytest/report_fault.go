package policytest

import "github.com/bentabol/mcp-retry/schema"

// faultName is the test that a file fails which cannot be run, in reports for programs.
const faultName = "the file can be used"

// result is the fault as a test that failed: programs that read reports know nothing else.
func (f *Fault) result() *Result {
	r := &Result{File: f.File, Test: faultName, Pos: schema.Pos{File: f.File}}
	for _, finding := range f.Findings {
		if finding.Level == schema.Error {
			r.Failures = append(r.Failures, Failure{Pos: finding.Pos, Text: finding.Message})
		}
	}
	if len(r.Failures) == 0 {
		r.Failures = []Failure{{Pos: r.Pos, Text: f.Error()}}
	}
	r.Pos = r.Failures[0].Pos
	return r
}

// faulty are the files that could not be run, each as a test that failed.
func (r *Report) faulty() []*Result {
	var results []*Result
	for _, f := range r.Faults {
		results = append(results, f.result())
	}
	return results
}
