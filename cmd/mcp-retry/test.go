package main

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/spf13/cobra"
)

// testRun is what the flags of test say.
type testRun struct {
	run          string
	failFast     bool
	verbose      bool
	coverage     bool
	minCoverage  float64
	coverageHTML string
	format       string
	watch        bool
	update       bool
	explore      bool
	sequences    int
}

func newTest(u *ui) *cobra.Command {
	var t testRun
	cmd := &cobra.Command{
		Use:   "test [PATH...] [flags]",
		Short: "run policy tests",
		Long: `Runs files of policy tests, *.test.yaml (or .yml, .json, .cue): what calls come to
under a config, if the server behaves so and so. The engine is that of run; the
clock is virtual, so a wait of five minutes takes no time, and nothing is started.

  config: mcp-retry.yaml
  tools: [{name: read_file, annotations: {readOnlyHint: true}}]
  tests:
    - name: a read that timed out is tried again
      call: {tool: read_file, args: {path: a.txt}}
      server: [timeout, ok]
      expect: {status: ok, attempts: 2, delays: ["<=600ms"]}

mcp-retry schema --test --cue prints all that may stand in a test file.

A PATH is a file or a folder to search; without one it is the working directory.
What was expected and did not come is shown beside what came, with everything
that happened and the values of the expressions that decided.

Exit status: 0 if all tests passed, 1 if one failed, if an expression failed that
no test expects to, if there was no test, or if less than --min-coverage was
reached; 2 if a file cannot be used.`,
		Example: `  mcp-retry test
  mcp-retry test --run 'write' --fail-fast policies/
  mcp-retry test --coverage --min-coverage 90 --format junit > report.xml
  mcp-retry test --update        write down what comes as what is expected`,
		RunE: func(cmd *cobra.Command, paths []string) error {
			if err := t.check(cmd.Flags().Changed("min-coverage")); err != nil {
				return err
			}
			if len(paths) == 0 {
				paths = []string{"."}
			}
			if t.watch {
				return u.watchTests(paths, &t)
			}
			_, err := u.test(paths, &t)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&t.run, "run", "", "run only tests whose name (TEST / ROW) matches `REGEX`")
	flags.BoolVar(&t.failFast, "fail-fast", false, "stop at the first failure")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "list the tests that passed too")
	flags.BoolVar(&t.coverage, "coverage", false, "say which rules, decisions and outcomes of conditions were reached")
	flags.Float64Var(&t.minCoverage, "min-coverage", 0, "fail if less than `PERCENT` of them was reached")
	flags.Var(fileFlag{&t.coverageHTML}, "coverage-html", "write the configs with what was reached to `FILE`")
	flags.StringVar(&t.format, "format", "pretty", "`FORMAT` of the report: "+strings.Join(policytest.Formats, ", "))
	flags.BoolVar(&t.watch, "watch", false, "run again whenever a file changes")
	flags.BoolVar(&t.explore, "explore", false, "instead, try every sequence of outcomes of each tool, and report what should not come of any as ready tests")
	flags.IntVar(&t.sequences, "sequences", 10_000, "with --explore, try at most `N` sequences for each file")
	flags.BoolVar(&t.update, "update", false, "write what came into the files as what is expected, and print the difference")
	return cmd
}

// check complains of flags that make no sense.
func (t *testRun) check(minimum bool) error {
	t.coverage = t.coverage || minimum || t.coverageHTML != ""
	switch {
	case !slices.Contains(policytest.Formats, t.format):
		return usagef("there is no format %q", t.format).hint("there is %s", strings.Join(policytest.Formats, ", "))
	case minimum && !(t.minCoverage >= 0 && t.minCoverage <= 100): // nor is NaN
		return usagef("--min-coverage is from 0 to 100")
	case t.watch && t.update:
		return usagef("--watch and --update do not go together")
	case t.explore && (t.update || t.coverage || t.run != "" || t.failFast):
		return usagef("--explore does not go together with --update, --run, --fail-fast or coverage").hint("it runs none of the tests")
	case t.sequences < 1:
		return usagef("--sequences is at least 1")
	case t.coverage && t.run != "" && minimum:
		return usagef("--min-coverage is about all tests, and --run picks some").hint("leave one of them out")
	}
	if _, err := regexp.Compile(t.run); err != nil {
		return usagef("--run: %v", err)
	}
	return nil
}

