package proxy

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// Open returns the options for a server of a config file, checked and compiled as mcp-retry run does it; if server is "" they
// are for all servers of the file, behind one endpoint. The rest of the options is left to the caller: with Watch set to the
// file, its changes are taken over. A [ConfigError] says what is wrong with the config.
func Open(file, server string) (Options, error) {
	text, err := schema.ReadFile(file)
	if err != nil {
		return Options{}, err
	}
	return Parse(file, text, server)
}

// Parse is [Open] for a config that is in no file: name stands for it in messages, and its extension says how it is spelled:
// .yaml, .json or .cue. ${VAR} is replaced from the environment.
func Parse(name string, text []byte, server string) (Options, error) {
	config, findings := schema.Load(name, text, os.LookupEnv)
	if config == nil {
		return Options{}, configError(findings)
	}
	s := config.Server(server)
	findings = slices.DeleteFunc(findings, func(f schema.Finding) bool {
		return f.ID == unsetVariable && s != nil && config.At(f.Pos) != s // another server's, which is not started
	})
	if findings.HasErrors() {
		return Options{}, configError(findings)
	}
	switch {
	case s != nil:
	case server != "":
		return Options{}, fmt.Errorf("no server %q in %s", server, name)
	case len(config.Servers) == 1:
		s = config.Servers[0]
	default:
		return composed(config)
	}
	compiled, err := compile(s)
	return Options{Server: s, Policy: compiled, Separator: config.Separator}, err
}

// composed are the options for all servers of a config behind one endpoint.
func composed(c *schema.Config) (o Options, err error) {
	o.Separator = c.Separator
	for _, s := range c.Servers {
		compiled, err := compile(s)
		if err != nil {
			return Options{}, err
		}
		o.Servers = append(o.Servers, Member{s, compiled})
	}
	return o, nil
}

// unsetVariable is the id of the finding that a variable of the environment is not set.
const unsetVariable = "unset-variable"

// compile compiles the policy of a server.
func compile(s *schema.Server) (*policy.Policy, error) {
	compiled, findings := policy.Compile(s)
	if compiled == nil {
		return nil, configError(findings)
	}
	return compiled, nil
}

// sound says what is missing of a server that was made by hand: the file's checks and defaults have never seen it.
func sound(s *schema.Server) error {
	switch {
	case s.Command == "":
		return fmt.Errorf("the server %q has no command", s.Name)
	case s.Name == "" || len(s.Rules) == 0 || s.StartupTimeout <= 0 || s.MaxMessageBytes <= 0:
		return fmt.Errorf("the server %q lacks a name or its defaults: make it with proxy.Open, proxy.Parse or schema.Wrap", s.Name)
	}
	return nil
}

// ConfigError says what is wrong with a config: all of it, in the order of the text.
type ConfigError struct {
	Findings schema.Findings // of level Error, one at least
}

// configError keeps of the findings those that refuse the config.
func configError(findings schema.Findings) *ConfigError {
	e := &ConfigError{}
	for _, f := range findings {
		if f.Level == schema.Error {
			e.Findings = append(e.Findings, f)
		}
	}
	return e
}

// Error has a line for each finding.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
		if f.Hint != "" {
			lines[i] += " (" + f.Hint + ")"
		}
	}
	return strings.Join(lines, "\n")
}
