package schema

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// builder makes a Config of a checked tree. What checking marked is left out.
type builder struct {
	report *report
	env    func(string) (string, bool)
	file   string
	shield bool
}

func (b *builder) config(root *node) *Config {
	cfg := &Config{File: b.file, Separator: DefaultSeparator}
	servers := root.get("servers")
	if servers == nil || servers.kind != object {
		return cfg
	}
	if separator := root.get("compose").get("separator"); separator != nil {
		cfg.Separator = separator.text
	}
	defaults := root.get("defaults")
	count := 0
	for _, f := range servers.fields {
		if f.key.bad || f.value.kind != object {
			count++
			continue
		}
		count++
		cfg.Servers = append(cfg.Servers, b.server(f, defaults))
	}
	if count == 0 {
		b.report.errorAt(servers.pos, "missing-key", startHint, "%q names no server", "servers")
	}
	checkPrefixes(cfg, b.report)
	return cfg
}

func (b *builder) server(f field, defaults *node) *Server {
	s := newServer(f.key.text)
	s.Pos = f.key.pos
	b.launch(s, f)
	for _, n := range []*node{defaults, f.value} {
		b.settings(s, n)
	}
	rules := ruleList{report: b.report, names: map[string]bool{}}
	rules.settings("servers."+s.Name, "", f.value)
	rules.settings("defaults", "defaults.", defaults)
	if b.shield {
		rules.add(defaultRule(WrapMaxRetries, WrapBaseDelay))
	} else {
		rules.add(defaultRule(DefaultMaxRetries, DefaultBaseDelay))
	}
	for _, r := range Builtin() {
		rules.add(r)
	}
	s.Rules = rules.rules
	checkTimeouts(s.Name, s.Rules, b.report)
	return s
}

// launch reads how the server is started.
func (b *builder) launch(s *Server, f field) {
	n := f.value
	command, url := n.key("command"), n.key("url")
	kind := n.get("type")
	switch {
	case command != nil && url != nil:
		b.report.errorAt(url.pos, "unsupported", "keep command, for HTTP servers are not supported yet",
			"server %q has both a command and a url", s.Name)
	case url != nil:
		b.report.errorAt(url.pos, "unsupported", "give it a command that speaks MCP over stdio",
			"HTTP servers are not supported yet: server %q has a url", s.Name)
	case kind != nil && kind.text != "stdio":
		b.report.errorAt(kind.pos, "unsupported", "give it a command that speaks MCP over stdio",
			"HTTP servers are not supported yet: server %q has the type %q", s.Name, kind.text)
	case command == nil && !n.bad && !n.misspelt("command"):
		b.report.errorAt(f.key.pos, "missing-key", "add command: PROGRAM", "server %q needs a key %q", s.Name, "command")
	}
	x := expander{env: b.env, report: b.report}
	if c := n.get("command"); c != nil {
		s.written.command = c.text
		if b.shield && n.get("args") == nil {
			words := x.split(c)
			b.noShell(c)
			if len(words) > 0 {
				s.Command, s.Args = words[0], words[1:]
			}
			s.written.command, s.written.args = c.text, nil
		} else {
			s.Command = x.expand(c)
			b.oneWord(s, c, n)
		}
	}
	if a := n.get("args"); a != nil {
		s.Args = make([]string, 0, len(a.items))
		for _, item := range a.items {
			if !item.bad {
				s.Args = append(s.Args, x.expand(item))
				s.written.args = append(s.written.args, item.text)
			}
		}
	}
	if e := n.get("env"); e != nil {
		s.Env = make(map[string]string, len(e.fields))
		s.written.env = make(map[string]string, len(e.fields))
		for _, v := range e.fields {
			if !v.key.bad && !v.value.bad {
				s.written.env[v.key.text] = v.value.text
				if value := x.expand(v.value); !v.value.bad {
					s.Env[v.key.text] = value
				}
			}
		}
	}
	if c := n.get("cwd"); c != nil {
		s.written.cwd = c.text
		s.Cwd = b.directory(x.expand(c))
	}
}

