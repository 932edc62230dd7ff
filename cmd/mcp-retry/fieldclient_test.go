package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// until waits until something is found among all that has come. The lock is held while it is looked for.
func (f *field) until(what string, found func() bool) {
	f.t.Helper()
	deadline := time.NewTimer(fieldPatience)
	defer deadline.Stop()
	for {
		f.mu.Lock()
		ok, changed := found(), f.changed
		f.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			f.t.Fatalf("%s did not come", what)
		}
	}
}

// frame waits for a frame that was not taken yet, and takes it.
func (f *field) frame(what string, is func(*fieldFrame) bool) *fieldFrame {
	f.t.Helper()
	var found *fieldFrame
	f.until(what, func() bool {
		for _, frame := range f.frames {
			if !frame.taken && is(frame) {
				frame.taken, found = true, frame
				return true
			}
		}
		return false
	})
	return found
}

// answer waits for the response with an id, which is raw JSON.
func (f *field) answer(id string) *fieldFrame {
	f.t.Helper()
	return f.frame("an answer to "+id, func(r *fieldFrame) bool { return r.Method == "" && string(r.ID) == id })
}

// success waits for the response with an id, which must be a result that reports no error.
func (f *field) success(id string) *fieldFrame {
	f.t.Helper()
	r := f.answer(id)
	if r.Result == nil || bytes.Contains(r.Result, []byte(`"isError":true`)) {
		f.t.Errorf("the answer to %s is %.300s, not a success", id, r.line)
	}
	return r
}

// failure waits for the response with an id, which must be an error with this code.
func (f *field) failure(id string, code int) *fieldFrame {
	f.t.Helper()
	r := f.answer(id)
	if r.Error == nil || r.Error.Code != code {
		f.t.Fatalf("the answer to %s is %.300s, not error %d", id, r.line, code)
	}
	return r
}

// message waits for a request or a notification of the server.
func (f *field) message(method string) *fieldFrame {
	f.t.Helper()
	return f.frame(method, func(r *fieldFrame) bool { return r.Method == method })
}

