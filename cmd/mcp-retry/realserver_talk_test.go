package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// able are the capabilities of a client that can do whatever server-everything asks for.
const able = `{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},` +
	`"tasks":{"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`

func rootsOf(uris ...string) string {
	var roots []string
	for _, uri := range uris {
		roots = append(roots, fmt.Sprintf(`{"uri":%q,"name":"r \u00e9"}`, uri))
	}
	return `"result":{"roots":[` + strings.Join(roots, " , ") + `]}`
}

// awaitRoots waits until the server says for the nth time that it has got the client's roots.
func awaitRoots(w *wire, n int) {
	w.t.Helper()
	found := 0
	w.await(fmt.Sprintf("the server's note %d of new roots", n), func(m message) bool {
		if m.Method == "notifications/message" && strings.Contains(string(m.Params), "Roots updated") {
			found++
		}
		return found == n
	})
}

// TestRealServerAsksForRoots: the server asks when the session begins and when the client says that its roots have changed.
func TestRealServerAsksForRoots(t *testing.T) {
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.answer("roots/list", rootsOf("file:///one"), rootsOf("file:///one", "file:///two%20three"))
		w.note("initialize", w.open(newest, able))
		w.try("tools/list", "{}")
		awaitRoots(w, 1)
		w.tryCall("get-roots-list", "{}")
		w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		awaitRoots(w, 2)
		w.tryCall("get-roots-list", "{}")
	})
}

// TestRealServerGetsItsDirectoriesFromRoots: server-filesystem takes the client's roots for its directories.
func TestRealServerGetsItsDirectoriesFromRoots(t *testing.T) {
	sameOnAllRoutes(t, filesystemServer, nil, func(w *wire) {
		w.at.write(w.t, "inner/a.txt", "a")
		w.answer("roots/list", rootsOf("file://"+w.at.dir+"/inner"))
		w.open(newest, `{"roots":{}}`)
		w.do("tools/list", "{}")
		w.awaitMethod("roots/list")
		for strings.Contains(w.call("list_allowed_directories", "{}"), w.at.dir+`"`) {
			// the server takes them in its own time, and says so nowhere
		}
		w.tryCall("list_allowed_directories", "{}")
		w.tryCall("list_directory", fmt.Sprintf(`{"path":%q}`, w.at.dir))
	})
}

// TestRealServerAsksForSampling, with answers and a refusal.
func TestRealServerAsksForSampling(t *testing.T) {
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.answer("roots/list", rootsOf())
		w.answer("sampling/createMessage",
			`"result":{"role":"assistant","content":{"type":"text","text":"42 \ud83d\ude00"},"model":"m","stopReason":"endTurn"}`,
			`"error":{"code":-1,"message":"User rejected sampling request","data":{"x":[1.0]}}`,
			`"result":{"nonsense":true}`)
		w.open(newest, able)
		w.try("tools/list", "{}")
		for range 3 {
			w.tryCall("trigger-sampling-request", `{"prompt":"what is it?","maxTokens":7}`)
		}
		for _, m := range w.received("sampling/createMessage") {
			w.note(m.Method, string(m.Params))
		}
	})
}

// TestRealServerAsksForInput, with each of the answers that there are.
func TestRealServerAsksForInput(t *testing.T) {
	volatile := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	sameOnAllRoutes(t, everythingServer, volatile, func(w *wire) {
		w.answer("roots/list", rootsOf())
		w.answer("elicitation/create",
			`"result":{"action":"accept","content":{"name":"Ada \u00e9","check":true,"integer":7,"number":1.50}}`,
			`"result":{"action":"decline"}`,
			`"result":{"action":"cancel"}`,
			`"error":{"code":-32603,"message":"no user is here"}`,
			`"result":{"action":"accept"}`)
		w.open(newest, able)
		w.do("tools/list", "{}")
		for range 4 {
			w.tryCall("trigger-elicitation-request", `{}`)
		}
		w.tryCall("trigger-url-elicitation", `{"url":"https://example.com/x","message":"open it","elicitationId":"e1"}`)
		w.tryCall("trigger-url-elicitation", `{"url":"https://example.com/y","message":"open it","errorPath":true}`)
		w.tryCall("trigger-url-elicitation", `{"url":"https://example.com/y","message":"open it","errorPath":true}`)
		for _, m := range w.received("elicitation/create") {
			w.note(m.Method, string(m.Params))
		}
	})
}

