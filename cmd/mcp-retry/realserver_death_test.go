package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// kill ends the present life of the server as the kernel does when memory is short, and waits until mcp-retry has seen it.
func (w *wire) kill() {
	w.t.Helper()
	lives := w.at.lives(w.t)
	p, err := os.FindProcess(lives[len(lives)-1].pid)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		w.t.Fatal(err)
	}
	w.log.await(w.t, "server_exit", len(lives))
}

// readBy lists what a life of the server has read, as "METHOD PARAMS".
func (l life) readBy(t *testing.T) []string {
	var all []string
	for _, f := range l.frames {
		if m := decode(t, f.frame); f.read && m.Method != "" {
			all = append(all, strings.TrimSpace(m.Method+" "+string(m.Params)))
		}
	}
	return all
}

// TestRealServerDiesBetweenCalls: the session goes on with the next call. The new life is greeted as the old one was, and
// told what else the client had agreed on with it, before it is asked for anything; the client sees none of that.
func TestRealServerDiesBetweenCalls(t *testing.T) {
	needServers(t)
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			w := dial(t, r, everythingServer, newPlace(t), nil)
			w.answer("roots/list", rootsOf("file:///one"))
			w.open(newest, able)
			w.do("tools/list", "{}")
			w.do("logging/setLevel", `{"level":"error"}`)
			w.do("resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
			w.do("resources/subscribe", `{"uri":"demo://resource/dynamic/text/2"}`)
			w.do("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
			for n := range 3 {
				if n > 0 {
					w.kill()
				}
				if got := w.call("get-sum", fmt.Sprintf(`{"a":%d,"b":1}`, n)); !strings.Contains(got, fmt.Sprintf("is %d.", n+1)) {
					t.Fatalf("life %d: %s", n+1, got)
				}
			}
			w.do("tools/list", "{}")
			w.close()

			lives := w.at.lives(t)
			if len(lives) != 3 {
				t.Fatalf("%d lives, want 3", len(lives))
			}
			hello := lives[0].readBy(t)[0]
			for _, l := range lives[1:] {
				read := strings.Join(l.readBy(t), "\n")
				want := strings.Join([]string{
					hello,
					"notifications/initialized",
					`logging/setLevel {"level":"error"}`,
					`resources/subscribe {"uri":"demo://resource/dynamic/text/2"}`,
				}, "\n")
				if !strings.HasPrefix(read, want+"\n") {
					t.Errorf("a new life read\n%s\nwant first\n%s", read, want)
				}
				greeted := false
				for _, f := range l.frames {
					m := decode(t, f.frame)
					if f.read && m.Method != "initialize" && !greeted {
						t.Errorf("%s was sent before initialize was answered", m.Method)
					}
					greeted = greeted || !f.read && m.Result != nil
				}
			}
		})
	}
}

