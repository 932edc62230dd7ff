package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// world is an engine between a client and a server that the test plays, on a clock that the test moves.
type world struct {
	t      *testing.T
	e      *engine.Engine
	now    time.Time
	start  time.Time
	gen    uint64   // the life that was started last
	starts int      // lives so far
	stops  int      // StopServer actions
	client []string // frames to the client that the test has not taken
	server []string // frames to the server that the test has not taken
	tags   []int64  // of the frames in server

	lastTag int64 // of the frame that request took last

	logs   []engine.Record
	done   bool
	manual bool // the test says itself when a life is up
}

const tools = `{"tools":[
	{"name":"read","annotations":{"readOnlyHint":true}},
	{"name":"idem","annotations":{"idempotentHint":true}},
	{"name":"write","annotations":{"readOnlyHint":false,"destructiveHint":true}},
	{"name":"plain"}]}`

// newWorld starts an engine under a config (the settings of its only server, as YAML), up to a running server.
func newWorld(t *testing.T, settings string) *world {
	t.Helper()
	w := coldWorld(t, settings)
	w.manual = false
	w.up()
	return w
}

// coldWorld is newWorld with a server that is still starting, and whose lives are up when the test says so.
func coldWorld(t *testing.T, settings string) *world {
	t.Helper()
	w := &world{t: t, e: newEngine(t, settings, 1), start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), manual: true}
	w.now = w.start
	w.step(engine.Event{Kind: engine.Tick})
	return w
}

// newEngine makes an engine of the settings of a server.
func newEngine(t testing.TB, settings string, seed uint64) *engine.Engine {
	t.Helper()
	server, compiled, err := load(settings)
	if err != nil {
		t.Fatal(err)
	}
	return engine.New(engine.Config{Server: server, Policy: compiled, Seed: seed, LogLevel: engine.LevelDebug})
}

// load loads and compiles the settings of the only server of a config, as YAML.
func load(settings string) (*schema.Server, *policy.Policy, error) {
	text := "servers:\n  main:\n    command: fake\n"
	for _, line := range strings.Split(strings.TrimSpace(settings), "\n") {
		if line != "" {
			text += "    " + line + "\n"
		}
	}
	cfg, findings := schema.Load("test.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if findings.HasErrors() {
		return nil, nil, fmt.Errorf("the config is refused: %v\n%s", findings, text)
	}
	compiled, findings := policy.Compile(cfg.Servers[0])
	if findings.HasErrors() {
		return nil, nil, fmt.Errorf("the policy is refused: %v\n%s", findings, text)
	}
	return cfg.Servers[0], compiled, nil
}

// session is newWorld with the handshake made and the tools listed.
func session(t *testing.T, settings string) *world {
	t.Helper()
	w := newWorld(t, settings)
	w.handshake()
	return w
}

func (w *world) handshake() {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	w.reply(w.request("tools/list"), tools)
	w.client = nil
}

func (w *world) step(ev engine.Event) {
	w.take(w.e.Step(w.now, ev))
}

func (w *world) take(actions []engine.Action) {
	var ups []uint64
	for _, a := range actions {
		var frame []byte
		for _, piece := range a.Data {
			frame = append(frame, piece...)
		}
		switch a.Kind {
		case engine.ToClient:
			w.valid(frame)
			w.client = append(w.client, string(frame))
		case engine.ToServer:
			w.valid(frame)
			if a.Gen != w.gen {
				w.t.Errorf("a frame for life %d while %d is the last that was started: %s", a.Gen, w.gen, frame)
			}
			w.server = append(w.server, string(frame))
			w.tags = append(w.tags, a.Tag)
		case engine.StartServer:
			w.gen = a.Gen
			w.starts++
			ups = append(ups, a.Gen)
		case engine.StopServer:
			w.stops++
		case engine.Log:
			w.logs = append(w.logs, *a.Record)
		case engine.Finish:
			w.done = true
		}
	}
	for _, gen := range ups {
		if !w.manual {
			w.step(engine.Event{Kind: engine.ServerUp, Gen: gen})
		}
	}
}

func (w *world) valid(frame []byte) {
	w.t.Helper()
	if !json.Valid(frame) || strings.ContainsAny(string(frame), "\n\r") {
		w.t.Errorf("the engine wrote a frame that is none: %q", frame)
	}
}

// send plays a frame of the client.
func (w *world) send(frame string) {
	w.step(engine.Event{Kind: engine.FromClient, Frame: []byte(frame)})
}

// call plays a tools/call of the client; extra are further members of params.
func (w *world) call(id, tool, args string, extra ...string) {
	more := ""
	for _, m := range extra {
		more += "," + m
	}
	w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, args, more))
}

// say plays a frame of the server's present life.
func (w *world) say(frame string) {
	w.step(engine.Event{Kind: engine.FromServer, Gen: w.gen, Frame: []byte(frame)})
}

