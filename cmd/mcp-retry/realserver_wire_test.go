package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A message is a frame whose values are kept as they were written.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func decode(t testing.TB, frame []byte) message {
	t.Helper()
	var m message
	if err := json.Unmarshal(frame, &m); err != nil {
		t.Errorf("%v in %.300q", err, frame)
	}
	return m
}

// outcome is a response without its id: "result …" or "error …", byte for byte.
func (m message) outcome() string {
	if m.Error != nil {
		return "error " + string(m.Error)
	}
	return "result " + string(m.Result)
}

// tool is the tool that a tools/call is for.
func (m message) tool() string {
	var params struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(m.Params, &params) // whatever is no call of a tool calls none
	return params.Name
}

// A wire is a client that speaks in raw frames.
type wire struct {
	t     *testing.T
	route route
	at    place
	cmd   *exec.Cmd
	in    io.WriteCloser
	log   logFile
	ended chan struct{} // closed at the end of the other side's output

	mu      sync.Mutex
	sent    [][]byte
	got     [][]byte
	changed chan struct{} // closed with the next frame that comes
	waiting map[string]chan message
	answers map[string]func() string
	next    int
	notes   []string
}

// dial starts a server and whatever is before it.
func dial(t *testing.T, r route, s realServer, at place, settings map[string]any) *wire {
	t.Helper()
	return dialCommand(t, r, command(t, r, s, at, settings), at)
}

func dialCommand(t *testing.T, r route, cmd *exec.Cmd, at place) *wire {
	t.Helper()
	w := &wire{
		t: t, route: r, at: at, cmd: cmd, ended: make(chan struct{}),
		changed: make(chan struct{}), waiting: map[string]chan message{}, answers: map[string]func() string{},
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.in = in
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		w.log.follow(bufio.NewReader(logs))
	}()
	go w.read(bufio.NewReader(out))
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-w.ended
		<-logged
		cmd.Wait()
		if t.Failed() {
			t.Logf("stderr of %s:\n%s", r, &w.log)
		}
	})
	return w
}

// read takes in what the other side writes until it ends.
func (w *wire) read(out *bufio.Reader) {
	defer close(w.ended)
	for {
		line, err := out.ReadBytes('\n')
		if len(line) > 0 {
			w.take(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			return
		}
	}
}

func (w *wire) take(frame []byte) {
	m := decode(w.t, frame)
	w.mu.Lock()
	w.got = append(w.got, frame)
	close(w.changed)
	w.changed = make(chan struct{})
	waiting, answer := w.waiting[string(m.ID)], w.answers[m.Method]
	if m.Method == "" {
		delete(w.waiting, string(m.ID))
	}
	w.mu.Unlock()
	switch {
	case m.Method == "":
		if waiting == nil {
			w.t.Errorf("an answer that nobody waits for: %.300s", frame)
			return
		}
		waiting <- m
	case m.ID != nil:
		if answer == nil {
			w.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		} else if member := answer(); member != "" {
			w.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, member)
		}
	}
}

// answer says what the client answers to a request of the server: to the first one with the first member (`"result":{}`, say), and so
// on, and to all further ones with the last.
func (w *wire) answer(method string, members ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := 0
	w.answers[method] = func() string { // called by the reader alone
		member := members[min(next, len(members)-1)]
		next++
		return member
	}
}

// send writes a frame. That nobody takes it shows in what comes back.
func (w *wire) send(format string, args ...any) {
	frame := fmt.Appendf(nil, format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, frame)
	w.in.Write(append(frame[:len(frame):len(frame)], '\n'))
}

// begin sends a request under an id of its own and returns how to wait for its answer.
func (w *wire) begin(method, params string) (id string, answer func() message) {
	w.t.Helper()
	w.mu.Lock()
	w.next++
	id = fmt.Sprint(w.next)
	if w.next%2 == 0 {
		id = fmt.Sprintf("%q", "request-"+id) // ids are numbers or strings, and stay what they are
	}
	reply := make(chan message, 1)
	w.waiting[id] = reply
	w.mu.Unlock()
	if params == "" {
		w.send(`{"jsonrpc":"2.0","id":%s,"method":%q}`, id, method)
	} else {
		w.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	}
	return id, func() message {
		w.t.Helper()
		select {
		case m := <-reply:
			return m
		case <-w.ended:
			select {
			case m := <-reply:
				return m
			default:
			}
			w.t.Fatalf("%s %s: the connection was closed", method, params)
		case <-time.After(patience):
			w.t.Fatalf("%s %s: no answer", method, params)
		}
		panic("unreachable")
	}
}

// do sends a request and returns the outcome.
func (w *wire) do(method, params string) string {
	w.t.Helper()
	_, answer := w.begin(method, params)
	return answer().outcome()
}

// call calls a tool and returns the outcome.
func (w *wire) call(tool, arguments string) string {
	w.t.Helper()
	return w.do("tools/call", callOf(tool, arguments))
}

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// try sends a request and notes its outcome for comparison.
func (w *wire) try(method, params string) {
	w.t.Helper()
	w.note(method+" "+params, w.do(method, params))
}

// tryCall calls a tool and notes the outcome for comparison.
func (w *wire) tryCall(tool, arguments string) {
	w.t.Helper()
	w.try("tools/call", callOf(tool, arguments))
}

// note keeps something for comparison.
func (w *wire) note(what, outcome string) { w.notes = append(w.notes, what+"\n\t"+outcome) }

// open shakes hands, and returns the server's introduction.
func (w *wire) open(version, capabilities string) string {
	w.t.Helper()
	introduction := w.do("initialize", fmt.Sprintf(
		`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"wire","version":"1.0 \u00e9"}}`, version, capabilities))
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return introduction
}

// await waits for a frame of the other side, other than an answer, that is as wanted. Frames that came before are looked at too.
func (w *wire) await(what string, wanted func(message) bool) message {
	w.t.Helper()
	deadline := time.After(patience)
	for next := 0; ; {
		w.mu.Lock()
		frames, changed := w.got[next:len(w.got):len(w.got)], w.changed
		next = len(w.got)
		w.mu.Unlock()
		for _, frame := range frames {
			if m := decode(w.t, frame); m.Method != "" && wanted(m) {
				return m
			}
		}
		select {
		case <-changed:
		case <-w.ended:
			w.t.Fatalf("the connection was closed before %s", what)
		case <-deadline:
			w.t.Fatalf("%s did not come", what)
		}
	}
}

// awaitMethod waits for a request or a notification of that method.
func (w *wire) awaitMethod(method string) message {
	w.t.Helper()
	return w.await(method, func(m message) bool { return m.Method == method })
}

// received lists what came so far of a method.
func (w *wire) received(method string) []message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []message
	for _, frame := range w.got {
		if m := decode(w.t, frame); m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// close ends the session as a client does that wants no more. mcp-retry must exit at once, with status 0, and take the
// server with it.
func (w *wire) close() {
	w.t.Helper()
	w.in.Close()
	if w.route == direct {
		w.cmd.Process.Kill() // some servers take a minute to see that the client has gone
		<-w.ended
		return
	}
	select {
	case <-w.ended:
	case <-time.After(patience):
		w.t.Fatal("mcp-retry did not end after the client had closed its stdin")
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("mcp-retry: %v", err)
	}
	for _, l := range w.at.lives(w.t) {
		if running(l.pid) {
			w.t.Errorf("the server, process %d, outlives mcp-retry", l.pid)
		}
	}
}