// pass lets a call go on that waits at a [gate].
func (f *field) pass(question *fieldFrame) {
	f.t.Helper()
	f.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{}}`)
}

// untaken are the frames that nobody waited for.
func (f *field) untaken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, frame := range f.frames {
		if !frame.taken {
			lines = append(lines, frame.line)
		}
	}
	return lines
}

// nothingElse fails the test if a frame has come that nobody waited for.
func (f *field) nothingElse() {
	f.t.Helper()
	for _, line := range f.untaken() {
		f.t.Errorf("the client got %.300s", line)
	}
}

// record waits for a record of the log, among all that were ever written.
func (f *field) record(what string, is func(fieldRecord) bool) fieldRecord {
	f.t.Helper()
	var found fieldRecord
	f.until("a log record of "+what, func() bool {
		i := slices.IndexFunc(f.records, is)
		if i >= 0 {
			found = f.records[i]
		}
		return i >= 0
	})
	return found
}

// logged waits for a record with a message.
func (f *field) logged(msg string) fieldRecord {
	f.t.Helper()
	return f.record(msg, func(r fieldRecord) bool { return r.Msg == msg })
}

// send sends the product a line.
func (f *field) send(line string) {
	f.t.Helper()
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(strings.TrimPrefix(line, "\uFEFF")), &m) == nil && m.ID != nil && m.Method != "" {
		f.mu.Lock()
		f.asked[string(m.ID)]++
		f.mu.Unlock()
	}
	f.stdin.SetWriteDeadline(time.Now().Add(fieldPatience)) // where pipes know none, the deadline of the test will do
	if _, err := io.WriteString(f.stdin, line+"\n"); err != nil {
		f.t.Fatalf("mcp-retry does not take %.200q: %v", line, err)
	}
}

// request sends a request; id and params are raw JSON.
func (f *field) request(id, method, params string) {
	f.t.Helper()
	f.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)
}

// notify sends a notification.
func (f *field) notify(method, params string) {
	f.t.Helper()
	f.send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// call calls a tool. The arguments are raw JSON, and may be followed by further params: `{"a":1},"_meta":{}`.
func (f *field) call(id, tool, arguments string) {
	f.t.Helper()
	f.request(id, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
}

// cancel takes a request back.
func (f *field) cancel(id string) {
	f.t.Helper()
	f.notify("notifications/cancelled", `{"requestId":`+id+`,"reason":"changed my mind"}`)
}

const fieldHello = `{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"sampling":{},"elicitation":{}},` +
	`"clientInfo":{"name":"field","version":"1"}}`

// greet makes the handshake, and returns the server's answer.
func (f *field) greet() *fieldFrame {
	f.t.Helper()
	f.request(`"hello"`, "initialize", fieldHello)
	hello := f.success(`"hello"`)
	f.notify("notifications/initialized", `{}`)
	return hello
}

// open makes the handshake and lists the tools, as clients do.
func (f *field) open() {
	f.t.Helper()
	f.greet()
	f.request(`"tools"`, "tools/list", `{}`)
	f.success(`"tools"`)
}

// ping goes to the server and back. All that the server had written before has been dealt with then.
func (f *field) ping() {
	f.t.Helper()
	f.pings++
	id := fmt.Sprintf(`"ping %d"`, f.pings)
	f.request(id, "ping", `{}`)
	f.success(id)
}

// close closes the product's stdin and returns its exit status.
func (f *field) close() int {
	f.t.Helper()
	f.stdin.Close()
	return f.exit()
}

// exit waits for the product's exit and returns its status.
func (f *field) exit() int {
	f.t.Helper()
	select {
	case <-f.exited:
		return f.cmd.ProcessState.ExitCode()
	case <-time.After(fieldPatience):
		f.t.Fatal("mcp-retry does not exit")
		return 0
	}
}

func (f *field) readLedger() flaky.Ledger {
	ledger, err := flaky.ReadLedger(f.ledger)
	if err != nil {
		f.t.Errorf("reading the ledger: %v", err)
	}
	return ledger
}

// fieldPoll is the time between looks at what cannot be waited for: files and foreign processes.
const fieldPoll = 5 * time.Millisecond

// written waits until the ledger shows something, and returns it as it is then.
func (f *field) written(what string, shows func(flaky.Ledger) bool) flaky.Ledger {
	f.t.Helper()
	for deadline := time.Now().Add(fieldPatience); ; time.Sleep(fieldPoll) {
		ledger := f.readLedger()
		if shows(ledger) {
			return ledger
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the ledger never showed %s", what)
		}
	}
}

// arrived waits until so many calls of a tool have reached the server.
func (f *field) arrived(tool string, n int) flaky.Ledger {
	f.t.Helper()
	return f.written(fmt.Sprintf("%d calls of %s", n, tool), func(l flaky.Ledger) bool { return l.Attempts(tool) >= n })
}

// attempts checks how many calls of a tool have reached the server.
func (f *field) attempts(tool string, want int) {
	f.t.Helper()
	if got := f.readLedger().Attempts(tool); got != want {
		f.t.Errorf("%d calls of %s reached the server, want %d", got, tool, want)
	}
}

// serverID is the id under which the n-th call of a tool, from 0, reached the server.
func (f *field) serverID(tool string, n int) string {
	f.t.Helper()
	var ids []string
	for _, entry := range f.arrived(tool, n+1).Events(flaky.EventRequest) {
		if entry.Of == "tool "+tool {
			ids = append(ids, string(entry.ID))
		}
	}
	return ids[n]
}

// cancelled waits until the server was told that a request of its is not wanted any more.
func (f *field) cancelled(serverID string) {
	f.t.Helper()
	f.written("a cancellation of "+serverID, func(l flaky.Ledger) bool { return cancelsOf(l, serverID) > 0 })
}

// cancelsOf is how often the server was told that a request of its is not wanted any more.
func cancelsOf(l flaky.Ledger, serverID string) int {
	n := 0
	for _, line := range l.Received("notifications/cancelled") {
		var m struct {
			Params struct{ RequestID json.RawMessage }
		}
		if json.Unmarshal([]byte(line), &m) == nil && string(m.Params.RequestID) == serverID {
			n++
		}
	}
	return n
}

// text is the text of a tool's result.
func (r *fieldFrame) text() string {
	var result struct{ Content []struct{ Text string } }
	if json.Unmarshal(r.Result, &result) != nil || len(result.Content) == 0 {
		return ""
	}
	return result.Content[0].Text
}

// execution is the number of the execution that an ordinary result of the flaky server tells; 0 if it is not one.
func (r *fieldFrame) execution() int {
	var report struct{ Execution int }
	json.Unmarshal([]byte(r.text()), &report)
	return report.Execution
}
