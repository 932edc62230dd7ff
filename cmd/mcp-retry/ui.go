package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// The rules of output:
//
//   - stdout holds results, and in run and wrap nothing but frames. Everything else goes to stderr.
//   - In run and wrap stderr holds the log, one JSON object a line (or what --log-format says). Only what goes wrong before
//     the session begins, and that it could not have been one, is said in plain words.
//   - Words of ours on stderr begin with "mcp-retry: ", in lower case, without a full stop. A mistake is named with the
//     user's own words in quotes; a line that begins with "mcp-retry: hint: " says the next thing to type.
//   - Findings about a config are printed as file:line:col with the line and a caret, all of them.
//   - Success is silent, unless the result is the point.
//   - Colour only on a terminal, and not if NO_COLOR is set.
//   - Exit status: 0 fine; 1 findings, failed, down; 2 wrong usage or unreadable input; 128+n ended by signal n.
//
// Commands return errors. They are printed here, and nowhere else; the only os.Exit is in main.

// Exit statuses.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

// ui is what a command reads from and writes to.
type ui struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

// failure is an error with an exit status. One without a message has been reported already.
type failure struct {
	status  int
	message string
	hints   []string
}

func (f *failure) Error() string { return f.message }

// hint adds what to do next.
func (f *failure) hint(format string, args ...any) *failure {
	f.hints = append(f.hints, fmt.Sprintf(format, args...))
	return f
}

// usagef is an error of the user: wrong usage, or input that cannot be read.
func usagef(format string, args ...any) *failure {
	return &failure{status: exitUsage, message: fmt.Sprintf(format, args...)}
}

// finish reports what a command came to and returns the exit status.
func (u *ui) finish(err error) int {
	if err == nil {
		return exitFine
	}
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{status: exitFailed, message: err.Error()}
	}
	if f.message != "" {
		u.warnf("%s", f.message)
	}
	for _, hint := range f.hints {
		u.warnf("hint: %s", hint)
	}
	return f.status
}

// warnf says something on stderr.
func (u *ui) warnf(format string, args ...any) {
	fmt.Fprintf(u.stderr, "mcp-retry: "+format+"\n", args...)
}

// colors reports whether what is written to w may be coloured.
func colors(w io.Writer) bool {
	f, ok := unwrapped(w).(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// The texts of --help: cobra's, without what there is not.
const (
	helpTemplate = `{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}`

	usageTemplate = `usage:
  {{.UseLine}}{{if .HasExample}}

examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more about a command.{{end}}
`
)
