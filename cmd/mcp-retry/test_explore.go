package main

import (
	"fmt"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// explore tries everything that can happen to a call of each tool, and reports a test for each thing that does not hold. status is
// what loading the files came to.
func (u *ui) explore(suites []*policytest.Suite, faults []*policytest.Fault, t *testRun, status int) error {
	report := &policytest.ExploreReport{Faults: faults}
	for _, s := range suites {
		e := policytest.Explore(s, policytest.ExploreOptions{MaxSequences: t.sequences})
		if len(e.Calls) == 0 {
			u.warnf("%s: nothing was explored: the file has no tools, and no test calls one", s.File.File)
		}
		if e.Cut() > 0 {
			u.warnf("%s: for %s there are longer sequences, which were not tried: --sequences allows %d", s.File.File, counted(e.Cut(), "call"), t.sequences)
		}
		report.Files = append(report.Files, e)
	}
	if err := report.Write(u.stdout, t.format, policytest.Style{Color: colors(u.stdout)}); err != nil {
		return err
	}
	if _, _, found, idle := report.Count(); found+idle > 0 {
		status = max(status, exitFailed)
	}
	if status != exitFine {
		return &failure{status: status}
	}
	return nil
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
