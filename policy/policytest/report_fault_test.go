package policytest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// A file that cannot be run is a failure in every format, so that no CI takes its report for a good one.
func TestUnusableFilesFailTheReport(t *testing.T) {
	var loader policytest.Loader
	_, err := loader.LoadText("a.test.yaml", []byte("config: a.yaml\ntests: [{name: a, cal: {}}]\n"))
	var fault *policytest.Fault
	if !errors.As(err, &fault) {
		t.Fatal(err)
	}
	report := policytest.Run(nil, policytest.Options{})
	report.Faults = []*policytest.Fault{fault}
	for format, want := range map[string]string{
		"pretty": "FAIL  a.test.yaml\n      the file cannot be used\n\nFAIL  0 tests in 0 files, 1 file not usable", // what is wrong is printed with its place
		"json":   `"failed": 1`,
		"junit":  `failures="1"`,
		"tap":    "1..1\nnot ok 1 - a.test.yaml: the file can be used",
		"github": "::error file=a.test.yaml,line=2,col=19,",
	} {
		var out bytes.Buffer
		if err := report.Write(&out, format, policytest.Style{}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, want) || format != "pretty" && !strings.Contains(text, "unknown key") || strings.Contains(text, "PASS") {
			t.Errorf("%s:\n%s", format, text)
		}
	}
}
