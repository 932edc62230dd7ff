package examples_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// TestPolicies runs the test file of each example, which must reach every rule of its config.
func TestPolicies(t *testing.T) {
	loader := policytest.Loader{Env: environment}
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			suite, err := loader.Load(filepath.Join(name, "mcp-retry.test.yaml"))
			if err != nil {
				var fault *policytest.Fault
				if errors.As(err, &fault) {
					complain(t, fault.Findings)
				}
				t.Fatal(err)
			}
			report := policytest.Run([]*policytest.Suite{suite}, policytest.Options{Coverage: true})
			if _, failed := report.Count(); failed > 0 {
				var text strings.Builder
				_ = report.WritePretty(&text, policytest.Style{})
				t.Error(text.String())
			}
			for _, config := range report.Coverage.Configs {
				for _, p := range config.Points {
					if p.Kind != policytest.OutcomeSeen && p.Hits == 0 {
						t.Errorf("%v: %s", p.Pos, p.Missed())
					}
				}
			}
		})
	}
}
