package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// clients looks at the entries of the clients.
func (d *doctor) clients() {
	d.heading("clients")
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
		for _, what := range c.twice {
			d.line(unwise, "%s: %s", f.client, what)
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
	config, server, ok := e.runs()
	switch {
	case !ok:
		d.line(fine, "%s starts mcp-retry %s", at, strings.Join(e.args[:min(1, len(e.args))], ""))
		return
	case config == "":
		d.line(unwise, "%s names no config, and the client may start it in any directory: add --config with its absolute path", at)
		return
	}
	place := e.inProject(config)
	if placeholders.MatchString(place) {
		d.line(neutral, "%s starts %s: which file that is, only the client knows", at, config)
		return
	}
	l, err := loadConfig(place)
	switch {
	case err != nil && strings.HasPrefix(config, "~"):
		d.line(broken, "%s: %v, for no shell replaces the ~: write its absolute path", at, err)
	case err != nil:
		d.line(broken, "%s: %v", at, err)
	case l.config == nil || server != "" && l.config.Server(server) == nil:
		d.line(broken, "%s: no server %q in %s", at, server, config)
	default:
		inFolder := e.project != "" && strings.HasPrefix(config, "${workspaceFolder}")
		switch here := d.unfound(e); {
		case !filepath.IsAbs(config) && !inFolder:
			d.line(unwise, "%s names the config %s, and the client may start it elsewhere: write its absolute path", at, config)
		case here != "":
			d.line(unwise, "%s starts %s, which a client with a window may not find: write %s", at, e.command, here)
		default:
			d.line(fine, "%s starts %s of %s", at, cmp.Or(server, "the servers"), config)
		}
	}
}

// unfound is the place of an entry's program that its client would look for in vain, or "".
func (d *doctor) unfound(e *clientEntry) string {
	if e.client == claudeCode || d.windowPath() == "" || filepath.Base(e.command) != e.command || findIn(d.windowPath(), e.command) != "" {
		return ""
	}
	here, err := exec.LookPath(e.command)
	if err != nil {
		return ""
	}
	return here
}

// hooks looks for a hook of Claude Code that runs check.
func (d *doctor) hooks() {
	d.heading("hook")
	var files []string
	if dir := d.machine.getenv("CLAUDE_CONFIG_DIR"); dir != "" { // it takes the place of ~/.claude
		files = append(files, filepath.Join(dir, "settings.json"))
	} else if d.machine.home != "" {
		files = append(files, filepath.Join(d.machine.home, ".claude", "settings.json"))
	}
	for _, project := range d.machine.projects() {
		files = append(files, filepath.Join(project, ".claude", "settings.json"), filepath.Join(project, ".claude", "settings.local.json"))
	}
	found := false
	for _, file := range files {
		for _, h := range sessionHooks(file) {
			found = true
			switch fault := h.fault(); {
			case !strings.Contains(h.Command, "--hook") && !strings.Contains(h.Command, "exit 0") && !strings.Contains(h.Command, "|| true"):
				d.line(unwise, "%s: the host drops the table when a server is down: add --hook", file)
			case h.Timeout != nil && *h.Timeout <= hookDeadline.Seconds():
				d.line(unwise, "%s: the host ends it after %vs, and check may take %s: give it 15", file, *h.Timeout, hookDeadline)
			case h.config() == "":
				d.line(unwise, "%s: it names no config, and the host runs it in the directory of the session: add --config with its absolute path", file)
			case !isAnchored(h.config()):
				d.line(unwise, "%s: it names the config %s, and the host may run it elsewhere: write its absolute path", file, h.config())
			case fault != nil:
				d.line(broken, "%s: the hook cannot check anything: %v", file, fault)
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

// config is the config that the hook names, as it is written there, or "".
func (h sessionHook) config() string {
	_, arguments, _ := strings.Cut(h.Command, "check") // before it may stand a shell, with a -c of its own
	m := hookConfig.FindStringSubmatch(arguments)
	if m == nil {
		return ""
	}
	return strings.Trim(m[1], `"'`)
}

// fault is why the config that the hook names cannot be read, if that is known: a path with variables is for the shell.
func (h sessionHook) fault() error {
	path := h.config()
	if !filepath.IsAbs(path) || strings.ContainsAny(path, "$`*?") {
		return nil
	}
	_, err := loadConfig(path)
	return err
}

// hookConfig finds the config in the command of a hook, which is a line for a shell.
var hookConfig = regexp.MustCompile(`(?:--config|-c)(?:\s+|=)("[^"]*"|'[^']*'|[^\s;&|]+)`)

// isAnchored reports whether a path in a line for a shell means the same file wherever that runs.
func isAnchored(path string) bool {
	return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "$")
}

// sessionHooks are the hooks in a file of settings that run check. A file that cannot be read has none.
func sessionHooks(file string) []sessionHook {
	text, err := os.ReadFile(file)
	if err != nil || tooDeep(text) {
		return nil
	}
	root, err := parseCommented(bytes.TrimPrefix(text, []byte(utf8BOM)))
	if err != nil {
		return nil
	}
	root.Standardize()
	var settings struct {
		Hooks struct {
			SessionStart []struct {
				Hooks []sessionHook `json:"hooks"`
			} `json:"SessionStart"`
		} `json:"hooks"`
	}
	if json.Unmarshal(root.Pack(), &settings) != nil {
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
