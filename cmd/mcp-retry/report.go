package main

import (
	"io"

	"github.com/bentabol/mcp-retry/schema"
)

// checkedFile is a file that was validated.
type checkedFile struct {
	name     string
	text     []byte // as it may be shown
	findings schema.Findings
}

// reportStyle says what else a report depends on.
type reportStyle struct {
	color     bool         // a terminal reads it
	failLevel schema.Level // the least that is a failure
}

// reporter writes findings in one format.
type reporter func(w io.Writer, files []checkedFile, style reportStyle) error

var formats = map[string]reporter{
	"pretty": reportPretty, "compact": reportCompact, "json": reportJSON,
	"sarif": reportSARIF, "github": reportGitHub, "junit": reportJUnit,
}

// formatNames are the formats in the order of the help.
func formatNames() []string { return []string{"pretty", "compact", "json", "sarif", "github", "junit"} }

// advice is the message of a finding with what to do, on one line.
func advice(f schema.Finding) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + ": " + f.Hint
}

// count is how many findings there are of each level.
func count(files []checkedFile) (errors, warnings, notes int) {
	for _, file := range files {
		for _, f := range file.findings {
			switch f.Level {
			case schema.Error:
				errors++
			case schema.Warning:
				warnings++
			default:
				notes++
			}
		}
	}
	return errors, warnings, notes
}