// TestRealServerDiesDuringACall, before the call or after it but before the answer. What is safe to do again is, unseen. What is
// not is done once at most, and its caller is told what is known.
func TestRealServerDiesDuringACall(t *testing.T) {
	needServers(t)
	const edit = `{"path":"DIR/a.txt","edits":[{"oldText":"one","newText":"one and one"}]}`
	tests := []struct {
		server          realServer
		moment          string
		tool, arguments string
		want            string // in the outcome
		sends           int
		check           func(t *testing.T, at place)
	}{
		{filesystemServer, "in", "read_text_file", `{"path":"DIR/a.txt"}`, `"structuredContent":{"content":"one\n"}`, 2, nil},
		{filesystemServer, "out", "read_text_file", `{"path":"DIR/a.txt"}`, `"structuredContent":{"content":"one\n"}`, 2, nil},
		{filesystemServer, "out", "write_file", `{"path":"DIR/new.txt","content":"x"}`, `Successfully wrote`, 2, func(t *testing.T, at place) {
			if got := at.read(t, "new.txt"); got != "x" {
				t.Errorf("new.txt is %q", got)
			}
		}},
		{filesystemServer, "out", "edit_file", edit, `"mayHaveExecuted":"unknown"`, 1, func(t *testing.T, at place) {
			if got := at.read(t, "a.txt"); got != "one and one\n" {
				t.Errorf("a.txt is %q, want one edit", got)
			}
		}},
		{filesystemServer, "in", "edit_file", edit, `"mayHaveExecuted":"unknown"`, 1, func(t *testing.T, at place) {
			if got := at.read(t, "a.txt"); got != "one\n" {
				t.Errorf("a.txt is %q, want no edit", got)
			}
		}},
		{filesystemServer, "out", "move_file", `{"source":"DIR/a.txt","destination":"DIR/b.txt"}`, `"mayHaveExecuted":"unknown"`, 1, func(t *testing.T, at place) {
			if got := at.read(t, "b.txt"); got != "one\n" {
				t.Errorf("b.txt is %q", got)
			}
		}},
		{memoryServer, "out", "add_observations", `{"observations":[{"entityName":"ada","contents":["new"]}]}`, `"mayHaveExecuted":"unknown"`, 1, func(t *testing.T, at place) {
			if got := strings.Count(at.read(t, "memory.jsonl"), `"new"`); got != 1 {
				t.Errorf("%d observations, want 1", got)
			}
		}},
	}
	for _, test := range tests {
		for _, listed := range []bool{true, false} { // whether the client has asked what the tools are
			if !listed && test.moment == "in" {
				continue // the server may then die before it can tell mcp-retry what they are
			}
			t.Run(fmt.Sprintf("%s/%s/listed=%v", test.tool, test.moment, listed), func(t *testing.T) {
				t.Parallel()
				at := newPlace(t)
				at.write(t, "a.txt", "one\n")
				w := dial(t, throughWrap, test.server, at, nil)
				w.open(newest, "{}")
				if listed {
					w.do("tools/list", "{}")
				}
				if test.server.name == "memory" {
					w.call("create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":[]}]}`)
				}
				at.dieOnce(t, test.moment, test.tool)
				got := w.call(test.tool, strings.ReplaceAll(test.arguments, "DIR", at.dir))
				if !strings.Contains(got, test.want) {
					t.Errorf("outcome %s, want %s in it", got, test.want)
				}
				if got := w.do("ping", ""); got != "result {}" {
					t.Errorf("ping afterwards: %s", got)
				}
				w.close()
				if n := at.sends(t, test.tool); n != test.sends {
					t.Errorf("the call was sent %d times, want %d", n, test.sends)
				}
				if n := len(at.lives(t)); n != 2 {
					t.Errorf("%d lives, want 2", n)
				}
				if test.check != nil {
					test.check(t, at)
				}
			})
		}
	}
}

// TestRealServerDiesDuringAKeyedCall: a repeat under the same key never runs again what may have run.
func TestRealServerDiesDuringAKeyedCall(t *testing.T) {
	needServers(t)
	t.Parallel()
	at := newPlace(t)
	w := dial(t, throughWrap, memoryServer, at, nil)
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	w.call("create_entities", `{"entities":[{"name":"ada","entityType":"person","observations":[]}]}`)
	keyed := `{"name":"add_observations","arguments":{"observations":[{"entityName":"ada","contents":["new"]}]},"_meta":{"idempotencyKey":"k1"}}`
	at.dieOnce(t, "out", "add_observations")
	if got := w.do("tools/call", keyed); !strings.Contains(got, `"mayHaveExecuted":"unknown"`) {
		t.Errorf("first: %s", got)
	}
	if got := w.do("tools/call", keyed); !strings.HasPrefix(got, `error {"code":-31007`) {
		t.Errorf("repeat: %s, want -31007", got)
	}
	if n := at.sends(t, "add_observations"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
	other := strings.Replace(keyed, "k1", "k2", 1)
	first := w.do("tools/call", other)
	if again := w.do("tools/call", other); again != first || !strings.HasPrefix(first, "result ") {
		t.Errorf("under another key: %s, then %s", first, again)
	}
	if n := at.sends(t, "add_observations"); n != 2 {
		t.Errorf("sent %d times, want twice", n)
	}
	w.close()
}

// TestRealServerDiesDuringARequest that is no call: the client is told, once, and the session goes on.
func TestRealServerDiesDuringARequest(t *testing.T) {
	needServers(t)
	t.Parallel()
	at := newPlace(t)
	w := dial(t, throughWrap, memoryServer, at, nil)
	w.open(newest, "{}")
	w.do("tools/list", "{}")
	at.dieOnce(t, "in", "resources/read")
	got := w.do("resources/read", `{"uri":"memory://knowledge-graph"}`)
	var told struct {
		Code int
		Data struct{ Source, Kind string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "error ")), &told); err != nil || told.Code != -31004 || told.Data.Source != "mcp-retry" || told.Data.Kind != "exit" {
		t.Errorf("outcome %s, want -31004 of mcp-retry", got)
	}
	if got := w.do("resources/read", `{"uri":"memory://knowledge-graph"}`); !strings.HasPrefix(got, "result ") {
		t.Errorf("afterwards: %s", got)
	}
	w.close()
}

// TestRealServerDiesWhileItAsksTheClient: the client is told that nobody waits for its answer, the call is not sent again,
// and a late answer disturbs nobody.
func TestRealServerDiesWhileItAsksTheClient(t *testing.T) {
	needServers(t)
	t.Parallel()
	w := dial(t, throughWrap, everythingServer, newPlace(t), nil)
	w.answer("roots/list", rootsOf())
	w.answer("elicitation/create", "")
	w.open(newest, able)
	w.do("tools/list", "{}")
	_, answer := w.begin("tools/call", callOf("trigger-elicitation-request", "{}"))
	question := w.awaitMethod("elicitation/create")
	w.kill()
	if got := answer().outcome(); !strings.Contains(got, `"mayHaveExecuted":"unknown"`) {
		t.Errorf("outcome %s", got)
	}
	w.await("a cancellation of the question", func(m message) bool {
		return m.Method == "notifications/cancelled" && strings.Contains(string(m.Params), `"requestId":`+string(question.ID))
	})
	w.send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, question.ID)
	if got := w.call("echo", `{"message":"still here"}`); !strings.Contains(got, "still here") {
		t.Error(got)
	}
	w.close()
	if n := w.at.sends(t, "trigger-elicitation-request"); n != 1 {
		t.Errorf("sent %d times, want once", n)
	}
}

// TestRealServerRepeatsOnlyWhatARuleAllows: that a rule says retry is not enough for a tool whose effects are unsafe; it must say
// that they are known.
func TestRealServerRepeatsOnlyWhatARuleAllows(t *testing.T) {
	needServers(t)
	for _, test := range []struct {
		rule map[string]any
		want string
	}{
		{map[string]any{"name": "eager", "retry": true}, "one and one\n"},
		{map[string]any{"name": "eager", "retry": true, "retry_unsafe": true}, "one and one and one\n"},
	} {
		t.Run(fmt.Sprint(len(test.rule)), func(t *testing.T) {
			t.Parallel()
			at := newPlace(t)
			at.write(t, "a.txt", "one\n")
			w := dial(t, throughRun, filesystemServer, at, map[string]any{"policy": []any{test.rule}, "retry": map[string]any{"base_delay": 0.001}})
			w.open(newest, "{}")
			w.do("tools/list", "{}")
			at.dieOnce(t, "out", "edit_file")
			w.call("edit_file", fmt.Sprintf(`{"path":%q,"edits":[{"oldText":"one","newText":"one and one"}]}`, at.dir+"/a.txt"))
			w.close()
			if got := at.read(t, "a.txt"); got != test.want {
				t.Errorf("a.txt is %q, want %q", got, test.want)
			}
		})
	}
}
