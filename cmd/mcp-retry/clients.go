package main

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The MCP clients whose files we know, as --client names them.
const (
	claudeCode    = "claude-code"
	claudeDesktop = "claude-desktop"
	cursorClient  = "cursor"
	vsCode        = "vscode"
)

var knownClients = []string{claudeCode, claudeDesktop, cursorClient, vsCode}

// clientFile is a file in which a client keeps the servers that it starts.
type clientFile struct {
	client  string // one of knownClients, or "" if the user named the file
	path    string
	project string // the directory of the project whose servers these are; "" = they are the user's
}

// machine is where the files of clients are looked for.
type machine struct {
	system string // as in runtime.GOOS
	home   string
	dir    string // the working directory, absolute
	getenv func(string) string
}

// thisMachine is the machine that we run on.
func thisMachine() (machine, error) {
	dir, err := os.Getwd()
	if err != nil {
		return machine{}, usagef("the working directory cannot be told: %v", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then there are no files of the user's
	}
	return machine{system: runtime.GOOS, home: home, dir: dir, getenv: os.Getenv}, nil
}

// clientFiles are the places where clients keep their servers here, whether or not there is such a file: those of the user
// first, then those of the project.
func (m machine) clientFiles() []clientFile {
	var files []clientFile
	add := func(client, dir, name, project string) {
		if dir == "" {
			return
		}
		f := clientFile{client, filepath.Join(dir, name), project}
		known := func(other clientFile) bool { return other.path == f.path }
		if !slices.ContainsFunc(files, known) {
			files = append(files, f)
		}
	}
	add(claudeCode, cmp.Or(m.getenv("CLAUDE_CONFIG_DIR"), m.home), ".claude.json", "")
	add(claudeDesktop, m.appData("Claude"), "claude_desktop_config.json", "")
	add(cursorClient, m.home, filepath.Join(".cursor", "mcp.json"), "")
	add(vsCode, m.appData("Code"), filepath.Join("User", "mcp.json"), "")
	for _, project := range m.projects() {
		add(claudeCode, project, ".mcp.json", project)
		add(cursorClient, project, filepath.Join(".cursor", "mcp.json"), project)
		add(vsCode, project, filepath.Join(".vscode", "mcp.json"), project)
	}
	return files
}

// appData is the directory in which a program with a window keeps its settings, or "".
func (m machine) appData(program string) string {
	var dir string
	switch m.system {
	case "windows":
		if dir = m.getenv("APPDATA"); dir == "" && m.home != "" {
			dir = filepath.Join(m.home, "AppData", "Roaming")
		}
	case "darwin":
		if m.home != "" {
			dir = filepath.Join(m.home, "Library", "Application Support")
		}
	default:
		if dir = m.getenv("XDG_CONFIG_HOME"); !filepath.IsAbs(dir) && m.home != "" { // a relative one is to be ignored
			dir = filepath.Join(m.home, ".config")
		}
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, program)
}

// projects are the directories that may be the project at work here: the root of the repository, and the working directory.
func (m machine) projects() []string {
	for dir := m.dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil && dir != m.dir {
			return []string{dir, m.dir}
		}
		if dir == filepath.Dir(dir) {
			return []string{m.dir}
		}
	}
}

// ofClients are the files of these clients, or all if none is named.
func ofClients(files []clientFile, clients []string) ([]clientFile, error) {
	if len(clients) == 0 {
		return files, nil
	}
	var wanted []string
	for _, word := range clients {
		name := clientNamed(word)
		if name == "" {
			return nil, usagef("unknown client %q", word).hint("there is %s", quoted(knownClients))
		}
		wanted = append(wanted, name)
	}
	return slices.DeleteFunc(files, func(f clientFile) bool { return !slices.Contains(wanted, f.client) }), nil
}

// clientNamed is the client that a word of the user means, however it is spelled, or "".
func clientNamed(word string) string {
	bare := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
	switch bare {
	case "claude":
		return claudeCode
	case "code":
		return vsCode
	}
	for _, name := range knownClients {
		if strings.ReplaceAll(name, "-", "") == bare {
			return name
		}
	}
	return ""
}

// clientOfFile is the client whose file has such a path, or "".
func clientOfFile(path string) string {
	switch dir, name := filepath.Split(path); {
	case name == "claude_desktop_config.json":
		return claudeDesktop
	case name == ".mcp.json" || name == ".claude.json":
		return claudeCode
	case name == "mcp.json" && filepath.Base(dir) == ".cursor":
		return cursorClient
	case name == "mcp.json" && (filepath.Base(dir) == ".vscode" || filepath.Base(dir) == "User"):
		return vsCode
	}
	return ""
}
