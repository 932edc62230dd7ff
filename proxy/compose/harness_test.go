package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// A world is a board with real engines, whose servers and client are played by the test, on a clock of its own.
type world struct {
	t       *testing.T
	board   *Board
	now     time.Time
	servers []*player
	client  []message // what the client got and the test has not looked at
	logs    []engine.Record
	ended   bool
}

// player is a server: what it got and the test has not looked at, and how it is.
type player struct {
	name   string
	gen    uint64
	broken bool // it cannot be started
	starts int
	got    []message
}

// message is a frame as a test looks at it.
type message struct {
	raw    string
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    struct{ Kind, Server string }
	}
}

// newWorld composes servers of these names; config is the rest of the file.
func newWorld(t *testing.T, config string, names ...string) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c := configOf(t, config, names...)
	for _, name := range names {
		w.servers = append(w.servers, &player{name: name})
	}
	var err error
	if w.board, err = New(c); err != nil {
		t.Fatal(err)
	}
	w.step(0, engine.Event{Kind: engine.Tick})
	return w
}

// configOf is what a board of servers of these names is made of; config is the rest of the file.
func configOf(t *testing.T, config string, names ...string) Config {
	t.Helper()
	var source strings.Builder
	source.WriteString(config + "\nservers:\n")
	for _, name := range names {
		fmt.Fprintf(&source, "  %s: {command: x}\n", name)
	}
	rules := compiled(t, source.String())
	c := Config{Version: "1", Separator: rules.config.Separator}
	for i, s := range rules.config.Servers {
		c.Servers = append(c.Servers, Server{Config: s, Engine: engine.New(engine.Config{Server: s, Policy: rules.policies[i], Seed: 1})})
	}
	return c
}

// ruleSet is a config file and the policies of its servers.
type ruleSet struct {
	config   *schema.Config
	policies []*policy.Policy
}

// ruleSets are those that were compiled, by their text: a history goes back and forth between few.
var ruleSets sync.Map

// compiled loads and compiles a config.
func compiled(t *testing.T, source string) *ruleSet {
	t.Helper()
	if known, ok := ruleSets.Load(source); ok {
		return known.(*ruleSet)
	}
	loaded, findings := schema.Load("test.yaml", []byte(source), nil)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	rules := &ruleSet{config: loaded}
	for _, s := range loaded.Servers {
		p, findings := policy.Compile(s)
		if p == nil {
			t.Fatal(findings)
		}
		rules.policies = append(rules.policies, p)
	}
	ruleSets.Store(source, rules)
	return rules
}

// rearrange puts servers of these names behind the endpoint; config is the rest of the file.
func (w *world) rearrange(config string, names ...string) error {
	w.t.Helper()
	for _, name := range names {
		if _, here := w.board.Index(name); !here {
			w.servers = append(w.servers, &player{name: name})
		}
	}
	actions, err := w.board.Rearrange(w.now, configOf(w.t, config, names...))
	if err != nil {
		w.servers = w.servers[:len(w.board.members)]
	}
	w.perform(actions)
	return err
}

// step has the board take in an event, and plays the shell.
func (w *world) step(server int, ev engine.Event) {
	w.t.Helper()
	w.perform(w.board.Step(w.now, server, ev))
}

// perform does what the board wants done.
func (w *world) perform(actions []Action) {
	w.t.Helper()
	type later struct {
		server int
		event  engine.Event
	}
	var next []later
	for _, a := range actions {
		switch a.Kind {
		case engine.ToClient:
			w.client = append(w.client, parse(w.t, a.Data))
		case engine.ToServer:
			s := w.servers[a.Server]
			if a.Gen != s.gen {
				w.t.Errorf("a frame for life %d of %s, which is in life %d", a.Gen, s.name, s.gen)
			}
			s.got = append(s.got, parse(w.t, a.Data))
		case engine.StartServer:
			s := w.servers[a.Server]
			s.gen = a.Gen
			s.starts++
			if s.broken {
				next = append(next, later{a.Server, engine.Event{Kind: engine.ServerDown, Gen: a.Gen, Spawn: true, Detail: "not found"}})
			} else {
				next = append(next, later{a.Server, engine.Event{Kind: engine.ServerUp, Gen: a.Gen}})
			}
		case engine.StopServer:
			next = append(next, later{a.Server, engine.Event{Kind: engine.ServerDown, Gen: a.Gen, Detail: "stopped"}})
		case engine.Log:
			w.logs = append(w.logs, *a.Record)
		case engine.Finish:
			w.ended = true
		}
	}
	for _, l := range next {
		w.step(l.server, l.event)
	}
}

func parse(t *testing.T, pieces [][]byte) (m message) {
	t.Helper()
	raw := bytes.Join(pieces, nil)
	if raw[0] == '[' { // a batch, see [world.batch]
		return message{raw: string(raw)}
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	m.raw = string(raw)
	return m
}

// advance lets time pass, and wakes the board when it wants to be woken.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); ; {
		at, ok := w.board.NextWake()
		if !ok || at.After(end) {
			w.now = end
			return
		}
		w.now = at
		w.step(0, engine.Event{Kind: engine.Tick})
		if again, ok := w.board.NextWake(); ok && !again.After(at) {
			w.t.Fatalf("woken at %s, it wants to be woken at %s", at, again)
		}
	}
}

