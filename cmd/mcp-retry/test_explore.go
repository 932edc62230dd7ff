package main

import (
	"fmt"
	"strings"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// explore tries everything that can happen to a call of each tool, and prints a test for each thing that does not hold.
func (u *ui) explore(suites []*policytest.Suite, limit int) error {
	calls, sequences, violated := 0, 0, 0
	idle := false // a file of which nothing is explored would look like one in which all is well
	seen := map[string]bool{}
	for _, s := range suites {
		e := policytest.Explore(s, policytest.ExploreOptions{MaxSequences: limit})
		if e.Calls == 0 {
			u.warnf("%s: nothing was explored: the file has no tools, and no test calls one", s.File.File)
			idle = true
		}
		calls += e.Calls
		sequences += e.Sequences
		for _, v := range e.Violated {
			if seen[s.File.File+v.Test] {
				continue
			}
			seen[s.File.File+v.Test] = true
			violated++
			fmt.Fprintf(u.stdout, "%s: %s: %s\n%s\n", s.File.File, v.Call.Tool, v.Reason, v.Test)
		}
		if e.Cut > 0 {
			u.warnf("%s: for %s there are longer sequences, which were not tried: --sequences allows %d", s.File.File, counted(e.Cut, "call"), limit)
		}
	}
	fmt.Fprintf(u.stdout, "%s of outcomes, %s: ", counted(sequences, "sequence"), counted(calls, "call"))
	if violated > 0 {
		fmt.Fprintf(u.stdout, "%s\n", counted(violated, "counter-example"))
		return &failure{status: exitFailed}
	}
	if idle {
		fmt.Fprintln(u.stdout, "not every file was explored")
		return &failure{status: exitFailed}
	}
	fmt.Fprintln(u.stdout, "all is as it should be")
	return nil
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", n, noun))
}
