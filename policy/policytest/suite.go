package policytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// Suite is a test file that is fit to be run. A tool that the server does not list is treated as run treats one before any list of
// tools has passed: as unsafe once it was sent and it is unknown whether it was executed, as unannotated in all else.
type Suite struct {
	File   *schema.TestFile
	Text   []byte // of the file
	config *loadedConfig
	setups []*serverSetup
}

// serverSetup is a server of the config with the tools that tests give it.
type serverSetup struct {
	server *schema.Server
	policy *policy.Policy
	tools  json.RawMessage // a list
	names  func() map[string]bool
}

func newSetup(server *schema.Server, p *policy.Policy, tools json.RawMessage) *serverSetup {
	s := &serverSetup{server: server, policy: p, tools: tools}
	s.names = sync.OnceValue(func() map[string]bool {
		names := map[string]bool{}
		for _, tool := range s.listed() {
			names[tool] = true
		}
		return names
	})
	return s
}

// listed are the names of the tools, in their order.
func (s *serverSetup) listed() (names []string) {
	var tools []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(s.tools, &tools) != nil {
		return nil
	}
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// loadedConfig is a config that several test files may be about.
type loadedConfig struct {
	path     string
	text     []byte
	config   *schema.Config
	policies []*policy.Policy
	findings schema.Findings
	err      error
}

// Loader loads test files. The zero value is ready; it keeps the configs it has seen, so use one for all files of a run. It may
// be used by several goroutines.
type Loader struct {
	// Env looks up the environment variables that configs name; nil knows none. One that is not set is no fault: nothing is
	// started, and CI has no secrets.
	Env func(string) (string, bool)

	// AnyRule lets tests expect rules that the config does not have. They fail, and FileReport.Update writes those that decide: so
	// a renamed rule is followed.
	AnyRule bool

	mu      sync.Mutex
	configs map[string]*loadedConfig
}

// Fault is why a test file cannot be run.
type Fault struct {
	File     string          // that has the fault: the test file, its config or its snapshot
	Text     []byte          // of that file, for showing where
	Findings schema.Findings // what is wrong in it; empty if it could not be read
	Err      error           // why it could not be read
}

func (f *Fault) Error() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	return fmt.Sprintf("%s: %d findings", f.File, len(f.Findings))
}

// Load reads a test file and what it names. An error is a [*Fault].
func (l *Loader) Load(path string) (*Suite, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return l.LoadText(path, text)
}

// LoadText is Load for a test file whose text is at hand.
func (l *Loader) LoadText(path string, text []byte) (*Suite, error) {
	file, findings := schema.LoadTest(path, text)
	if file == nil || findings.HasErrors() {
		return nil, &Fault{File: path, Text: text, Findings: findings}
	}
	s := &Suite{File: file, Text: text}
	s.config = l.config(named(path, file.Config))
	if s.config.err != nil {
		return nil, pointAt(s, file.ConfigPos, s.config.err)
	}
	if s.config.findings.HasErrors() {
		return nil, &Fault{File: s.config.path, Text: s.config.text, Findings: s.config.findings}
	}
	tools, err := s.readTools(path)
	if err != nil {
		return nil, pointAt(s, file.ToolsPos, err)
	}
	for i, server := range s.config.config.Servers {
		s.setups = append(s.setups, newSetup(server, s.config.policies[i], tools(server.Name)))
	}
	faults := s.checkServers()
	if !l.AnyRule {
		faults = append(faults, s.checkRules()...)
	}
	if len(faults) > 0 {
		return nil, &Fault{File: path, Text: text, Findings: faults}
	}
	return s, nil
}

func unreadable(path string, err error) *Fault {
	var broken *fs.PathError
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return &Fault{File: path, Err: fmt.Errorf("cannot read %q: %w", path, err)}
}

