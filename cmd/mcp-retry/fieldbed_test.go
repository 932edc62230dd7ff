package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// The field tests replay failures of MCP clients, servers and proxies that their users have reported. Each is named by the
// number of the report that it stands for, and goes from end to end:
//
//	the test, as the client ⇄ mcp-retry, a process ⇄ the flaky server, a process
//	                                                   └─► its ledger, the witness
//
// Nothing waits for time to pass: tests wait for frames, log records, entries of the ledger and exits. That something does
// not happen is shown by a later event that it could only have come before.

// fieldPatience is how long an event may take that must come.
const fieldPatience = 100 * time.Second

// fieldAftermath is how long a process that was killed may take to be gone.
const fieldAftermath = 20 * time.Second

// field is one session of the product with a client, which is the test, and a server.
type field struct {
	t      *testing.T
	dir    string // of the config and all else of this test
	ledger string // path of the server's ledger
	cmd    *exec.Cmd
	stdin  *os.File
	exited chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed when something has come, and made anew
	frames  []*fieldFrame
	records []fieldRecord
	words   []string       // all lines on stderr
	asked   map[string]int // requests sent so far, by id
	told    map[string]int // responses received so far, by id
	pings   int
}

// fieldFrame is a line on the product's stdout.
type fieldFrame struct {
	line   string
	taken  bool
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    struct {
			Source          string `json:"source"`
			Kind            string `json:"kind"`
			Attempts        int    `json:"attempts"`
			Delivery        string `json:"delivery"`
			MayHaveExecuted string `json:"mayHaveExecuted"`
			EndedBy         string `json:"endedBy"`
			RetryAfterMs    int    `json:"retryAfterMs"`
		} `json:"data"`
	} `json:"error"`
}

// fieldRecord is a record of the product's log.
type fieldRecord struct {
	Time                                             time.Time
	Level, Msg, Server, Tool, Status, From, To, Text string
	Detail                                           string
	Attempt                                          int
}

// fieldSetup says how a session is started. The zero value runs a server that behaves, with the defaults.
type fieldSetup struct {
	settings string // YAML, of the server in the config
	script   flaky.Script
	wrap     []string // flags of wrap: the server is wrapped, and settings do not matter
	env      []string // more variables for the product
	deafLog  bool     // the product's stderr is a pipe that nobody reads
}

// startField starts a session for a server with these settings and that script.
func startField(t *testing.T, settings string, script flaky.Script) *field {
	t.Helper()
	return fieldSetup{settings: settings, script: script}.start(t)
}

// newField is a session that was not launched yet.
func newField(t *testing.T) *field {
	dir := t.TempDir()
	return &field{t: t, dir: dir, ledger: filepath.Join(dir, "ledger.jsonl"), exited: make(chan struct{}),
		changed: make(chan struct{}), asked: map[string]int{}, told: map[string]int{}}
}

func (s fieldSetup) start(t *testing.T) *field {
	t.Helper()
	f := newField(t)
	s.script.Ledger = f.ledger
	script := f.write("script.json", s.script.String())
	args := []string{"run", "--log-level", "debug", "--config", f.write("mcp-retry.yaml", fieldConfig(script, s.settings))}
	if s.wrap != nil {
		args = slices.Concat([]string{"wrap", "--log-level", "debug"}, s.wrap, []string{"--", fieldProgram(t), flakyCommand, script})
	}
	f.launch(args, s.env, s.deafLog)
	return f
}

// fieldConfig is a config with one server, "flaky", that plays the script in a file.
func fieldConfig(script, settings string) string {
	self, _ := os.Executable()
	config := fmt.Sprintf("servers:\n  flaky:\n    command: %q\n    args: [%s, %q]\n", self, flakyCommand, script)
	for line := range strings.Lines(settings) {
		config += "    " + strings.TrimRight(line, "\n") + "\n"
	}
	return config
}

// fieldProgram is the test binary, which is the product where [productEnv] is set.
func fieldProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// fieldEnvironment is the environment of the product: ours and some more variables.
func fieldEnvironment(more []string) []string {
	quick := "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE") // under the race detector each process would linger for a second
	return slices.Concat(os.Environ(), []string{productEnv + "=1", quick}, more)
}

// write writes a file of this test and returns its path.
func (f *field) write(name, text string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// launch starts the product with a command line, and sees to its end.
func (f *field) launch(args, env []string, deafLog bool) {
	f.t.Helper()
	f.cmd = exec.Command(fieldProgram(f.t), args...)
	f.cmd.Env = fieldEnvironment(env)
	f.cmd.Dir = f.dir
	ownGroup(f.cmd)
	theirs, ours := make([]*os.File, 3), make([]*os.File, 3)
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			f.t.Fatal(err)
		}
		theirs[i], ours[i] = w, r
		if i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	f.cmd.Stdin, f.cmd.Stdout, f.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := f.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	for _, file := range theirs {
		file.Close()
	}
	f.stdin = ours[0]
	var readers sync.WaitGroup
	readers.Go(func() { f.readLines(ours[1], f.takeFrame) })
	if !deafLog {
		readers.Go(func() { f.readLines(ours[2], f.takeLog) })
	}
	go func() {
		f.cmd.Wait()
		if deafLog {
			ours[2].Close()
		}
		readers.Wait()
		close(f.exited)
		f.change(func() {})
	}()
	f.t.Cleanup(f.finish)
}

