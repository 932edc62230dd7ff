package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newDoctor(u *ui) *cobra.Command {
	var config string
	timeout := new(defaultCheckTimeout)
	cmd := &cobra.Command{
		Use:   "doctor [--config FILE] [--timeout DURATION]",
		Short: "say on one page what would go wrong here",
		Long: `Looks at everything that has to be right for clients to reach their servers
through mcp-retry, and prints it on one page: the program and the PATH that a
client with a window has, the config and what validate says of it, the entries
of each client, the servers, which are started as by check, and the hook.
Nothing is changed.

A line begins with OK, WARN (it works, and may surprise), FAIL (it does not
work), or - (worth knowing).

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).

Exit status: 0 if nothing fails, 1 if something does.`,
		Example: `  mcp-retry doctor
  mcp-retry doctor --config ~/mcp-retry.yaml --timeout 30s`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			m, err := thisMachine()
			if err != nil {
				return err
			}
			ctx, stop := untilSignal()
			defer stop()
			d := &doctor{ui: u, machine: m}
			d.program()
			d.findConfig(config)
			d.clients()
			d.servers(ctx, *timeout)
			d.hooks()
			if ctx.Err() != nil {
				return signalled(ctx)
			}
			if d.failed {
				return &failure{status: exitFailed}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "config `FILE`")
	cmd.Flags().Var(durationFlag{&timeout}, "timeout", "how long a server may take to answer: 10s, 500ms, or seconds")
	return cmd
}

// doctor is one look at everything.
type doctor struct {
	ui      *ui
	machine machine
	failed  bool

	config *loaded // nil = there is none that could be used
}

// verdict is what a line of the page begins with.
type verdict string

const (
	fine    verdict = "OK  "
	unwise  verdict = "WARN"
	broken  verdict = "FAIL"
	neutral verdict = "-   "
)

func (d *doctor) heading(title string) { fmt.Fprintf(d.ui.stdout, "%s\n", title) }

func (d *doctor) line(v verdict, format string, args ...any) {
	d.failed = d.failed || v == broken
	fmt.Fprintf(d.ui.stdout, "  [%s] %s\n", v, oneLine(fmt.Sprintf(format, args...)))
}

// program looks at mcp-retry itself.
func (d *doctor) program() {
	d.heading("mcp-retry")
	self, err := os.Executable()
	if err != nil {
		d.line(broken, "where it stands cannot be told: %v", err)
		return
	}
	d.line(fine, "version %s, %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		d.line(unwise, "%s is gone when this ends: go install it before mcp-retry install", self)
		return
	}
	d.line(fine, "it is %s", self)
	switch first, err := exec.LookPath("mcp-retry"); {
	case err != nil:
		d.line(unwise, "mcp-retry is not on the PATH: clients need its absolute path, which install writes")
	case !oneFile(first, self):
		d.line(unwise, "another mcp-retry stands first on the PATH: %s", first)
	case d.windowPath() != "" && findIn(d.windowPath(), "mcp-retry") == "":
		d.line(neutral, "clients with a window do not find mcp-retry on their PATH (%s): install writes its absolute path", d.windowPath())
	default:
		d.line(fine, "it is on the PATH")
	}
}

// windowPath is the PATH of a client that was not started from a terminal; "" = it is ours.
func (d *doctor) windowPath() string {
	switch d.machine.system {
	case "darwin":
		return "/usr/bin:/bin:/usr/sbin:/sbin"
	case "windows":
		return ""
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// findIn is where a PATH has a program, or "".
func findIn(path, program string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, program)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// findConfig looks at the config.
func (d *doctor) findConfig(path string) {
	d.heading("config")
	path, err := findConfig(path)
	if err != nil {
		d.line(broken, "%v: mcp-retry init writes one", err)
		return
	}
	l, err := loadConfig(path)
	if err != nil {
		d.line(broken, "%v", err)
		return
	}
	counts := map[schema.Level]int{}
	for _, f := range l.lint(path, nil, false) {
		if f.ID != unsetVariable { // that is told of the server
			counts[f.Level]++
		}
	}
	switch {
	case counts[schema.Error] > 0:
		d.line(broken, "%s has %s: mcp-retry validate %s shows them", path, howMany(counts[schema.Error], "error"), path)
		return
	case counts[schema.Warning] > 0:
		d.line(unwise, "%s has %s: mcp-retry validate %s shows them", path, howMany(counts[schema.Warning], "warning"), path)
	default:
		d.line(fine, "%s has no faults", path)
	}
	d.config = l
	if d.windowPath() == "" {
		return
	}
	for _, s := range l.config.Servers {
		if s.Command == "" || strings.ContainsAny(s.Command, `/\`) || s.Env["PATH"] != "" || findIn(d.windowPath(), s.Command) != "" {
			continue
		}
		if here, err := exec.LookPath(s.Command); err == nil {
			d.line(unwise, "%s: clients with a window do not find %s on their PATH: write %s", s.Name, s.Command, here)
		}
	}
}

func howMany(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// servers starts the servers of the config.
func (d *doctor) servers(ctx context.Context, timeout time.Duration) {
	d.heading("servers")
	if d.config == nil {
		d.line(neutral, "none could be started without a config")
		return
	}
	var candidates []candidate
	wired := d.machine.wirings(d.config)
	for _, s := range d.config.config.Servers {
		quiet := &ui{stderr: io.Discard} // what is wrong with the config has been told
		c, err := quiet.candidateFor(d.config, s, wired[s.Name], d.machine)
		if err != nil {
			c = candidate{prepared: prepared{server: s}, fault: "its policy does not compile"}
		}
		candidates = append(candidates, c)
	}
	if len(candidates) == 0 {
		d.line(neutral, "the config has none")
	}
	for h := range probeAll(ctx, candidates, fromNow(timeout), false) {
		c := candidates[slices.IndexFunc(candidates, func(c candidate) bool { return c.server.Name == h.Name })]
		switch {
		case ctx.Err() != nil:
			return
		case h.Status == statusUp && h.noise != "":
			d.line(unwise, "%s: %s", h.Name, h.Detail)
		case h.Status == statusUp && c.note != "":
			d.line(fine, "%s: up after %.1fms, with %s", h.Name, *h.LatencyMS, c.note)
		case h.Status == statusUp:
			d.line(fine, "%s: up after %.1fms", h.Name, *h.LatencyMS)
		case c.byClient:
			d.line(neutral, "%s: not started: %s", h.Name, h.Detail)
		default:
			d.line(broken, "%s: %s", h.Name, h.Detail)
		}
	}
}
