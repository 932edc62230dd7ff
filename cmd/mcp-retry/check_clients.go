package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// wiredEntry is an entry of a client that leads to a server of the config, or would after an install.
type wiredEntry struct {
	file  clientFile
	entry *clientEntry
}

// runs is the config and the server that an entry starts mcp-retry run or wrap with, "" = it does not say. ok is false if it
// does something else.
func (e *clientEntry) runs() (config, server string, ok bool) {
	if !e.behindUs() || len(e.args) == 0 || e.args[0] != "run" && e.args[0] != "wrap" {
		return "", "", false
	}
	words := e.args[1:]
	for i, word := range words {
		if word == "--" {
			break
		}
		flag, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		switch flag {
		case "--config", "-c":
			config = value
		case "--server", "-s":
			server = value
		}
	}
	return config, server, e.args[0] == "run" || config != ""
}

// wirings are the entries of the clients here that lead to servers of a config, or would after an install, by the server's
// name; the former come first. Files that cannot be read have none: that is for doctor to tell.
func (m machine) wirings(l *loaded) map[string][]wiredEntry {
	wired, later := map[string][]wiredEntry{}, map[string][]wiredEntry{}
	in := installer{machine: m, text: l.text, servers: l.config.Servers}
	in.config, _ = filepath.Abs(l.config.File) // it fails only where there is no working directory
	for _, f := range m.clientFiles() {
		c, err := readClientConfig(f)
		if err != nil {
			continue
		}
		for _, e := range c.entries {
			for _, server := range e.leadsTo(l) {
				wired[server] = append(wired[server], wiredEntry{f, e})
			}
			if e.fault != "" || e.behindUs() {
				continue
			}
			if s, _ := in.serverFor(f, e); s != nil {
				later[s.Name] = append(later[s.Name], wiredEntry{f, e})
			}
		}
	}
	for server, entries := range later {
		wired[server] = append(wired[server], entries...)
	}
	return wired
}

// leadsTo are the servers of a config that an entry starts.
func (e *clientEntry) leadsTo(l *loaded) (names []string) {
	config, server, ok := e.runs()
	if !ok || !oneFile(e.inProject(config), l.config.File) {
		return nil
	}
	for _, s := range l.config.Servers {
		if server == "" || s.Name == server {
			names = append(names, s.Name)
		}
	}
	return names
}

// inProject is the path that the client makes of one in an entry of its.
func (e *clientEntry) inProject(path string) string {
	if e.project == "" {
		return path
	}
	path = strings.ReplaceAll(path, "${workspaceFolder}", e.project)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.project, path)
}

// given is what the client sets a variable of the entry's env to; known is false if only the client itself can tell.
func (e *clientEntry) given(value, home string, env func(string) (string, bool)) (text string, known bool) {
	if !e.expands() {
		return value, !leftOver.MatchString(value)
	}
	known = true
	text = placeholders.ReplaceAllStringFunc(value, func(whole string) string {
		inner := whole[2 : len(whole)-1]
		kind, word, _ := strings.Cut(inner, ":")
		switch name, other, hasDefault := strings.Cut(inner, ":-"); {
		case kind == "workspaceFolder" && e.project != "":
			return e.project
		case kind == "workspaceFolderBasename" && e.project != "":
			return filepath.Base(e.project)
		case kind == "userHome" && home != "":
			return home
		case inner == "pathSeparator" || inner == "/":
			return string(filepath.Separator)
		case kind == "env" && variableName.MatchString(word):
			value, isSet := env(word)
			known = known && isSet
			return value
		case variableName.MatchString(name) && !editorWords[name] && (inner == name || hasDefault):
			if value, isSet := env(name); isSet && value != "" || isSet && !hasDefault {
				return value
			}
			known = known && hasDefault
			return other
		}
		known = false
		return whole
	})
	return text, known
}

// unset says of each server of a config which variables it needs that are not set.
func (l *loaded) unset() map[*schema.Server][]string {
	missing := map[*schema.Server][]string{}
	for _, f := range l.findings {
		if owner := ownerOf(l.config, f.Pos); f.ID == unsetVariable && owner != nil && !slices.Contains(missing[owner], unsetName(f)) {
			missing[owner] = append(missing[owner], unsetName(f))
		}
	}
	return missing
}

// unsetName is the variable that a finding says is not set.
func unsetName(f schema.Finding) string {
	return strings.TrimSuffix(strings.TrimPrefix(f.Message, "the environment variable "), " is not set")
}

// asClient is a config as a session reads it that the entry starts, and the variables of its env.
func (w wiredEntry) asClient(l *loaded, m machine) (*loaded, map[string]string) {
	given := map[string]string{}
	for _, v := range w.entry.env {
		delete(given, v.name) // of several the last counts
		if text, known := w.entry.given(v.value, m.home, lookupEnv); known {
			given[v.name] = text
		}
	}
	as := &loaded{text: l.text}
	as.config, as.findings = schema.Load(l.config.File, l.text, func(name string) (string, bool) {
		if value, ok := given[name]; ok {
			return value, true
		}
		return lookupEnv(name)
	})
	return as, given
}

// candidateFor prepares a server for a check. One that needs variables that are not set here is started as an entry of a client
// starts it that sets them: install leaves them there, and nowhere else.
func (u *ui) candidateFor(l *loaded, s *schema.Server, wired []wiredEntry, m machine) (candidate, error) {
	missing := l.unset()[s]
	if len(missing) == 0 {
		ready, err := u.prepare(l, s)
		if err != nil {
			return candidate{}, err
		}
		return candidate{prepared: ready[0]}, nil
	}
	var without, filling []string // clients
	for _, w := range wired {
		as, given := w.asClient(l, m)
		server := as.config.Server(s.Name)
		if server == nil || len(as.unset()[server]) > 0 {
			if slices.ContainsFunc(w.entry.env, func(v envVar) bool { return slices.Contains(missing, v.name) && placeholders.MatchString(v.value) }) {
				filling = append(filling, w.file.client)
			} else {
				without = append(without, w.file.client)
			}
			continue
		}
		ready, err := u.prepare(as, server)
		if err != nil {
			return candidate{}, err
		}
		maps.Copy(given, server.Env)
		server.Env = given // which it inherits from us there
		return candidate{prepared: ready[0], note: fmt.Sprintf("%s from the entry of %s", andList(missing), w.file.client)}, nil
	}
	fault := fmt.Sprintf("variable %s is not set here", missing[0])
	if len(missing) > 1 {
		fault = fmt.Sprintf("variables %s are not set here", andList(missing))
	}
	switch {
	case len(filling) > 0:
		fault += fmt.Sprintf("; only %s can fill in what its entry says", filling[0])
	case len(without) > 0:
		fault += fmt.Sprintf(", and the entry of %s does not set all of them", without[0])
		if len(missing) == 1 {
			fault = fmt.Sprintf("variable %s is not set here, nor in the entry of %s", missing[0], without[0])
		}
	}
	return candidate{prepared: prepared{server: s}, fault: fault, byClient: len(filling) > 0 && len(without) == 0}, nil
}

// andList are words with commas and an "and" between them.
func andList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
