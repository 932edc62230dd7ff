package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// validation is what the flags of validate say.
type validation struct {
	notes     bool
	failLevel string
	format    string
	tools     string // file of a snapshot
	live      bool
	timeout   *time.Duration // of each server, with live
	fix       bool
	dryRun    bool
}

func newValidate(u *ui) *cobra.Command {
	v := validation{timeout: new(defaultCheckTimeout)}
	cmd := &cobra.Command{
		Use:   "validate [FILE|DIR...] [flags]",
		Short: "find what is wrong with config files, and what is unwise",
		Long: `Loads config files as run does, compiles every expression in them, and prints
all that is wrong or unwise, each with its place, what to do, and the number
of its rule. mcp-retry explain MR001 says more about a rule.

Nothing is started, unless --live asks the servers for their tools. With their
tools known, by --live or from a file of mcp-retry snapshot, names and arguments
in the config are compared with them.

A DIR is searched for mcp-retry.yaml (.yml, .json, .cue), *.mcp-retry.yaml and
mcp-shield.yaml. Without either it is ./mcp-retry.yaml (or .yml, .json, .cue).

A warning or note is silenced by a comment on its line or above it, which names
the rule and says why (in JSON and CUE after //):

  # mcp-retry ignore: MR047 the nightly build takes two hours

A variable of the environment that is not set is only a warning here, for a CI
job has no secrets; run and check refuse it.

It prints nothing if all is well. Exit status: 0 if there is no finding of the
--fail-level or above, 1 if there is, 2 if a file cannot be read.`,
		Example: `  mcp-retry validate
  mcp-retry validate --fail-level warning --format github .
  mcp-retry validate --tools tools.json --notes mcp-retry.yaml
  mcp-retry validate --fix --dry-run`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := v.check(); err != nil {
				return err
			}
			files, err := findConfigs(args)
			if err != nil {
				return err
			}
			return u.validate(files, &v)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&v.notes, "notes", false, "print notes too: what is right and worth knowing")
	flags.StringVar(&v.failLevel, "fail-level", "error", "the least `LEVEL` for exit status 1: error, warning or note")
	flags.StringVar(&v.format, "format", "pretty", "`FORMAT` of the findings: "+strings.Join(formatNames(), ", "))
	flags.StringVar(&v.tools, "tools", "", "`FILE` with the servers' tools, written by mcp-retry snapshot, or one server's tools/list")
	flags.BoolVar(&v.live, "live", false, "start the servers and ask them for their tools")
	flags.Var(durationFlag{&v.timeout}, "timeout", "with --live, how long a server may take: 10s, 500ms, or seconds")
	flags.BoolVar(&v.fix, "fix", false, "correct in the files what can only be meant one way")
	flags.BoolVar(&v.dryRun, "dry-run", false, "with --fix, print the corrections as a diff and change nothing")
	return cmd
}

// check complains of flags that make no sense.
func (v *validation) check() error {
	switch {
	case !slices.Contains(formatNames(), v.format):
		return usagef("unknown format %q", v.format).hint("there is %s", strings.Join(formatNames(), ", "))
	case !slices.Contains([]string{"error", "warning", "note"}, v.failLevel):
		return usagef("unknown level %q", v.failLevel).hint("there is error, warning and note")
	case v.tools != "" && v.live:
		return usagef("--tools and --live both say which tools there are").hint("leave one of them out")
	case v.dryRun && !v.fix:
		return usagef("--dry-run is for --fix").hint("did you mean --fix --dry-run?")
	}
	if v.failLevel == "note" {
		v.notes = true
	}
	return nil
}

// level is the least level that fails.
func (v *validation) level() schema.Level {
	switch v.failLevel {
	case "note":
		return schema.Note
	case "warning":
		return schema.Warning
	}
	return schema.Error
}

// validate prints what is to be said about the files.
func (u *ui) validate(files []string, v *validation) error {
	collect := withoutGC()
	defer collect()
	known, err := v.snapshot()
	if err != nil {
		return err
	}
	ctx, stop := context.Background(), func() {}
	if v.live {
		ctx, stop = untilSignal()
	}
	defer stop()
	status := exitFine
	var checked []checkedFile
	for i, file := range files {
		if i == 1 || v.live {
			collect() // only a quick start is worth the memory
		}
		l, err := loadConfig(file)
		if err != nil {
			status = max(status, u.finish(err))
			continue
		}
		if v.fix {
			if l, err = u.mend(file, l, v.dryRun); err != nil {
				status = max(status, u.finish(err))
				continue
			}
		}
		tools := known.forConfig(l.config)
		if tools == nil && known != nil {
			return usagef("%q does not say which server has its tools, and %q has %d servers", v.tools, file, len(l.config.Servers)).
				hint("mcp-retry snapshot -o tools.json asks all of them")
		}
		if v.live {
			var complete bool
			if tools, complete = u.askForTools(ctx, l, *v.timeout); !complete {
				status = exitUsage
			}
			if ctx.Err() != nil {
				return signalled(ctx)
			}
		}
		if v.tools != "" {
			u.tellUnknown(l, tools, v.tools)
		}
		findings := l.lint(file, tools, v.notes)
		if slices.ContainsFunc(findings, func(f schema.Finding) bool { return f.Level <= v.level() }) {
			status = max(status, exitFailed)
		}
		checked = append(checked, checkedFile{name: file, text: l.shown(), findings: findings})
	}
	if v.fix && v.dryRun {
		checked = nil // stdout holds the diff
	}
	if err := formats[v.format](u.stdout, checked, reportStyle{colors(u.stdout), v.level()}); err != nil {
		return err
	}
	if status == exitFine {
		return nil
	}
	return &failure{status: status}
}
