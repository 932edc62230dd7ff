package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// defaultCheckTimeout is how long a server may take to answer.
const defaultCheckTimeout = 10 * time.Second

// begun is when this program was started, as nearly as it can tell.
var begun = time.Now()

func newCheck(u *ui) *cobra.Command {
	o := checkOptions{timeout: new(defaultCheckTimeout)}
	cmd := &cobra.Command{
		Use:   "check [--config FILE] [--server NAME]... [flags]",
		Short: "start the servers of a config file and see which answer",
		Long: `Starts every server of the config file, all at the same time, sends each an
initialize request, and prints which answered and how fast. No tool is called,
and each server is started once; only one that refuses initialize is started anew
and asked by server/discover, for it may speak no other revision. One that needs a
variable that is not set here is started with the env of the client's entry that
leads to it, or would after mcp-retry install.

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
			keepDescriptors()
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

// candidate is a server to check.
type candidate struct {
	prepared
	fault    string // why it cannot be started; "" = it can
	byClient bool   // the fault is none where a client starts it
	note     string // what is to be told of how it is started, or ""
}

// candidates loads the config and prepares the servers of these names, or all of them. A variable that is not set is the fault
// of the server that needs it, and of no other.
func (u *ui) candidates(config string, names []string) ([]candidate, error) {
	defer withoutGC()()
	l, servers, err := u.pickServers(config, names)
	if err != nil {
		return nil, err
	}
	var m machine
	var wired map[string][]wiredEntry
	if len(l.unset()) > 0 {
		if m, err = thisMachine(); err == nil {
			wired = m.wirings(l)
		}
	}
	found := make([]candidate, len(servers))
	for i, s := range servers {
		if found[i], err = u.candidateFor(l, s, wired[s.Name], m); err != nil {
			return nil, err
		}
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

// pickServers loads the config and picks the servers of these names, each once, or all of them.
func (u *ui) pickServers(config string, names []string) (*loaded, []*schema.Server, error) {
	l, err := u.openConfig(config)
	if err != nil {
		return nil, nil, err
	}
	servers := l.config.Servers
	if len(names) > 0 {
		servers = nil
		for _, name := range names {
			s, err := pickServer(l.config, name)
			if err != nil {
				return nil, nil, err
			}
			if !slices.Contains(servers, s) {
				servers = append(servers, s)
			}
		}
	}
	if len(servers) == 0 {
		return nil, nil, usagef("no server in %s", l.config.File)
	}
	return l, servers, nil
}

// checkServers checks servers at the same time and prints what came of it, in the order of the file.
func (u *ui) checkServers(ctx context.Context, servers []candidate, timeout time.Duration, asJSON bool) error {
	width := 0
	for _, c := range servers {
		width = max(width, columns(c.server.Name))
	}
	report := checkReport{OK: true}
	var unsaid error
	// A check is done a second after its timeout: what it took to get here is the servers' loss, as far as that does not matter.
	deadline := time.Now().Add(timeout - min(time.Since(begun), timeout/4))
	for h := range probeAll(ctx, servers, limit{timeout, deadline}, asJSON) {
		report.OK = report.OK && h.Status == statusUp
		report.Servers = append(report.Servers, h)
		if !asJSON && ctx.Err() == nil {
			_, err := fmt.Fprintln(u.stdout, h.row(width))
			unsaid = cmp.Or(unsaid, err) // to be told once all servers have ended
		}
	}
	if ctx.Err() != nil {
		return signalled(ctx)
	}
	if unsaid != nil {
		return unsaid
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

// limit is how long servers may take to answer.
type limit struct {
	timeout  time.Duration // as it is told
	deadline time.Time     // as it is
}

// fromNow is a limit that begins now.
func fromNow(timeout time.Duration) limit { return limit{timeout, time.Now().Add(timeout)} }

// probeAll starts all servers at the same time and yields what came of it, in their order.
func probeAll(ctx context.Context, servers []candidate, l limit, inDetail bool) iter.Seq[health] {
	healths := make([]chan health, len(servers))
	for i, c := range servers {
		healths[i] = make(chan health, 1)
		if c.fault != "" {
			healths[i] <- health{Name: c.server.Name, Status: statusDown, Detail: oneLine(c.fault)}
			continue
		}
		go func() { healths[i] <- c.probe(ctx, l, inDetail) }()
	}
	return func(yield func(health) bool) {
		for _, h := range healths {
			if !yield(<-h) {
				return
			}
		}
	}
}

// probe is [probe] of a server that can be started.
func (c candidate) probe(ctx context.Context, l limit, inDetail bool) health {
	h := probe(ctx, c.prepared, l, inDetail)
	if c.note != "" {
		h.Detail += "; " + c.note
	}
	return h
}

// checkReport is what check --json prints.
type checkReport struct {
	OK      bool     `json:"ok"` // every server is up
	Servers []health `json:"servers"`
}

// row is the line of the table about a server. Only the names are aligned: people look for a name, and programs that were made
// for such lines split them at single blanks.
func (h health) row(width int) string {
	latency := "-"
	if h.LatencyMS != nil {
		latency = fmt.Sprintf("%.1fms", *h.LatencyMS)
	}
	mark := "UP  "
	if h.Status == statusDown {
		mark = "DOWN"
	}
	return fmt.Sprintf("[%s] %s %s %s", mark, padded(h.Name, width), latency, h.Detail)
}