// finish ends the session and checks what holds for each: it ends when the client goes, every process of it is gone, and no
// request was answered twice.
func (f *field) finish() {
	defer func() {
		if f.t.Failed() {
			f.report()
		}
	}()
	f.stdin.Close()
	select {
	case <-f.exited:
	case <-time.After(fieldPatience):
		f.t.Errorf("mcp-retry still runs although its client has gone")
		f.cmd.Process.Kill()
		<-f.exited
	}
	for _, entry := range f.readLedger() {
		if entry.Event != flaky.EventStart && entry.Event != flaky.EventGrandchild {
			continue
		}
		for deadline := time.Now().Add(fieldAftermath); runs(entry.PID); time.Sleep(fieldPoll) {
			if time.Now().After(deadline) {
				f.t.Errorf("process %d (%s) is left behind", entry.PID, entry.Event)
				if orphan, err := os.FindProcess(entry.PID); err == nil {
					orphan.Kill()
				}
				break
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range f.told {
		if n > f.asked[id] && id != "null" {
			f.t.Errorf("%d requests with id %s were answered %d times", f.asked[id], id, n)
		}
	}
}

// report shows the last of what was seen, for a test that failed.
func (f *field) report() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, frame := range f.frames[max(0, len(f.frames)-20):] {
		f.t.Logf("frame: %.300s", frame.line)
	}
	for _, line := range f.words[max(0, len(f.words)-40):] {
		f.t.Logf("stderr: %.400s", line)
	}
}

// runs reports whether a process runs. Where there is no /proc it cannot tell, and says no.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(state, []byte("Z"))
}

func (f *field) readLines(from *os.File, take func(line string)) {
	defer from.Close()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			take(line)
		}
		if err != nil {
			return
		}
	}
}

// takeFrame takes in a line of stdout, where nothing may ever be but frames.
func (f *field) takeFrame(line string) {
	frame := &fieldFrame{line: strings.TrimSuffix(line, "\n")}
	if !utf8.ValidString(line) || strings.Contains(line, "\r") || !strings.HasSuffix(line, "\n") {
		f.t.Errorf("a bad line on stdout: %.200q", line)
	}
	if err := json.Unmarshal([]byte(line), frame); err != nil || !strings.HasPrefix(line, "{") {
		f.t.Errorf("a line on stdout that is no frame: %.200q", line)
	}
	f.change(func() {
		f.frames = append(f.frames, frame)
		if frame.Method == "" {
			f.told[string(frame.ID)]++
		}
	})
}

// takeLog takes in a line of stderr.
func (f *field) takeLog(line string) {
	var r fieldRecord
	err := json.Unmarshal([]byte(line), &r)
	f.change(func() {
		f.words = append(f.words, strings.TrimSuffix(line, "\n"))
		if err == nil {
			f.records = append(f.records, r)
		}
	})
}

func (f *field) change(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
	close(f.changed)
	f.changed = make(chan struct{})
}

// Tools by what the server says of them.
func readTool(name string, outcomes ...flaky.Outcome) flaky.Tool {
	return flaky.Tool{Name: name, Annotations: &flaky.Annotations{ReadOnly: new(true)}, Plan: flaky.Plan{Outcomes: outcomes}}
}

func unsafeTool(name string, outcomes ...flaky.Outcome) flaky.Tool {
	return flaky.Tool{Name: name, Annotations: &flaky.Annotations{ReadOnly: new(false), Destructive: new(true)}, Plan: flaky.Plan{Outcomes: outcomes}}
}

func plainTool(name string, outcomes ...flaky.Outcome) flaky.Tool {
	return flaky.Tool{Name: name, Plan: flaky.Plan{Outcomes: outcomes}}
}

// always makes all calls of a tool come to the same.
func always(tool flaky.Tool, o flaky.Outcome) flaky.Tool {
	tool.Plan = flaky.Always(o)
	return tool
}

// gate is a question that holds a call up at the server until the client has answered it, by [field.pass]. Unlike a question
// of the protocol's, it stops no clock.
func gate() *flaky.Message { return &flaky.Message{Method: "gate"} }

// toolbox is a script of a server that has these tools.
func toolbox(tools ...flaky.Tool) flaky.Script { return flaky.Script{Tools: tools} }
