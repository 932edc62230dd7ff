package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/tailscale/hujson"
)

func newUninstall(u *ui) *cobra.Command {
	var config string
	var clients []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "uninstall [--config FILE] [--client NAME]... [--dry-run]",
		Short: "point the MCP clients here back at their servers",
		Long: `Undoes mcp-retry install: each entry that it pointed at mcp-retry gets its
command and args back as they were, byte for byte, from the backup beside the
file. What else was changed in the file since then stays. Backups stay too.

Entries that start mcp-retry wrap were made by hand, and are left alone.

Without --config it is the entries of all configs, without --client of all
clients that have a file here.

Exit status: 0 if all is back, 1 if an entry could not be restored, 2 if a file
cannot be read.`,
		Example: `  mcp-retry uninstall --dry-run
  mcp-retry uninstall --client cursor`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if config != "" {
				absolute, err := filepath.Abs(config)
				if err != nil {
					return usagef("the path of %q cannot be told: %v", config, err)
				}
				config = absolute
			}
			return u.rewire(clients, dryRun, restorer{config: config, read: map[string][]*clientConfig{}})
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "restore only the entries that name this config `FILE`")
	addRewireFlags(cmd, &clients, &dryRun)
	return cmd
}

// restorer points entries of clients back at their servers.
type restorer struct {
	config string                     // absolute; "" = any
	read   map[string][]*clientConfig // the backups of a file, the newest first
}

// keep does nothing: what there is can be made again by install.
func (r restorer) keep(*clientConfig) (note string, undo func(), err error) {
	return "", func() {}, nil
}

// plan points an entry back at what it started before.
func (r restorer) plan(c *clientConfig, e *clientEntry) (change *rewiring, left leaving) {
	config, server, ok := e.wiring()
	if !ok || r.config != "" && config != r.config {
		return nil, leaving{}
	}
	for _, backup := range r.backups(c) {
		for _, keys := range [][]string{e.keys, append(slices.Clone(e.keys[:len(e.keys)-1]), server)} {
			if before := backup.find(keys); before != nil && before.fault == "" && !before.behindUs() {
				return &rewiring{before: before.value.Value.(*hujson.Object), kind: statedKind(e.client)}, leaving{}
			}
		}
	}
	if len(r.backups(c)) == 0 {
		why := fmt.Sprintf("has lost its backup, so how it was is not known: what %s starts as %q is the nearest", config, server)
		return nil, leaving{reason: why, wrong: true}
	}
	return nil, leaving{reason: "was not in the file when that was backed up, so how it was is not known", wrong: true}
}

// backups are the backups of a file that can be read.
func (r restorer) backups(c *clientConfig) []*clientConfig {
	if known, ok := r.read[c.path]; ok {
		return known
	}
	var found []*clientConfig
	for _, name := range backups(c.path) {
		f := c.clientFile
		f.path = name
		if backup, err := readClientConfig(f); err == nil {
			found = append(found, backup)
		}
	}
	r.read[c.path] = found
	return found
}

// wiring is the config and the server that an entry names, if it was made by install.
func (e *clientEntry) wiring() (config, server string, ok bool) {
	if !e.behindUs() || len(e.args) != 5 || e.args[0] != "run" || e.args[1] != "--config" || e.args[3] != "--server" {
		return "", "", false
	}
	return e.args[2], e.args[4], true
}
