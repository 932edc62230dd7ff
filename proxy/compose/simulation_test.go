package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// TestEveryRequestGetsOneAnswer plays random histories: whatever servers and client do, a request has one answer in the end, or
// none if it was cancelled, and the session ends when it is told to.
func TestEveryRequestGetsOneAnswer(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 7)), nil) })
	}
}

// FuzzHistory is the same, but that servers and client now and then say one of some lines, whatever it is. A # in it is the id of the
// request that the server got last.
func FuzzHistory(f *testing.F) {
	for seed, said := range []string{
		`{"jsonrpc":"2.0","id":#,"result":{"tools":[{"name":"a","name":"b"},{"name":7},null],"nextCursor":1}}` + "\n" +
			`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"alpha__","arguments":[]}}`,
		`{"jsonrpc":"2.0","id":#,"result":{"protocolVersion":7,"capabilities":[],"serverInfo":null}}` + "\n" + `{"jsonrpc":"2.0","id":#,"result":null}`,
		`{"jsonrpc":"2.0","id":#,"result":{"resources":[{"uri":"x://y"},{"uri":"x://y"}],"resourceTemplates":[{"uriTemplate":"{+x}"}]}}` + "\n" +
			`{"jsonrpc":"2.0","id":0.5,"method":"resources/read","params":{"uri":"\ud800"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://z"}}`,
		`{"jsonrpc":"2.0","id":#,"result":{},"error":{}}` + "\n" + `[]` + "\n" + `{` + "\n" + `{"jsonrpc":"2.0","id":1,"id":2}`,
		`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}` + "\n" +
			`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add(uint64(seed), said)
	}
	f.Fuzz(func(t *testing.T, seed uint64, said string) {
		if len(said) > 5_000 {
			return
		}
		var lines [][]byte
		for reader := jsonrpc.NewReader(strings.NewReader(said), 0); ; {
			line, _, err := reader.Next()
			if err != nil {
				break
			}
			lines = append(lines, bytes.Clone(line))
		}
		history(t, rand.New(rand.NewPCG(seed, 8)), lines)
	})
}

var requests = [][2]string{
	{"ping", ""}, {"tools/list", ""}, {"prompts/list", ""}, {"resources/list", ""}, {"resources/templates/list", ""},
	{"tools/call", `{"name":"alpha__a"}`}, {"tools/call", `{"name":"beta__b","_meta":{"progressToken":1}}`}, {"tools/call", `{"name":"x"}`},
	{"prompts/get", `{"name":"beta__b"}`}, {"resources/read", `{"uri":"x://y"}`}, {"resources/subscribe", `{"uri":"x://z"}`},
	{"completion/complete", `{"ref":{"name":"gamma__x"}}`}, {"logging/setLevel", `{"level":"info"}`}, {"vendor/x", ""}, {"initialize", hello},
}

var results = []string{
	greeting(everyone), greeting(`{"tools":{}}`), `{}`, `{"tools":[{"name":"a"}],"nextCursor":"c"}`, `{"tools":[{"name":"a"}]}`,
	`{"resources":[{"uri":"x://y","name":"y"}]}`, `{"prompts":[{"name":"b"}]}`, `{"content":[]}`,
}

func history(t *testing.T, r *rand.Rand, said [][]byte) {
	w := newWorld(t, "defaults: {startup_timeout: 5, retry: {max_retries: 1}}", "alpha", "beta", "gamma")
	pending := map[string]bool{}
	refusals := 0                // answers to what is no message
	endless := map[string]bool{} // requests that a server may end without an answer
	next, moves := 0, 16
	if len(said) > 0 {
		moves = 20
	}
	ask := func(method, params string) {
		next++
		id := fmt.Sprint(next)
		if r.IntN(3) == 0 {
			id = `"` + id + `"`
		}
		pending[id] = true
		w.ask(id, method, params)
	}
	protocol := "2025-06-18"
	if r.IntN(3) == 0 {
		protocol = "2025-03-26" // the one that has batches
	}
	speaks := func(text string) string { return strings.Replace(text, "2025-06-18", protocol, 1) }
	took := func() {
		for i := 0; i < len(w.client); i++ {
			m := w.client[i]
			if strings.HasPrefix(m.raw, "[") {
				var all []message
				if err := json.Unmarshal([]byte(m.raw), &all); err != nil {
					t.Fatal(err)
				}
				w.client = append(w.client, all...)
				continue
			}
			if m.Method != "" {
				if m.ID != nil && r.IntN(2) == 0 {
					w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				}
				continue
			}
			if !pending[string(m.ID)] && !endless[string(m.ID)] {
				if refusals--; refusals < 0 || m.Error == nil {
					t.Fatalf("nobody waits for %s", m.raw)
				}
			}
			delete(pending, string(m.ID))
			delete(endless, string(m.ID))
		}
		w.client = nil
	}
	if r.IntN(5) > 0 {
		ask("initialize", speaks(hello))
	}
	for range 60 {
		i := r.IntN(len(w.servers))
		s := w.servers[i]
		switch r.IntN(moves) {
		case 0, 1, 2:
			q := requests[r.IntN(len(requests))]
			ask(q[0], speaks(q[1]))
		case 3:
			w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		case 4:
			for id := range pending {
				w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
				if w.board.greeting == nil || string(w.board.greeting.id) != id { // that of initialize counts for nothing
					took()
					delete(pending, id)
				}
				break
			}
		case 5:
			s.broken = r.IntN(2) == 0
			w.dies(i)
			s.got = nil
		case 6:
			w.serves(i, `{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, r.IntN(3))
		case 7:
			w.advance(time.Duration(r.IntN(20000)) * time.Millisecond)
		case 8:
			names := []string{"alpha", "beta", "gamma", "delta"}
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			config := "defaults: {startup_timeout: 5, retry: {max_retries: 1}}"
			if r.IntN(4) == 0 {
				config += "\ncompose: {separator: .}"
			}
			if err := w.rearrange(config, names[:1+r.IntN(len(names))]...); err != nil {
				t.Fatal(err)
			}
		case 9:
			if !w.board.takesBatches() {
				continue
			}
			var frames []string
			for range 1 + r.IntN(3) {
				next++
				q := requests[r.IntN(len(requests)-1)]
				params := q[1]
				if params == "" {
					params = "{}"
				}
				frames = append(frames, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, next, q[0], params))
				pending[fmt.Sprint(next)] = true
			}
			w.send("[%s]", strings.Join(frames, ","))
		case 16, 17:
			line := said[r.IntN(len(said))]
			if len(s.got) > 0 {
				line = bytes.ReplaceAll(line, []byte("#"), s.got[0].ID)
			}
			w.serves(i, "%s", line)
		case 18, 19:
			line := said[r.IntN(len(said))]
			var m jsonrpc.Message
			fault := jsonrpc.Parse(line, &m)
			id := string(m.ID.Of(line))
			switch {
			case fault != nil && w.board.takesBatches():
				continue // how many answers a batch wants is told above
			case fault != nil:
				refusals++
			case string(m.Method) == "notifications/cancelled" || pending[jsonrpc.CanonicalID([]byte(id))] || pending[id] || endless[id]:
				continue
			case string(m.Method) == "subscriptions/listen" && m.Kind == jsonrpc.Request:
				endless[id] = true
			case m.Kind == jsonrpc.Request:
				pending[id] = true
			}
			w.send("%s", line)
		default:
			if len(s.got) == 0 {
				continue
			}
			m := s.got[0]
			s.got = s.got[1:]
			if m.Method == "" || m.ID == nil {
				continue
			}
			if r.IntN(4) == 0 {
				w.serves(i, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, m.ID, []int{-32601, -32603, -32000}[r.IntN(3)])
			} else {
				w.serves(i, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, speaks(results[r.IntN(len(results))]))
			}
		}
		took()
	}
	if r.IntN(2) == 0 {
		w.step(0, engine.Event{Kind: engine.ClientEOF})
		w.advance(5 * time.Minute)
		took()
	} else {
		w.step(0, engine.Event{Kind: engine.Terminate})
		took()
	}
	if !w.ended {
		t.Error("the session did not end")
	}
	if len(pending) > 0 {
		t.Errorf("no answer: %v", pending)
	}
	if n := len(w.board.parts) + len(w.board.fans) + len(w.board.open); n > 0 {
		t.Errorf("%d entries are left over: %v %v %v", n, w.board.parts, w.board.fans, w.board.open)
	}
}
