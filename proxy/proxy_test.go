//go:build unix

package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/flaky"
	"github.com/bentabol/mcp-retry/schema"
)

// load returns the only server of a config and its policy. Its command is the test binary, playing a script.
func load(t testing.TB, config string, script flaky.Script) (*schema.Server, *policy.Policy) {
	t.Helper()
	c, findings := schema.Load("test.yaml", []byte(config), nil)
	if c == nil || len(c.Servers) != 1 {
		t.Fatalf("loading: %v", findings)
	}
	server := c.Servers[0]
	server.Command = os.Args[0]
	server.Env = map[string]string{flaky.EnvVar: script.String()}
	p, findings := policy.Compile(server)
	if p == nil {
		t.Fatalf("compiling: %v", findings)
	}
	return server, p
}

// A client drives a proxy over pipes.
type client struct {
	t      testing.TB
	in     *os.File
	out    *os.File
	lines  chan string
	served chan error
	cancel context.CancelFunc
	log    *syncBuffer
}

func newClient(t *testing.T, config string, script flaky.Script) *client {
	t.Helper()
	server, compiled := load(t, config, script)
	log := &syncBuffer{}
	p, err := New(Options{Server: server, Policy: compiled, Stderr: log, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, p)
	c.log = log
	return c
}

// connect begins a session of a proxy.
func connect(t *testing.T, p *Proxy) *client {
	t.Helper()
	c := &client{t: t, lines: make(chan string, 1000), served: make(chan error, 1)}
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	c.in, c.out = inW, outR
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	t.Cleanup(cancel)
	go func() {
		c.served <- p.Serve(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(c.lines)
		r := bufio.NewReaderSize(outR, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return c
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// answer returns the next response; notifications are passed over.
func (c *client) answer(t *testing.T) (m struct {
	ID     json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}) {
	t.Helper()
	for {
		line := wait(t, c.lines, "an answer")
		if line == "" {
			t.Fatal("no more output")
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %.200q", err, line)
		}
		if m.ID != nil {
			return m
		}
	}
}

func (c *client) initialize(t *testing.T) {
	t.Helper()
	c.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if m := c.answer(t); string(m.ID) != `"init"` || m.Result == nil {
		t.Fatalf("initialize: %s %v", m.ID, m.Error)
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

const oneServer = "servers: {flaky: {command: placeholder}}\n"

func echoing() flaky.Script { return flaky.Script{Tools: []flaky.Tool{{Name: "echo"}}} }

func TestNewRefusesWhatCannotWork(t *testing.T) {
	server, compiled := load(t, oneServer, echoing())
	for name, o := range map[string]Options{
		"no server":                {Policy: compiled},
		"one server, and several":  {Server: server, Policy: compiled, Servers: []Member{{server, compiled}}},
		"several, one of them nil": {Servers: []Member{{server, compiled}, {}}},
		"two of one name":          {Servers: []Member{{server, compiled}, {server, compiled}}},
		"unknown log format":       {Server: server, Policy: compiled, LogFormat: "xml"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestServeAnswersAndEndsWithTheClient(t *testing.T) {
	c := newClient(t, oneServer, echoing())
	c.initialize(t)
	c.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
	if m := c.answer(t); string(m.ID) != "7" || m.Result == nil {
		t.Fatalf("got %s %v", m.ID, m.Error)
	}
	c.in.Close()
	if err := wait(t, c.served, "Serve"); err != nil {
		t.Error(err)
	}
	var events []string
	for _, m := range lines(t, c.log.String()) {
		events = append(events, m["msg"].(string))
		if m["msg"] == "tool_call_end" && (m["server"] != "flaky" || m["tool"] != "echo" || m["request_id"] != 7.0 || m["status"] != "success" || m["attempt"] != 1.0) {
			t.Errorf("logged: %v", m)
		}
	}
	if got, want := strings.Join(events, " "), "proxy_start server_start tool_call_end server_exit"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestServeReturnsTheContextsErrorAndAnswersWhatIsPending(t *testing.T) {
	c := newClient(t, oneServer, flaky.Script{Tools: []flaky.Tool{{Name: "hang", Plan: flaky.Plan{Outcomes: []flaky.Outcome{{Hang: true}}}}}})
	c.initialize(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang"}}`)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.answer(t)
	c.cancel()
	if m := c.answer(t); string(m.ID) != "1" || m.Error == nil || m.Error.Code != -31010 {
		t.Errorf("got %s %+v", m.ID, m.Error)
	}
	if err := wait(t, c.served, "Serve"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestB55AnswersInFlightArriveAfterTheEndOfInput sends everything at once, and closes.
func TestB55AnswersInFlightArriveAfterTheEndOfInput(t *testing.T) {
	tool := flaky.Tool{Name: "slow", Plan: flaky.Plan{Then: &flaky.Outcome{Sleep: 50}}}
	c := newClient(t, oneServer, flaky.Script{Tools: []flaky.Tool{tool}})
	c.initialize(t)
	const n = 20
	for i := range n {
		c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"n":%d}}}`, i, i)
	}
	c.in.Close()
	for range n {
		if m := c.answer(t); m.Error != nil {
			t.Errorf("%s: %v", m.ID, m.Error)
		}
	}
	if err := wait(t, c.served, "Serve"); err != nil {
		t.Error(err)
	}
}

func TestCallsDoNotFinishForAClientThatHasDied(t *testing.T) {
	tool := flaky.Tool{Name: "hung", Plan: flaky.Plan{Then: &flaky.Outcome{Hang: true}}}
	c := newClient(t, "servers: {flaky: {command: placeholder, call_timeout: 1h, total_timeout: 1h, max_call_time: 1h}}\n",
		flaky.Script{Tools: []flaky.Tool{tool}})
	c.initialize(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hung"}}`)
	c.in.Close()
	c.out.Close()
	wait(t, c.served, "Serve")
}

// TestMemoryOfALargeMessageIsReturned passes 50 MiB in both directions.
func TestMemoryOfALargeMessageIsReturned(t *testing.T) {
	if testing.Short() {
		t.Skip("50 MiB")
	}
	server := playing("echo")
	b := runServer(t, server)
	b.engine.quiet.Store(true)
	const size = 50 << 20
	go io.Copy(b.in, io.MultiReader(strings.NewReader(`"`), io.LimitReader(xs{}, size), strings.NewReader("\"\n")))
	if n, err := io.Copy(io.Discard, io.LimitReader(b.out, size+3)); n != size+3 || err != nil {
		t.Fatal(n, err)
	}
	// The frames are garbage once the reader waits for the next: what keeps one alive keeps it for ever.
	var m runtime.MemStats
	for deadline := time.Now().Add(patience); ; {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc < size/2 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d MiB are in use", m.HeapAlloc>>20)
		}
	}
}

// xs reads as the letter x for ever.
type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
