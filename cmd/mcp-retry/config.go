package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// defaultConfigs are the files that are looked for in the working directory if none is named.
var defaultConfigs = []string{"mcp-retry.yaml", "mcp-retry.yml", "mcp-retry.json", "mcp-retry.cue"}

// findConfig is the file to load if the user named path, which may be "".
func findConfig(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	for _, name := range defaultConfigs {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			return name, nil
		}
	}
	return "", usagef("no config: there is no %s here", strings.Join(defaultConfigs, ", ")).
		hint("mcp-retry init writes one; or name one with --config FILE, or wrap a server without one: mcp-retry wrap -- COMMAND")
}

// loaded is a config file, with everything that is to be said about it.
type loaded struct {
	text     []byte
	config   *schema.Config // nil if the text could not be parsed at all
	findings schema.Findings
}

// loadConfig reads a config file and looks through it. The error says that it could not be read.
func loadConfig(path string) (*loaded, error) {
	text, err := schema.ReadFile(path)
	if err != nil {
		return nil, cannotRead(path, err)
	}
	return loadText(path, text), nil
}

// loadText looks through the text of a config file.
func loadText(path string, text []byte) *loaded {
	l := &loaded{text: text}
	l.config, l.findings = schema.Load(path, text, lookupEnv)
	return l
}

// cannotRead is the error that a file cannot be read.
func cannotRead(path string, err error) *failure {
	return usagef("cannot read %q: %v", path, bare(err))
}

// cannotWrite is the error that a file cannot be written.
func cannotWrite(path string, err error) *failure {
	return usagef("cannot write %q: %v", path, bare(err))
}

// replaceFile writes a file anew, all of it or nothing, whether there was one or not.
func replaceFile(path string, text []byte) error {
	if err := writeNew(path, text, true); err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// bare is an error about a file without its name, which is said already.
func bare(err error) error {
	var broken *fs.PathError
	if errors.As(err, &broken) {
		return broken.Err
	}
	return err
}

// shown is the text of a file as it may be printed: without its secrets.
func (l *loaded) shown() []byte { return l.config.Mask(l.text) }

// unsetVariable is the id of the finding that a variable of the environment is not set.
const unsetVariable = "unset-variable"

// openConfig loads the config that a command is to work with. What is wrong with it has been printed when it returns an error.
func (u *ui) openConfig(path string) (*loaded, error) {
	path, err := findConfig(path)
	if err != nil {
		return nil, err
	}
	l, err := loadConfig(path)
	if err != nil {
		return nil, err
	}
	return l, u.refuse(l, func(f schema.Finding) bool { return f.ID != unsetVariable })
}

// refuse prints the errors among the findings that concern the command, and returns an error if there are any.
func (u *ui) refuse(l *loaded, concerns func(schema.Finding) bool) error {
	faults := slices.DeleteFunc(slices.Clone(l.findings), func(f schema.Finding) bool {
		return f.Level != schema.Error || !concerns(f)
	})
	if len(faults) == 0 {
		return nil
	}
	faults.Render(u.stderr, l.shown(), colors(u.stderr))
	return &failure{status: exitUsage}
}

// prepared is a server that is fit to be started.
type prepared struct {
	server *schema.Server
	policy *policy.Policy
}

// prepare compiles the policy of servers of the config. What is wrong has been printed when it returns an error; a variable
// that is not set counts only where one of these servers names it.
func (u *ui) prepare(l *loaded, servers ...*schema.Server) ([]prepared, error) {
	err := u.refuse(l, func(f schema.Finding) bool {
		return f.ID == unsetVariable && slices.Contains(servers, ownerOf(l.config, f.Pos))
	})
	if err != nil {
		return nil, err
	}
	var ready []prepared
	problems := &loaded{text: l.text, config: l.config}
	for _, server := range servers {
		compiled, findings := policy.Compile(server)
		ready = append(ready, prepared{server, compiled})
		problems.add(findings)
	}
	return ready, u.refuse(problems, func(schema.Finding) bool { return true })
}

// add adds findings that are not known yet: a rule in the defaults is compiled for each server.
func (l *loaded) add(findings schema.Findings) {
	known := make(map[schema.Finding]bool, len(l.findings)+len(findings))
	for _, f := range l.findings {
		known[f] = true
	}
	for _, f := range findings {
		if !known[f] {
			known[f] = true
			l.findings = append(l.findings, f)
		}
	}
	l.findings.Sort()
}

// ownerOf is the server in whose entry a place is: the last that begins before it.
func ownerOf(c *schema.Config, at schema.Pos) *schema.Server {
	var owner *schema.Server
	for _, s := range c.Servers {
		before := s.Pos.Line < at.Line || s.Pos.Line == at.Line && s.Pos.Col <= at.Col
		later := owner == nil || owner.Pos.Line < s.Pos.Line || owner.Pos.Line == s.Pos.Line && owner.Pos.Col < s.Pos.Col
		if before && later {
			owner = s
		}
	}
	return owner
}

// pickServer is the server of that name, or the only one if there is no name.
func pickServer(c *schema.Config, name string) (*schema.Server, error) {
	switch {
	case name != "":
		if s := c.Server(name); s != nil {
			return s, nil
		}
		return nil, usagef("no server %q in %s", name, c.File).hint("there is %s", listServers(c))
	case len(c.Servers) == 1:
		return c.Servers[0], nil
	case len(c.Servers) == 0:
		return nil, usagef("no server in %s", c.File)
	}
	return nil, usagef("%s has %d servers: which one?", c.File, len(c.Servers)).hint("name it with --server: %s", listServers(c))
}

func listServers(c *schema.Config) string {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = fmt.Sprintf("%q", s.Name)
	}
	return strings.Join(names, ", ")
}

// withoutGC keeps the garbage collector from running while little is allocated in a short time: at the start, up to 16 MiB, which a
// config of some dozens of rules does not take. The function that it returns lets it run as usual again.
func withoutGC() (restore func()) {
	percent := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(percent) }
}
