package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newInstall(u *ui) *cobra.Command {
	var config string
	var clients []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "install [--config FILE] [--client NAME]... [--dry-run]",
		Short: "point the MCP clients here at mcp-retry",
		Long: `Changes the files of your MCP clients so that they start mcp-retry in place of
each server that the config holds. Only command and args of an entry are
replaced, and "type": "stdio" is added where Claude Code and VS Code miss it: its
env, its comments and everything else in the file stay as they are, byte for
byte. Before the first change a file is copied to FILE.mcp-retry-backup, which
mcp-retry uninstall reads.

An entry goes to the server of the config that is started in the same way, with
the same variables and in the same directory. Where the config has one of its
name that starts otherwise, or several would do, it is left alone. So is one that
starts mcp-retry already, or whose server needs a variable that is not set.

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).
Without --client it is all clients that have a file here: ` + strings.Join(knownClients[:2], ", ") + `,
` + strings.Join(knownClients[2:], ", ") + `. Restart a client for it to take notice.

Exit status: 0 if all is in place, 1 if an entry could not be pointed at it,
2 if a file cannot be read.`,
		Example: `  mcp-retry install --dry-run
  mcp-retry install --config ~/mcp-retry.yaml --client claude-code --client cursor`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			in, err := u.newInstaller(config)
			if err != nil {
				return err
			}
			return u.rewire(clients, dryRun, in)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "config `FILE`")
	addRewireFlags(cmd, &clients, &dryRun)
	return cmd
}

func addRewireFlags(cmd *cobra.Command, clients *[]string, dryRun *bool) {
	cmd.Flags().StringSliceVar(clients, "client", nil, "`NAME` of a client, in place of all; may be repeated")
	cmd.Flags().BoolVar(dryRun, "dry-run", false, "show what would change, and change nothing")
}

// installer points entries of clients at mcp-retry.
type installer struct {
	ui      *ui
	machine machine
	program string // to start
	config  string // absolute
	text    []byte
	servers []*schema.Server
}

// newInstaller prepares to point entries at the servers of a config. A variable that is not set is judged entry by entry,
// for the client sets some.
func (u *ui) newInstaller(config string) (*installer, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, err
	}
	l, err := u.openConfig(config)
	if err != nil {
		return nil, err
	}
	if len(l.config.Servers) == 0 {
		return nil, usagef("no server in %s", l.config.File)
	}
	in := &installer{ui: u, machine: m, text: l.text, servers: l.config.Servers}
	if in.config, err = filepath.Abs(l.config.File); err != nil {
		return nil, usagef("the path of %q cannot be told: %v", l.config.File, err)
	}
	if in.program, err = ownPath(); err != nil {
		return nil, err
	}
	if passing := filepath.ToSlash(in.program); strings.Contains(passing, "/go-build") && strings.Contains(passing, "/exe/") {
		f := &failure{status: exitFailed, message: fmt.Sprintf("%s is gone when this ends: clients could not start it", in.program)}
		return nil, f.hint("build or install mcp-retry first, and run that one")
	}
	return in, nil
}

// ownPath is the absolute path by which this program is best started: that on the PATH, for it outlives an update, unless
// another one stands there.
func ownPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of mcp-retry itself cannot be told: %w", err)
	}
	if found, err := exec.LookPath("mcp-retry"); err == nil && oneFile(found, self) {
		return filepath.Abs(found)
	}
	return self, nil
}

func oneFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// keep backs a file up.
func (in *installer) keep(c *clientConfig) (note string, undo func(), err error) {
	backup, made, err := backUp(c.path, c.text)
	undo = func() {
		if made && !pointedAtUs(c) {
			os.Remove(backup)
		}
	}
	return " (before: " + backup + ")", undo, err
}

// pointedAtUs reports whether somebody else has made an install in a file meanwhile, whose backup is the one that was made here.
func pointedAtUs(c *clientConfig) bool {
	now, err := readClientConfig(c.clientFile)
	if err != nil {
		return true // for all we know
	}
	return !bytes.Equal(now.text, c.text) && slices.ContainsFunc(now.entries, func(e *clientEntry) bool {
		_, _, ok := e.wiring()
		return ok
	})
}

// plan points an entry at its server.
func (in *installer) plan(c *clientConfig, e *clientEntry) (change *rewiring, left leaving) {
	if e.fault != "" {
		return nil, leaving{reason: e.fault}
	}
	if e.behindUs() {
		return nil, leaving{}
	}
	server, left := in.serverFor(c.clientFile, e)
	if server == nil {
		return nil, left
	}
	if missing := in.unset(server, e); len(missing) > 0 {
		why := fmt.Sprintf("needs %s, which its env does not set: add it there", strings.Join(missing, ", "))
		return nil, leaving{reason: why, wrong: true}
	}
	args := []string{"run", "--config", in.config, "--server", server.Name}
	return &rewiring{command: in.program, args: args, kind: statedKind(e.client)}, leaving{}
}

// statedKind is the type that an entry of a client must state, or "". Claude Code and VS Code ask for it; the others know what
// a command means.
func statedKind(client string) string {
	if client == claudeCode || client == vsCode {
		return "stdio"
	}
	return ""
}

// unset are the variables that the server needs and the client would not have.
func (in *installer) unset(server *schema.Server, e *clientEntry) (names []string) {
	config, findings := schema.Load(in.config, in.text, e.lookup(lookupEnv))
	for _, f := range findings {
		if owner := ownerOf(config, f.Pos); f.ID == unsetVariable && owner != nil && owner.Name == server.Name {
			names = append(names, unsetName(f))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