// oneWord warns of a command that holds its arguments: it would be taken for the name of one program.
func (b *builder) oneWord(s *Server, c, server *node) {
	if c.bad || server.key("args") != nil || !strings.ContainsAny(s.Command, " \t") {
		return
	}
	if _, err := os.Stat(s.Command); err == nil {
		return
	}
	if _, err := exec.LookPath(s.Command); err == nil {
		return
	}
	quiet := expander{env: b.env, report: &report{}}
	words := quiet.split(&node{text: c.text})
	if len(words) < 2 {
		return
	}
	hint := "write command: " + scalar(words[0]) + " and args: " + flowList(words[1:])
	if needsShell(c.text) {
		hint = "no shell runs it: write command: sh and args: " + flowList([]string{"-c", c.text})
	}
	b.report.warnAt(c.pos, "command-words", hint, "the command of %q is one program named %q, and there is no such file", s.Name, shorten(c.text))
}

// directory makes a working directory of what the file says: relative to the file, ~ the home directory.
func (b *builder) directory(dir string) string {
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		if home, ok := b.env("HOME"); ok && home != "" {
			return filepath.Join(home, dir[1:])
		}
	}
	if dir == "" || filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(filepath.Dir(b.file), dir)
}

// settings reads the settings of a server that are no rules; called for the defaults first.
func (b *builder) settings(s *Server, n *node) {
	set(&s.StartupTimeout, n.get("startup_timeout"))
	set(&s.Restart, n.get("restart"))
	set(&s.MaxMessageBytes, n.get("max_message_bytes"))
	set(&s.Errors, n.get("errors"))
	set(&s.TrustAnnotations, n.get("trust_annotations"))
	set(&s.MarkResults, n.get("mark_results"))
	if c := n.get("max_concurrency"); c != nil {
		var most int64
		set(&most, c)
		s.MaxConcurrency = int(most)
	}
	if c := n.get("cache"); c != nil {
		var entries int64
		if set(&entries, c.get("max_entries")); entries > 0 {
			s.CacheLimit.MaxEntries = int(entries)
		}
		set(&s.CacheLimit.MaxBytes, c.get("max_bytes"))
	}
	if t := n.get("tool_filter"); t != nil {
		if a := t.get("allow"); a != nil {
			s.ToolFilter.Allow, s.ToolFilter.AllowPos = texts(a)
		}
		if d := t.get("deny"); d != nil {
			s.ToolFilter.Deny, s.ToolFilter.DenyPos = texts(d)
		}
	}
	switch r := n.get("retry_budget"); {
	case r == nil:
	case r.kind == boolean:
		s.Budget = nil
	default:
		if s.Budget == nil {
			s.Budget = &Budget{Ratio: DefaultBudgetRatio, PerSecond: DefaultBudgetPerSecond, Burst: DefaultBudgetBurst}
		}
		setFloat(&s.Budget.Ratio, r.get("ratio"))
		setFloat(&s.Budget.PerSecond, r.get("per_second"))
		setFloat(&s.Budget.Burst, r.get("burst"))
	}
}

// set stores a checked value, if it is there.
func set[T bool | int64 | string | time.Duration](to *T, n *node) {
	if n == nil {
		return
	}
	if v, ok := n.value.(T); ok {
		*to = v
	}
}

func setFloat(to *float64, n *node) {
	if n != nil {
		*to = n.float()
	}
}

// float is the value of a number.
func (n *node) float() float64 {
	switch v := n.value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// texts are the sound items of a list, never nil, and where they stand.
func texts(n *node) (out []string, at []Pos) {
	out = make([]string, 0, len(n.items))
	for _, i := range n.items {
		if !i.bad {
			out, at = append(out, i.text), append(at, i.pos)
		}
	}
	return out, at
}

func place(origin string, parts ...any) string {
	for _, p := range parts {
		origin += "." + fmt.Sprint(p)
	}
	return origin
}
