package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"
)

// clients looks at the entries of the clients.
func (d *doctor) clients() {
	d.heading("clients")
	d.wired = map[string][]wiredEntry{}
	seen := false
	for _, f := range d.machine.clientFiles() {
		c, err := readClientConfig(f)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		seen = true
		if err != nil {
			d.line(broken, "%s: %v", f.client, err)
			continue
		}
		if len(c.entries) == 0 {
			d.line(neutral, "%s: no servers in %s", f.client, f.path)
		}
		for _, e := range c.entries {
			d.entry(c, e)
		}
	}
	if !seen {
		d.line(neutral, "no client has a file here: looked for %s", strings.Join(knownClients, ", "))
	}
}

// entry looks at one entry of a client.
func (d *doctor) entry(c *clientConfig, e *clientEntry) {
	at := c.client + ": " + e.name + " in " + e.where(c.clientFile)
	if e.fault != "" {
		d.line(neutral, "%s %s", at, e.fault)
		return
	}
	if !e.behindUs() {
		d.line(neutral, "%s is not behind mcp-retry: mcp-retry install points it there", at)
		return
	}
	if _, err := exec.LookPath(e.command); err != nil {
		d.line(broken, "%s starts %s, which cannot be started: %v", at, e.command, pathCause(errors.Unwrap(err)))
		return
	}
	config, server, ok := e.wiring()
	if !ok {
		d.line(fine, "%s starts mcp-retry %s", at, strings.Join(e.args[:min(1, len(e.args))], ""))
		return
	}
	l, err := loadConfig(config)
	switch {
	case err != nil:
		d.line(broken, "%s: %v", at, err)
	case l.config == nil || l.config.Server(server) == nil:
		d.line(broken, "%s: no server %q in %s", at, server, config)
	default:
		if filepath.IsAbs(config) {
			d.line(fine, "%s starts %s of %s", at, server, config)
		} else {
			d.line(unwise, "%s names the config %s, and the client may start it elsewhere: write its absolute path", at, config)
		}
		if d.config != nil && oneFile(config, d.config.config.File) {
			d.wired[server] = append(d.wired[server], wiredEntry{c.clientFile, e})
		}
	}
}

// hooks looks for a hook of Claude Code that runs check.
func (d *doctor) hooks() {
	d.heading("hook")
	var files []string
	if d.machine.home != "" {
		files = append(files, filepath.Join(d.machine.home, ".claude", "settings.json"))
	}
	for _, project := range d.machine.projects() {
		files = append(files, filepath.Join(project, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json"))
	}
	found := false
	for _, file := range files {
		for _, h := range sessionHooks(file) {
			found = true
			switch {
			case !strings.Contains(h.Command, "--hook") && !strings.Contains(h.Command, "exit 0") && !strings.Contains(h.Command, "|| true"):
				d.line(unwise, "%s: the host drops the table when a server is down: add --hook", file)
			case h.Timeout != nil && *h.Timeout <= hookDeadline.Seconds():
				d.line(unwise, "%s: the host ends it after %vs, and check may take %s: give it 15", file, *h.Timeout, hookDeadline)
			default:
				d.line(fine, "%s: %s", file, h.Command)
			}
		}
	}
	if !found {
		d.line(neutral, "none runs check when a session of Claude Code starts: mcp-retry check --help shows one")
	}
}

// sessionHook is a hook that runs when a session of Claude Code starts.
type sessionHook struct {
	Command string   `json:"command"`
	Timeout *float64 `json:"timeout"` // in seconds
}

// sessionHooks are the hooks in a file of settings that run check. A file that cannot be read has none.
func sessionHooks(file string) []sessionHook {
	text, err := os.ReadFile(file)
	if err != nil || tooDeep(text) {
		return nil
	}
	if text, err = hujson.Standardize(text); err != nil {
		return nil
	}
	var settings struct {
		Hooks struct {
			SessionStart []struct {
				Hooks []sessionHook `json:"hooks"`
			} `json:"SessionStart"`
		} `json:"hooks"`
	}
	if json.Unmarshal(text, &settings) != nil {
		return nil
	}
	var found []sessionHook
	for _, matcher := range settings.Hooks.SessionStart {
		for _, h := range matcher.Hooks {
			if strings.Contains(h.Command, "mcp-retry") && strings.Contains(h.Command, "check") {
				found = append(found, h)
			}
		}
	}
	return found
}