// test runs the test files under the paths. It also returns the files that the outcome depends on.
func (u *ui) test(paths []string, t *testRun) (sources []string, err error) {
	files, err := policytest.Find(paths)
	if err != nil {
		return paths, usagef("%v", err)
	}
	loader := policytest.Loader{Env: os.LookupEnv, AnyRule: t.update}
	var suites []*policytest.Suite
	var faults []*policytest.Fault
	status := exitFine
	for _, file := range files {
		s, err := loader.Load(file)
		if err != nil {
			u.explainFault(err)
			sources = append(sources, file)
			var f *policytest.Fault
			if errors.As(err, &f) {
				sources, faults = append(sources, f.File), append(faults, f)
			}
			status = exitUsage
			continue
		}
		sources = append(sources, s.Sources()...)
		suites = append(suites, s)
	}
	if status == exitFine && len(suites) == 0 {
		return paths, (&failure{status: exitFailed, message: "no test was found"}).hint("test files are named *.test.yaml, *.test.json or *.test.cue; searched: %s", strings.Join(paths, ", "))
	}
	if t.explore {
		return sources, u.explore(suites, faults, t, status)
	}
	options := policytest.Options{FailFast: t.failFast, Coverage: t.coverage}
	if t.run != "" {
		options.Run = regexp.MustCompile(t.run) // check has compiled it
	}
	report := policytest.Run(suites, options)
	report.Faults = faults
	passed, failed := report.Count()
	if status == exitFine && passed+failed == 0 {
		none := &failure{status: exitFailed, message: "no test was found"}
		if t.run == "" {
			return sources, none.hint("the files have no tests")
		}
		return sources, none.hint("none has a name that matches --run %q", t.run)
	}
	if t.update && failed > len(faults) {
		return sources, u.update(report, status)
	}
	if err := u.report(report, t); err != nil {
		return sources, err
	}
	if failed > 0 {
		status = max(status, exitFailed)
	}
	if report.Coverage != nil && report.Coverage.Percent() < t.minCoverage {
		u.warnf("%g %% was reached, and --min-coverage is %g", report.Coverage.Percent(), t.minCoverage)
		status = max(status, exitFailed)
	}
	if status != exitFine {
		return sources, &failure{status: status}
	}
	return sources, nil
}

// report prints what the tests came to.
func (u *ui) report(r *policytest.Report, t *testRun) error {
	style := policytest.Style{Color: colors(u.stdout), Verbose: t.verbose}
	if err := r.Write(u.stdout, t.format, style); err != nil {
		return err
	}
	if t.coverageHTML != "" {
		if err := writeFile(t.coverageHTML, r.Coverage.WriteHTML); err != nil {
			return usagef("cannot write %q: %v", t.coverageHTML, err)
		}
	}
	switch {
	case r.Coverage == nil || t.format == "json": // which has it
		return nil
	case t.format == "pretty" || t.format == "github":
		return r.Coverage.WriteText(u.stdout, style)
	}
	return r.Coverage.WriteText(u.stderr, policytest.Style{Color: colors(u.stderr)})
}

// explainFault says why a test file cannot be run.
func (u *ui) explainFault(err error) {
	var f *policytest.Fault
	if errors.As(err, &f) && len(f.Findings) > 0 {
		f.Findings.Render(u.stderr, f.Text, colors(u.stderr))
		return
	}
	u.warnf("%v", err)
}
