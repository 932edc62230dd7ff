package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests in the files realserver*_test.go drive MCP servers that were written by others, as they come from npm: each one
// directly and through mcp-retry, and compare. They need node, and the servers of .ci/servers; .ci/run sees to both. A server on the
// official Go SDK, which speaks the revision that those do not, is compiled in and always there.

// serversEnv names the environment variable that says where the servers are: the node_modules directory of .ci/servers.
const serversEnv = "MCP_RETRY_SERVERS"

// patience is how long a test waits for what must come. It says nothing about how fast it should.
const patience = 150 * time.Second

// A realServer is a server and the arguments that it is started with.
type realServer struct {
	name string   // of its package in npm, without what the three have in common; "" = the one on the Go SDK
	args []string // DIR stands for a directory of the session's own
	env  map[string]string
}

var (
	everythingServer = realServer{name: "everything"}
	filesystemServer = realServer{name: "filesystem", args: []string{"DIR"}}
	memoryServer     = realServer{name: "memory", env: map[string]string{"MEMORY_FILE_PATH": "DIR/memory.jsonl"}}
)

// need skips the test if the server is not there, and returns the command line that starts it.
func (s realServer) need(t *testing.T, dir string) (argv []string) {
	t.Helper()
	if s.name == "" {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return []string{program, sdkServerCommand}
	}
	tap, err := filepath.Abs(filepath.Join("testdata", "realserver", "tap.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(needServers(t), "@modelcontextprotocol", "server-"+s.name, "dist", "index.js")
	argv = []string{"node", "--require", tap, script}
	for _, arg := range s.args {
		argv = append(argv, strings.ReplaceAll(arg, "DIR", dir))
	}
	return argv
}

// needServers skips the test if the servers of npm are not there.
func needServers(t *testing.T) (modules string) {
	t.Helper()
	modules = os.Getenv(serversEnv)
	if modules == "" {
		t.Skipf("%s is not set: run .ci/run, or install .ci/servers with npm and set it to their node_modules", serversEnv)
	}
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	return modules
}

// A route is how a client reaches a server.
type route int

const (
	direct route = iota
	throughWrap
	throughRun
)

func (r route) String() string { return [...]string{"direct", "wrap", "run"}[r] }

// proxied are the routes through mcp-retry.
var proxied = []route{throughWrap, throughRun}

// A place is where a session happens.
type place struct {
	dir string // the server's own directory
	tap string // where the server's lives are journaled
}

func newPlace(t *testing.T) place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{dir: filepath.Join(root, "dir"), tap: filepath.Join(root, "tap")}
	for _, dir := range []string{p.dir, p.tap} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// write creates a file in the server's directory.
func (p place) write(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(file, noon, noon); err != nil {
		t.Fatal(err)
	}
}

// read returns the content of a file in the server's directory.
func (p place) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// dieOnce has the server end itself at the given moment of its next request of that method, or call of that tool: "in",
// before it is seen, or "out", when its answer would be written.
func (p place) dieOnce(t *testing.T, moment, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.tap, "die"), []byte(moment+" "+name), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command is the command line that reaches a server by a route. settings are those of the server in the config of
// [throughRun], beside how it is started.
func command(t *testing.T, r route, s realServer, at place, settings map[string]any) *exec.Cmd {
	t.Helper()
	argv := s.need(t, at.dir)
	env := map[string]string{"MCP_TAP": at.tap}
	for name, value := range s.env {
		env[name] = strings.ReplaceAll(value, "DIR", at.dir)
	}
	var cmd *exec.Cmd
	switch r {
	case throughWrap:
		cmd = mcpRetry(t, append([]string{"wrap", "--"}, argv...)...)
	case throughRun:
		server := map[string]any{"command": argv[0], "args": argv[1:], "env": env}
		for key, value := range settings {
			server[key] = value
		}
		name := s.name
		if name == "" {
			name = "sdk"
		}
		config, err := json.Marshal(map[string]any{"servers": map[string]any{name: server}})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(filepath.Dir(at.dir), "config.json")
		if err := os.WriteFile(file, config, 0o644); err != nil {
			t.Fatal(err)
		}
		return mcpRetry(t, "run", "--config", file)
	default:
		cmd = exec.Command(argv[0], argv[1:]...)
		cmd.Env = os.Environ()
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// mcpRetry is a command line of mcp-retry: of the test binary, which TestMain makes the program. Were it to run the tests
// instead, they would find no servers.
func mcpRetry(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), productEnv+"=1", serversEnv+"=")
	return cmd
}

// A life is what the server's side has seen of one life of a server process.
type life struct {
	pid    int
	frames []seenFrame
}

// A seenFrame is a frame that the server read or wrote.
type seenFrame struct {
	read  bool // by the server
	frame []byte
}

// lives reads the journals of all lives that a server has had so far.
func (p place) lives(t *testing.T) []life {
	t.Helper()
	var all []life
	for n := 1; ; n++ {
		journal, err := os.ReadFile(filepath.Join(p.tap, strconv.Itoa(n)+".journal"))
		if os.IsNotExist(err) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var l life
		for line := range bytes.Lines(journal) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			switch {
			case bytes.HasPrefix(line, []byte("> ")), bytes.HasPrefix(line, []byte("< ")):
				l.frames = append(l.frames, seenFrame{line[0] == '>', line[2:]})
			case bytes.HasPrefix(line, []byte("pid ")):
				l.pid, _ = strconv.Atoi(string(line[4:]))
			}
		}
		all = append(all, l)
	}
}

// sends counts the calls of a tool, or requests of a method, that a server was sent in all its lives.
func (p place) sends(t *testing.T, name string) int {
	t.Helper()
	n := 0
	for _, l := range p.lives(t) {
		for _, f := range l.frames {
			if m := decode(t, f.frame); f.read && (m.Method == name || m.Method == "tools/call" && m.tool() == name) {
				n++
			}
		}
	}
	return n
}

// cancels reports whether the server was told that a call of the tool is cancelled.
func (p place) cancels(t *testing.T, tool string) bool {
	t.Helper()
	for _, l := range p.lives(t) {
		var id json.RawMessage
		for _, f := range l.frames {
			m := decode(t, f.frame)
			switch {
			case !f.read:
			case m.Method == "tools/call" && m.tool() == tool:
				id = m.ID
			case m.Method == "notifications/cancelled" && id != nil && bytes.Contains(m.Params, append([]byte(`"requestId":`), id...)):
				return true
			}
		}
	}
	return false
}

// running reports whether a process exists.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}

// A logFile gathers what mcp-retry writes to its stderr, and can be waited on.
type logFile struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

// follow gathers what a reader holds until it ends.
func (l *logFile) follow(r *bufio.Reader) {
	for {
		line, err := r.ReadBytes('\n')
		l.mu.Lock()
		l.text.Write(line)
		if l.changed != nil {
			close(l.changed)
			l.changed = nil
		}
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until a record with the given message was logged n times.
func (l *logFile) await(t *testing.T, message string, n int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		found := strings.Count(l.text.String(), `"msg":"`+message+`"`)
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%q was logged %d times, want %d:\n%s", message, found, n, l)
		}
	}
}

func (l *logFile) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
