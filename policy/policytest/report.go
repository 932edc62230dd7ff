package policytest

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Formats are what a report can be written as.
var Formats = []string{"pretty", "json", "junit", "tap", "github"}

// Write writes the report in one of the [Formats]. The style is for pretty.
func (r *Report) Write(w io.Writer, format string, style Style) error {
	switch format {
	case "pretty":
		return r.WritePretty(w, style)
	case "json":
		return r.WriteJSON(w)
	case "junit":
		return r.WriteJUnit(w)
	case "tap":
		return r.WriteTAP(w)
	case "github":
		return r.WriteGitHub(w)
	}
	return fmt.Errorf("there is no format %q", format)
}

// Options say what is run.
type Options struct {
	Run      *regexp.Regexp // only rows whose name, "test / row", matches; nil = all
	FailFast bool           // stop at the first row that fails
	Coverage bool           // note what is reached: Report.Coverage
}

// Report is what a run came to.
type Report struct {
	Files    []FileReport
	Faults   []*Fault  // of files that could not be run: each counts as a failure
	Coverage *Coverage // nil = nobody asked for it
	Took     time.Duration
}

// FileReport is what the tests of a file came to.
type FileReport struct {
	Suite   *Suite
	Results []*Result // in the order of the file; with FailFast those after the failed one are missing
}

// Count returns how many rows passed and how many failed. A file that could not be run counts as one that failed.
func (r *Report) Count() (passed, failed int) {
	for _, f := range r.Files {
		for _, result := range f.Results {
			if result.Passed() {
				passed++
			} else {
				failed++
			}
		}
	}
	return passed, failed + len(r.Faults)
}

// Run plays the tests of the suites. A row that fails is played once more with all reasons kept, which gives the same.
func Run(suites []*Suite, o Options) *Report {
	begun := time.Now()
	report := &Report{}
	if o.Coverage {
		report.Coverage = newCoverage(suites)
	}
	type job struct {
		suite *Suite
		test  *schema.Test
		row   int
		to    **Result
	}
	var jobs []job
	for _, s := range suites {
		var results []*Result
		for _, t := range s.File.Tests {
			for row := range t.Rows {
				if o.Run == nil || o.Run.MatchString(rowName(t, row)) {
					results = append(results, nil)
				}
			}
		}
		report.Files = append(report.Files, FileReport{Suite: s, Results: results})
		n := 0
		for _, t := range s.File.Tests {
			for row := range t.Rows {
				if o.Run == nil || o.Run.MatchString(rowName(t, row)) {
					jobs = append(jobs, job{s, t, row, &results[n]})
					n++
				}
			}
		}
	}
	workers := runtime.GOMAXPROCS(0)
	if o.FailFast {
		workers = 1
	}
	var next atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				j := jobs[i]
				r := j.suite.runRow(j.test, j.row, false, report.Coverage)
				if !r.Passed() {
					r = j.suite.runRow(j.test, j.row, true, nil)
					stop.Store(o.FailFast)
				}
				*j.to = r
			}
		})
	}
	wg.Wait()
	for i := range report.Files {
		f := &report.Files[i]
		for n, r := range f.Results {
			if r == nil {
				f.Results = f.Results[:n]
				break
			}
		}
	}
	report.Took = time.Since(begun)
	return report
}

// rowName is what a row is called in reports.
func rowName(t *schema.Test, index int) string {
	if label := rowLabel(t, index); label != "" {
		return t.Name + " / " + label
	}
	return t.Name
}