// request takes the next frame that went to the server, which must be of that method.
func (w *world) request(method string) map[string]any {
	w.t.Helper()
	for len(w.server) == 0 {
		w.t.Fatalf("nothing went to the server; want %s", method)
	}
	frame := w.server[0]
	w.lastTag = w.tags[len(w.tags)-len(w.server)]
	w.server = w.server[1:]
	m := decode(w.t, frame)
	if m["method"] != method {
		w.t.Fatalf("%s went to the server; want %s", frame, method)
	}
	return m
}

// attempt takes the next frame that went to the server, which must be a tools/call.
func (w *world) attempt() map[string]any {
	w.t.Helper()
	return w.request("tools/call")
}

// quiet fails the test if something went to the server.
func (w *world) quiet() {
	w.t.Helper()
	if len(w.server) > 0 {
		w.t.Fatalf("this went to the server, and nothing should have: %s", w.server)
	}
}

// silent fails the test if something went to the client.
func (w *world) silent() {
	w.t.Helper()
	if len(w.client) > 0 {
		w.t.Fatalf("this went to the client, and nothing should have: %s", w.client)
	}
}

// reply answers a request that went to the server with a result.
func (w *world) reply(request map[string]any, result string) {
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, request["id"], strings.ReplaceAll(result, "\n", " ")))
}

// text answers a call with a result of that text.
func (w *world) text(request map[string]any, text string) {
	w.reply(request, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, text))
}

// refuse answers a request that went to the server with an error.
func (w *world) refuse(request map[string]any, code int) {
	w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"error":{"code":%d,"message":"boom"}}`, request["id"], code))
}

// advance moves the clock, stopping wherever the engine wants to be woken.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.now.Add(d)
	for n := 0; ; n++ {
		at, ok := w.e.NextWake()
		if !ok || at.After(end) {
			break
		}
		if n > 10_000 {
			w.t.Fatal("the engine wakes for ever")
		}
		if at.After(w.now) {
			w.now = at
		}
		w.step(engine.Event{Kind: engine.Tick})
	}
	w.now = end
	w.step(engine.Event{Kind: engine.Tick})
}

// up plays that the server's present life runs.
func (w *world) up() { w.step(engine.Event{Kind: engine.ServerUp, Gen: w.gen}) }

// cancel plays that the client takes a request back.
func (w *world) cancel(id string) {
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
}

// wantToClient takes the next frame that went to the client, which must be this one.
func (w *world) wantToClient(frame string) {
	w.t.Helper()
	if len(w.client) == 0 || w.client[0] != frame {
		w.t.Fatalf("this went to the client: %q; want %s first", w.client, frame)
	}
	w.client = w.client[1:]
}

// wantToServer takes the next frame that went to the server, which must be this one.
func (w *world) wantToServer(frame string) {
	w.t.Helper()
	if len(w.server) == 0 || w.server[0] != frame {
		w.t.Fatalf("this went to the server: %q; want %s first", w.server, frame)
	}
	w.server = w.server[1:]
}

// logged counts the log records of that event.
func (w *world) logged(event string) int {
	n := 0
	for _, r := range w.logs {
		if r.Event == event {
			n++
		}
	}
	return n
}

// die plays the end of the server's present life.
func (w *world) die() {
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Detail: "exit status 3"})
}

// revive takes what a new life of the server is told, and answers it.
func (w *world) revive() {
	w.t.Helper()
	w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`)
	w.request("notifications/initialized")
	w.reply(w.request("tools/list"), tools)
}

// answer takes the next frame that went to the client, which must answer that id.
func (w *world) answer(id string) map[string]any {
	w.t.Helper()
	if len(w.client) == 0 {
		w.t.Fatalf("nothing went to the client; want an answer to %s", id)
	}
	frame := w.client[0]
	w.client = w.client[1:]
	m := decode(w.t, frame)
	raw, _ := json.Marshal(m["id"])
	if string(raw) != id || m["method"] != nil {
		w.t.Fatalf("%s went to the client; want an answer to %s", frame, id)
	}
	return m
}

// wantText takes the answer to id, which must be a result of that text.
func (w *world) wantText(id, text string) {
	w.t.Helper()
	m := w.answer(id)
	result, _ := m["result"].(map[string]any)
	content, _ := result["content"].([]any)
	if len(content) == 0 || content[0].(map[string]any)["text"] != text {
		w.t.Fatalf("the answer to %s is %v; want the text %q", id, m, text)
	}
}

// wantError takes the answer to id, which must be an error of that code, and returns its data.
func (w *world) wantError(id string, code int) map[string]any {
	w.t.Helper()
	m := w.answer(id)
	failure, _ := m["error"].(map[string]any)
	if got, _ := failure["code"].(json.Number).Int64(); got != int64(code) {
		w.t.Fatalf("the answer to %s is %v; want an error %d", id, m, code)
	}
	data, _ := failure["data"].(map[string]any)
	return data
}

func decode(t *testing.T, frame string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(frame))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%q: %v", frame, err)
	}
	return m
}

func idOf(request map[string]any) string { return request["id"].(json.Number).String() }

func replace(format, with string) string { return fmt.Sprintf(format, with) }