// send has the client send a frame.
func (w *world) send(format string, args ...any) {
	w.t.Helper()
	w.step(0, engine.Event{Kind: engine.FromClient, Frame: fmt.Appendf(nil, format, args...)})
}

// ask has the client send a request; params may be "".
func (w *world) ask(id, method, params string) {
	w.t.Helper()
	if params != "" {
		params = `,"params":` + params
	}
	w.send(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params)
}

// serves has a server send a frame.
func (w *world) serves(server int, format string, args ...any) {
	w.t.Helper()
	w.step(server, engine.Event{Kind: engine.FromServer, Gen: w.servers[server].gen, Frame: fmt.Appendf(nil, format, args...)})
}

// dies ends the process of a server.
func (w *world) dies(server int) {
	w.t.Helper()
	w.step(server, engine.Event{Kind: engine.ServerDown, Gen: w.servers[server].gen, Detail: "exit status 1"})
}

// take returns the first message in a list that has the method, or the id if there is no method, and takes it out.
func take(list *[]message, method, id string) (m message, ok bool) {
	i := slices.IndexFunc(*list, func(m message) bool { return m.Method == method && (id == "" || string(m.ID) == id) })
	if i < 0 {
		return m, false
	}
	m = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return m, true
}

// gets returns the next message of a method that a server got.
func (w *world) gets(server int, method string) message {
	w.t.Helper()
	m, ok := take(&w.servers[server].got, method, "")
	if !ok {
		w.t.Fatalf("%s got no %s, but %v", w.servers[server].name, method, methods(w.servers[server].got))
	}
	return m
}

// answers has a server answer the next request of a method that it got.
func (w *world) answers(server int, method, result string) message {
	w.t.Helper()
	m := w.gets(server, method)
	w.serves(server, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	return m
}

// refuses is answers with an error.
func (w *world) refuses(server int, method string, code int) message {
	w.t.Helper()
	m := w.gets(server, method)
	w.serves(server, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, m.ID, code)
	return m
}

// answered returns the response that the client got under an id.
func (w *world) answered(id string) message {
	w.t.Helper()
	m, ok := take(&w.client, "", id)
	if !ok {
		w.t.Fatalf("no response under %s: %v", id, w.client)
	}
	return m
}

// told returns the next request or notification of a method that the client got.
func (w *world) told(method string) message {
	w.t.Helper()
	m, ok := take(&w.client, method, "")
	if !ok {
		w.t.Fatalf("the client got no %s, but %v", method, w.client)
	}
	return m
}

// quiet fails if the client has got something that the test has not looked at.
func (w *world) quiet() {
	w.t.Helper()
	if len(w.client) > 0 {
		w.t.Errorf("the client got %s", w.client[0].raw)
	}
}

// idle fails if a server has got something that the test has not looked at.
func (w *world) idle(server int) {
	w.t.Helper()
	if got := w.servers[server].got; len(got) > 0 {
		w.t.Errorf("%s got %s", w.servers[server].name, got[0].raw)
	}
}

func methods(list []message) (all []string) {
	for _, m := range list {
		all = append(all, m.Method+string(m.ID))
	}
	return all
}

const (
	hello    = `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
	everyone = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{}}`
)

// greeting is a server's answer to initialize.
func greeting(capabilities string) string {
	return `{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `,"serverInfo":{"name":"s","version":"1"}}`
}

// greeted makes the handshake with servers that have every capability; the broken ones have failed already.
func (w *world) greeted() {
	w.t.Helper()
	w.ask("0", "initialize", hello)
	for i, s := range w.servers {
		if !s.broken {
			w.answers(i, "initialize", greeting(everyone))
		}
	}
	if m := w.answered("0"); m.Result == nil {
		w.t.Fatalf("initialize: %s", m.raw)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, s := range w.servers {
		if !s.broken {
			w.gets(i, "notifications/initialized")
		}
	}
}

// knows has the client list the tools, of which each server that is there has those given. It returns the names listed.
func (w *world) knows(tools ...string) (names string) {
	w.t.Helper()
	w.ask(`"list"`, "tools/list", "")
	for i, s := range w.servers {
		if !s.broken {
			w.answers(i, "tools/list", `{"tools":[`+tools[i]+`]}`)
		}
	}
	return w.listed(`"list"`)
}

// listed returns the names of the tools in the answer to a tools/list.
func (w *world) listed(id string) string {
	w.t.Helper()
	var r struct{ Tools []struct{ Name string } }
	m := w.answered(id)
	if json.Unmarshal(m.Result, &r) != nil {
		w.t.Fatalf("no list: %s", m.raw)
	}
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}
