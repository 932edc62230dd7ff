package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// defaultCheckTimeout is how long a server may take to answer.
const defaultCheckTimeout = 10 * time.Second

func newCheck(u *ui) *cobra.Command {
	o := checkOptions{timeout: new(defaultCheckTimeout)}
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--server NAME]... [flags]",
		Short: "start the servers of a config file and see which answer",
		Long: `Starts every server of the config file, all at the same time, sends each an
initialize request, and prints which answered and how fast. No tool is called,
and no server is started a second time.

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).

With --hook it is fit for a SessionStart hook: the table, or what is wrong with
the config, goes to stdout as one text, the exit status is always 0, and it
ends within 12 s, whatever --timeout says.

Exit status: 0 if every server is up, 1 if one is down, 2 if the config cannot
be used.`,
		Example: `  mcp-retry check --config mcp-retry.yaml
  mcp-retry check --config mcp-retry.yaml --server github --timeout 3s --json

  as a hook of Claude Code, in .claude/settings.json:
  "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "timeout": 15,
    "command": "mcp-retry check --hook --config /path/to/mcp-retry.yaml"}]}]`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := untilSignal()
			defer stop()
			if o.hook {
				return u.hook(ctx, func(u *ui) error { return u.check(ctx, o) })
			}
			return u.check(ctx, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.config, "config", "c", "", "config `FILE`")
	flags.StringArrayVarP(&o.names, "server", "s", nil, "`NAME` of a server to check, in place of all; may be repeated")
	flags.Var(durationFlag{&o.timeout}, "timeout", "how long a server may take to answer: 10s, 500ms, or seconds")
	flags.BoolVar(&o.json, "json", false, "print one JSON object, with what the servers say of themselves")
	flags.BoolVar(&o.hook, "hook", false, "be a hook: always exit with 0, and in time")
	return cmd
}

// checkOptions are the flags of check.
type checkOptions struct {
	config  string
	names   []string
	timeout *time.Duration
	json    bool
	hook    bool
}

// check checks the servers of a config and prints what came of it.
func (u *ui) check(ctx context.Context, o checkOptions) error {
	if o.hook && o.json {
		return usagef("both --hook and --json").hint("a hook prints the table")
	}
	servers, err := u.candidates(o.config, o.names)
	if err != nil {
		return err
	}
	timeout := *o.timeout
	if o.hook {
		timeout = min(timeout, longestHookTimeout)
	}
	return u.checkServers(ctx, servers, timeout, o.json)
}

// candidate is a server to check; fault says why it cannot be started, "" = it can.
type candidate struct {
	prepared
	fault string
}

// candidates loads the config and prepares the servers of these names, or all of them. A variable that is not set is the fault
// of the server that needs it, and of no other.
func (u *ui) candidates(config string, names []string) ([]candidate, error) {
	defer withoutGC()()
	l, servers, err := u.pickServers(config, names)
	if err != nil {
		return nil, err
	}
	faults := l.unset()
	fit := slices.DeleteFunc(slices.Clone(servers), func(s *schema.Server) bool { return faults[s] != nil })
	ready, err := u.prepare(l, fit...)
	if err != nil {
		return nil, err
	}
	found := make([]candidate, len(servers))
	for i, s := range servers {
		if faults[s] != nil {
			found[i] = candidate{prepared{server: s}, strings.Join(faults[s], "; ")}
			continue
		}
		found[i] = candidate{prepared: ready[0]}
		ready = ready[1:]
	}
	return found, nil
}

// openServers loads the config and prepares the servers of these names, or all of them.
func (u *ui) openServers(config string, names []string) ([]prepared, error) {
	defer withoutGC()()
	l, servers, err := u.pickServers(config, names)
	if err != nil {
		return nil, err
	}
	return u.prepare(l, servers...)
}

// pickServers loads the config and picks the servers of these names, or all of them.
func (u *ui) pickServers(config string, names []string) (*loaded, []*schema.Server, error) {
	l, err := u.openConfig(config)
	if err != nil {
		return nil, nil, err
	}
	servers := l.config.Servers
	if len(names) > 0 {
		servers = make([]*schema.Server, len(names))
		for i, name := range names {
			if servers[i], err = pickServer(l.config, name); err != nil {
				return nil, nil, err
			}
		}
	}
	if len(servers) == 0 {
		return nil, nil, usagef("no server in %s", l.config.File)
	}
	return l, servers, nil
}

// unset says of each server which variables it needs that are not set.
func (l *loaded) unset() map[*schema.Server][]string {
	faults := map[*schema.Server][]string{}
	for _, f := range l.findings {
		if owner := ownerOf(l.config, f.Pos); f.ID == unsetVariable && owner != nil {
			faults[owner] = append(faults[owner], f.Message)
		}
	}
	return faults
}

// checkServers checks servers at the same time and prints what came of it, in the order of the file.
func (u *ui) checkServers(ctx context.Context, servers []candidate, timeout time.Duration, asJSON bool) error {
	width := 0
	for _, c := range servers {
		width = max(width, utf8.RuneCountInString(c.server.Name))
	}
	report := checkReport{OK: true}
	for h := range probeAll(ctx, servers, timeout, asJSON) {
		report.OK = report.OK && h.Status == statusUp
		report.Servers = append(report.Servers, h)
		if !asJSON && ctx.Err() == nil {
			fmt.Fprintln(u.stdout, h.row(width))
		}
	}
	if ctx.Err() != nil {
		return signalled(ctx)
	}
	if asJSON {
		encoder := json.NewEncoder(u.stdout)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return err
		}
	}
	if !report.OK {
		return &failure{status: exitFailed}
	}
	return nil
}

// probeAll starts all servers at the same time and yields what came of it, in their order.
func probeAll(ctx context.Context, servers []candidate, timeout time.Duration, inDetail bool) iter.Seq[health] {
	healths := make([]chan health, len(servers))
	for i, c := range servers {
		healths[i] = make(chan health, 1)
		if c.fault != "" {
			healths[i] <- health{Name: c.server.Name, Status: statusDown, Detail: oneLine(c.fault)}
			continue
		}
		probed := make(chan health, 1)
		go func() { probed <- probe(ctx, c.prepared, timeout, inDetail) }()
		go func() { healths[i] <- inTime(c.server.Name, probed, timeout) }()
	}
	return func(yield func(health) bool) {
		for _, h := range healths {
			if !yield(<-h) {
				return
			}
		}
	}
}

// inTime is what came of a probe, which may take a little longer than its time, and no more: a check has an end, whatever
// holds a probe up.
func inTime(name string, probed <-chan health, timeout time.Duration) health {
	late := time.NewTimer(timeout + probeGrace)
	defer late.Stop()
	select {
	case h := <-probed:
		return h
	case <-late.C:
		return health{Name: name, Status: statusDown, Detail: noResponse(timeout).Error()}
	}
}

// checkReport is what check --json prints.
type checkReport struct {
	OK      bool     `json:"ok"` // every server is up
	Servers []health `json:"servers"`
}

// row is the line of the table about a server.
func (h health) row(width int) string {
	latency := "-"
	if h.LatencyMS != nil {
		latency = fmt.Sprintf("%.1fms", *h.LatencyMS)
	}
	mark := "UP  "
	if h.Status == statusDown {
		mark = "DOWN"
	}
	return fmt.Sprintf("[%s] %-*s  %-9s %s", mark, width, h.Name, latency, h.Detail)
}