// pointAt is a fault at a place of the test file.
func pointAt(s *Suite, pos schema.Pos, err error) *Fault {
	return &Fault{File: s.File.File, Text: s.Text, Findings: schema.Findings{
		{Pos: pos, Level: schema.Error, ID: "bad-value", Message: err.Error(), Hint: "paths are relative to this file"},
	}}
}

// named is the file that a test file names by a path, which is relative to it or absolute.
func named(testFile, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(testFile), path)
}

// config loads and compiles a config, once.
func (l *Loader) config(path string) *loadedConfig {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.configs[path]; c != nil {
		return c
	}
	c := &loadedConfig{path: path}
	if l.configs == nil {
		l.configs = map[string]*loadedConfig{}
	}
	l.configs[path] = c
	if c.text, c.err = os.ReadFile(path); c.err != nil {
		c.err = unreadable(path, c.err)
		return c
	}
	c.config, c.findings = schema.Load(path, c.text, l.Env)
	c.findings = slices.DeleteFunc(c.findings, func(f schema.Finding) bool {
		return f.ID == "unset-variable" || f.Level != schema.Error
	})
	if c.config == nil || c.findings.HasErrors() {
		return c
	}
	for _, server := range c.config.Servers {
		compiled, findings := policy.Compile(server)
		c.policies = append(c.policies, compiled)
		for _, f := range findings {
			if f.Level == schema.Error && !slices.Contains(c.findings, f) {
				c.findings = append(c.findings, f)
			}
		}
	}
	c.findings.Sort()
	return c
}

// readTools returns the tools of each server, as a JSON list.
func (s *Suite) readTools(testFile string) (func(server string) json.RawMessage, error) {
	if s.File.ToolsFile == "" {
		all, err := json.Marshal(s.File.Tools)
		if s.File.Tools == nil {
			all = []byte("[]")
		}
		return func(string) json.RawMessage { return all }, err
	}
	path := named(testFile, s.File.ToolsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	var snapshot struct {
		Servers map[string]struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"servers"`
	}
	if err := json.Unmarshal(text, &snapshot); err != nil {
		return nil, fmt.Errorf("%q is not what mcp-retry snapshot writes: %v", path, err)
	}
	return func(server string) json.RawMessage {
		if tools := snapshot.Servers[server].Tools; tools != nil {
			return onOneLine(tools)
		}
		return json.RawMessage("[]")
	}, nil
}

// checkServers finds calls of servers that the config does not have.
func (s *Suite) checkServers() schema.Findings {
	var faults schema.Findings
	for _, t := range s.File.Tests {
		for _, row := range t.Rows {
			for _, step := range row.Steps {
				c := step.Call
				if c == nil || s.setup(c.Server) != nil {
					continue
				}
				f := schema.Finding{Pos: c.ServerPos, Level: schema.Error, ID: "bad-value"}
				if c.Server == "" {
					f.Pos, f.Message = c.Pos, fmt.Sprintf("%s has %d servers: which one is called?", s.File.Config, len(s.setups))
				} else {
					f.Message = fmt.Sprintf("%s has no server %q", s.File.Config, c.Server)
				}
				for _, other := range s.setups {
					if f.Hint != "" {
						f.Hint += ", "
					}
					f.Hint += other.server.Name
				}
				f.Hint = "there is " + f.Hint
				if !slices.Contains(faults, f) {
					faults = append(faults, f)
				}
			}
		}
	}
	return faults
}

// setup returns the server of that name, or the only one; nil if there is none.
func (s *Suite) setup(name string) *serverSetup {
	if name == "" {
		if len(s.setups) == 1 {
			return s.setups[0]
		}
		return nil
	}
	for _, setup := range s.setups {
		if setup.server.Name == name {
			return setup
		}
	}
	return nil
}

// Sources lists the files that the tests depend on.
func (s *Suite) Sources() []string {
	files := []string{s.File.File, s.config.path}
	if s.File.ToolsFile != "" {
		files = append(files, named(s.File.File, s.File.ToolsFile))
	}
	return files
}