// TestRealServerAsksForTasks: the client runs what the server asks for as tasks of its own, which the server polls.
func TestRealServerAsksForTasks(t *testing.T) {
	const task = `{"taskId":"t1","status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":60000,"pollInterval":10}`
	working, done := fmt.Sprintf(task, "working"), fmt.Sprintf(task, "completed")
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.answer("roots/list", rootsOf())
		w.answer("sampling/createMessage", `"result":{"task":`+working+`}`)
		w.answer("elicitation/create", `"result":{"task":`+working+`}`)
		w.answer("tasks/get", `"result":`+done)
		w.answer("tasks/result", `"result":{"action":"accept","content":{"name":"Ada"},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`)
		w.open(newest, able)
		w.do("tools/list", "{}")
		_, sampled := w.begin("tools/call", callOf("trigger-sampling-request-async", `{"prompt":"p"}`))
		_, elicited := w.begin("tools/call", callOf("trigger-elicitation-request-async", `{}`))
		w.note("sampling", sampled().outcome())
		w.note("elicitation", elicited().outcome())
	})
}

// TestRealServerRunsTasks of revision 2025-11-25 from their creation to their end.
func TestRealServerRunsTasks(t *testing.T) {
	volatile := regexp.MustCompile(`[0-9a-f]{32}|20[0-9-]{8}T[0-9:.]+Z`)
	sameOnAllRoutes(t, everythingServer, volatile, func(w *wire) {
		w.answer("roots/list", rootsOf())
		w.answer("elicitation/create", `"result":{"action":"accept","content":{"interpretation":"snake"}}`)
		w.open(newest, able)
		w.do("tools/list", "{}")
		create := func(arguments string) (id string) {
			outcome := w.do("tools/call", `{"name":"simulate-research-query","arguments":`+arguments+`,"task":{"ttl":60000}}`)
			w.note("create "+arguments, outcome)
			var result struct{ Task struct{ TaskID string } }
			if err := json.Unmarshal([]byte(strings.TrimPrefix(outcome, "result ")), &result); err != nil || result.Task.TaskID == "" {
				w.t.Fatalf("no task: %s", outcome)
			}
			return result.Task.TaskID
		}
		clear := create(`{"topic":"bees"}`)
		again := create(`{"topic":"bees"}`) // the same call, and yet another task
		unclear := create(`{"topic":"python","ambiguous":true}`)
		if clear == again {
			w.t.Errorf("two calls share the task %s", clear)
		}
		w.try("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, again))
		w.try("tasks/result", fmt.Sprintf(`{"taskId":%q}`, again))
		_, first := w.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, clear))
		_, second := w.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, unclear))
		w.note("clear", first().outcome())
		w.note("unclear", second().outcome())
		for _, id := range []string{clear, again, unclear} {
			w.try("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id))
		}
		w.try("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, clear))
		w.try("tasks/list", "{}")
		w.note("elicitation", string(w.awaitMethod("elicitation/create").Params))
	})
}

