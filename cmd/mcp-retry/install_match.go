package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// serverFor is the server of the config that stands for an entry, or nil and why there is none. It must be started as the entry
// is, in the same directory and with the same variables: an entry that was sent to another's server would, say, work on the
// wrong database. Of several, the one with a name that init would give it is meant.
func (in *installer) serverFor(f clientFile, e *clientEntry) (*schema.Server, leaving) {
	env := standIn(e.lookup(lookupEnv))
	want := in.startOf(e, env)
	config, _ := schema.Load(in.config, in.text, env)
	names := e.names(f)
	var equal, inherits []*schema.Server // inherits: by name, and what it leaves open is as in the entry
	alike := ""                          // a server that one may take for it
	for i, s := range config.Servers {
		if want == nil || s.Command != want.Command || !slices.EqualFunc(s.Args, want.Args, fits) {
			if s.Name == e.name {
				alike = s.Name
			}
			continue
		}
		if alike == "" || slices.Contains(names, s.Name) {
			alike = s.Name
		}
		switch {
		case s.Cwd == want.Cwd && maps.Equal(s.Env, want.Env):
			equal = append(equal, in.servers[i])
		case slices.Contains(names, s.Name) && in.leavesAsItIs(s, want, env):
			inherits = append(inherits, in.servers[i])
		}
	}
	for _, found := range [][]*schema.Server{equal, inherits} {
		if len(found) == 1 {
			return found[0], leaving{}
		}
		for _, name := range names {
			if i := slices.IndexFunc(found, func(s *schema.Server) bool { return s.Name == name }); i >= 0 {
				return found[i], leaving{}
			}
		}
		if len(found) > 1 {
			why := fmt.Sprintf("could be %q or %q of %s: which is not clear", found[0].Name, found[1].Name, in.config)
			return nil, leaving{reason: why, wrong: true}
		}
	}
	if alike != "" {
		why := fmt.Sprintf("is not started as %q of %s is: command, args, env and cwd must be the same", alike, in.config)
		return nil, leaving{reason: why, wrong: true}
	}
	return nil, leaving{reason: fmt.Sprintf("is not in %s", in.config)}
}

// leavesAsItIs reports whether a server sets nothing that the entry sets otherwise: what it does not set it inherits, and the
// entry goes on setting that.
func (in *installer) leavesAsItIs(s, want *schema.Server, env func(string) (string, bool)) bool {
	for name, value := range s.Env {
		if had, _ := env(name); value != had {
			return false
		}
	}
	return s.Cwd == "" || s.Cwd == want.Cwd
}

// startOf is how an entry is started, as a server of the config would be with these variables set; nil = not at all.
func (in *installer) startOf(e *clientEntry, env func(string) (string, bool)) *schema.Server {
	l := e.launch(in.machine)
	entry := map[string]any{"command": l.command, "args": slices.Concat([]string{}, l.args)}
	if l.cwd != "" {
		entry["cwd"] = l.cwd
	}
	variables := map[string]string{}
	for _, v := range l.env {
		variables[v.name] = v.value
	}
	if len(variables) > 0 {
		entry["env"] = variables
	}
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"x": entry}})
	if err != nil {
		return nil
	}
	file := filepath.Join(filepath.Dir(in.config), "launch.json") // a directory is told from that of the config
	config, _ := schema.Load(file, text, func(name string) (string, bool) {
		if secret, ok := l.secrets[name]; ok {
			return secret, true
		}
		return env(name)
	})
	if config == nil || len(config.Servers) != 1 {
		return nil
	}
	return config.Servers[0]
}

// fits reports whether an argument of a config is that of an entry. What a variable stands for that is not set is not known, and
// could be anything; the server cannot be started then, which is told of it.
func fits(ours, theirs string) bool {
	if ours == theirs || !strings.Contains(ours, "${") {
		return ours == theirs
	}
	pattern, done := "", 0
	for _, at := range placeholders.FindAllStringIndex(ours, -1) {
		pattern += regexp.QuoteMeta(ours[done:at[0]]) + "(?s:.+)"
		done = at[1]
	}
	ok, err := regexp.MatchString("^"+pattern+regexp.QuoteMeta(ours[done:])+"$", theirs)
	return ok && err == nil
}
