package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/policy/policytest/junit"
	"github.com/bentabol/mcp-retry/schema"
)

// reportJUnit is for CI systems that show tests: a suite for each file, a case for each finding. One of the --fail-level or above
// fails its case; any other is a case that passes, with its text as output. A file without findings is one case that passes.
func reportJUnit(w io.Writer, files []checkedFile, style reportStyle) error {
	report := junit.Report{Name: "mcp-retry validate"}
	for _, file := range files {
		suite := junit.Suite{Name: file.name}
		for _, f := range file.findings {
			var text strings.Builder
			schema.Findings{f}.Render(&text, file.text, false)
			c := junit.Case{
				Name:  fmt.Sprintf("%s %s at %d:%d", f.Code(), f.ID, f.Pos.Line, f.Pos.Col),
				Class: file.name, File: file.name, Line: f.Pos.Line,
			}
			if f.Level <= style.failLevel {
				c.Failure = &junit.Failure{Message: f.Message, Type: f.ID, Text: "\n" + text.String()}
			} else {
				c.Output = &junit.Output{Text: "\n" + text.String()}
			}
			suite.Cases = append(suite.Cases, c)
		}
		if len(suite.Cases) == 0 {
			suite.Cases = []junit.Case{{Name: "no findings", Class: file.name, File: file.name}}
		}
		report.Add(suite)
	}
	return report.Write(w)
}