// TestRealServerReportsProgress under tokens of either type, rising, to whoever asked for it.
func TestRealServerReportsProgress(t *testing.T) {
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.open(newest, "{}")
		w.do("tools/list", "{}")
		work := func(steps int, token string) func() message {
			_, answer := w.begin("tools/call", fmt.Sprintf(
				`{"name":"trigger-long-running-operation","arguments":{"duration":0.2,"steps":%d},"_meta":{"progressToken":%s}}`, steps, token))
			return answer
		}
		for _, token := range []string{`"token"`, `0`, `2`, `9007199254740991`, `"2"`, `"ü"`} {
			w.note(token, work(3, token)().outcome())
		}
		four, five := work(4, `"four"`), work(5, `5`)
		w.note("four", four().outcome())
		w.note("five", five().outcome())
		last := map[string]float64{}
		progress := map[string]string{}
		for _, m := range w.received("notifications/progress") {
			var p struct {
				ProgressToken json.RawMessage
				Progress      float64
			}
			if err := json.Unmarshal(m.Params, &p); err != nil {
				w.t.Fatal(err)
			}
			token := string(p.ProgressToken)
			if p.Progress <= last[token] {
				w.t.Errorf("progress under %s: %v after %v", token, p.Progress, last[token])
			}
			last[token] = p.Progress
			progress[token] += " " + string(m.Params)
		}
		all, _ := json.Marshal(progress) // sorted by token: calls at the same time take turns as they like
		w.note("progress", string(all))
		if len(progress) != 8 {
			w.t.Errorf("progress under %d tokens, want 8", len(progress))
		}
	})
}

// TestRealServerTellsOfResourcesAndLogs: what the client has subscribed to, at the level that it has set.
func TestRealServerTellsOfResourcesAndLogs(t *testing.T) {
	sameOnAllRoutes(t, everythingServer, nil, func(w *wire) {
		w.open(newest, "{}")
		w.do("tools/list", "{}")
		w.try("resources/subscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
		w.tryCall("toggle-subscriber-updates", "{}")
		w.note("update", string(w.awaitMethod("notifications/resources/updated").Params))
		w.try("resources/unsubscribe", `{"uri":"demo://resource/dynamic/text/1"}`)
		w.tryCall("toggle-subscriber-updates", "{}")
		w.try("logging/setLevel", `{"level":"debug"}`)
		w.tryCall("toggle-simulated-logging", "{}")
		w.await("a log message", func(m message) bool {
			return m.Method == "notifications/message" && strings.Contains(strings.ToLower(string(m.Params)), "level")
		})
		w.tryCall("toggle-simulated-logging", "{}")
	})
}

// TestRealServerIsToldOfCancellation of a call in flight, under the id that it knows the call by. The client hears no more of it.
func TestRealServerIsToldOfCancellation(t *testing.T) {
	needServers(t)
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			w := dial(t, r, everythingServer, newPlace(t), nil)
			w.open(newest, "{}")
			w.do("tools/list", "{}")
			work := func(steps int) (string, func() message) {
				return w.begin("tools/call", fmt.Sprintf(
					`{"name":"trigger-long-running-operation","arguments":{"duration":0.5,"steps":%d},"_meta":{"progressToken":%d}}`, steps, steps))
			}
			id, _ := work(10)
			w.awaitMethod("notifications/progress")
			w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"changed \u006dy mind"}}`, id)
			later, answer := work(5) // ends after the first would have
			if id == later {
				t.Fatal("one id for two calls")
			}
			if got := answer().outcome(); !strings.Contains(got, "completed") {
				t.Error(got)
			}
			w.mu.Lock()
			_, open := w.waiting[id]
			w.mu.Unlock()
			if !open {
				t.Error("the cancelled call was answered")
			}
			w.close()
			var called, cancelled string
			for _, f := range w.at.lives(t)[0].frames {
				m := decode(t, f.frame)
				switch {
				case !f.read:
				case m.Method == "tools/call" && called == "":
					called = string(m.ID)
				case m.Method == "notifications/cancelled":
					cancelled += string(m.Params)
				}
			}
			if want := fmt.Sprintf(`{"requestId":%s,"reason":"changed \u006dy mind"}`, called); cancelled != want {
				t.Errorf("the server was told\n%s\nwant\n%s", cancelled, want)
			}
		})
	}
}
