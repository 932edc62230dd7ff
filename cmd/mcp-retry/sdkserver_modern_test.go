package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// modern is what a request of revision 2026-07-28 must carry with it.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"wire","version":"1.0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// modernCall are the params of a call of that revision.
func modernCall(tool, text, more string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":{"text":%q}%s,%s}`, tool, text, more, modern)
}

// TestModernRequests: a session without a handshake, one request of each method.
func TestModernRequests(t *testing.T) {
	sameOnAllRoutes(t, realServer{}, nil, func(w *wire) {
		w.try("server/discover", "{"+modern+"}")
		w.try("tools/list", "{"+modern+"}")
		w.try("tools/call", modernCall("echo", "hello \u00e9", ""))
		w.try("tools/call", modernCall("pay", "1", ""))
		w.try("tools/call", modernCall("none", "", ""))
		w.try("tools/call", `{"name":"echo","arguments":{"text":7},`+modern+`}`)
		w.try("resources/list", "{"+modern+"}")
		w.try("resources/templates/list", "{"+modern+"}")
		w.try("resources/read", `{"uri":"test://resource",`+modern+`}`)
		w.try("resources/read", `{"uri":"test://none",`+modern+`}`)
		w.try("prompts/list", "{"+modern+"}")
		w.try("prompts/get", `{"name":"greet","arguments":{"who":"Ada"},`+modern+`}`)
		w.try("completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":""},`+modern+`}`)
		w.try("ping", "{"+modern+"}")
		w.try("no/such/method", "{"+modern+"}")
		w.try("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}`)
		w.try("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`)
		w.try("tools/call", fmt.Sprintf(`{"name":"work","arguments":{"text":"w"},%s`, strings.Replace(modern, `{`, `{"progressToken":"p",`, 1)+"}"))
		for _, m := range w.received("notifications/progress") {
			w.note(m.Method, string(m.Params))
		}
	})
}

// TestModernDiscoveryThenHandshake: a client that can do both asks first, and may then shake hands after all.
func TestModernDiscoveryThenHandshake(t *testing.T) {
	needServers(t)
	sameOnAllRoutes(t, memoryServer, nil, func(w *wire) {
		w.try("server/discover", "{"+modern+"}") // which these servers do not know
		w.note("initialize", w.open(newest, "{}"))
		w.try("tools/list", "{}")
		w.tryCall("read_graph", "{}")
	})
}

// TestModernInputRequired: a tool that asks for input answers twice. What it asks and its state pass untouched, and neither
// answer is kept: the same question is asked again.
func TestModernInputRequired(t *testing.T) {
	sameOnAllRoutes(t, realServer{}, nil, func(w *wire) {
		w.try("tools/list", "{"+modern+"}")
		for range 2 {
			outcome := w.do("tools/call", modernCall("ask", "x", ""))
			w.note("ask", outcome)
			var result struct {
				ResultType   string
				RequestState json.RawMessage
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(outcome, "result ")), &result); err != nil || result.ResultType != "input_required" {
				w.t.Fatalf("outcome %s, want input_required", outcome)
			}
			w.try("tools/call", modernCall("ask", "x", fmt.Sprintf(
				`,"inputResponses":{"name":{"action":"accept","content":{"name":"Ada"}}},"requestState":%s`, result.RequestState)))
			w.try("tools/call", modernCall("ask", "x", fmt.Sprintf(
				`,"inputResponses":{"name":{"action":"decline"}},"requestState":%s`, result.RequestState)))
		}
		if n := w.at.sends(w.t, "ask"); n != 6 {
			w.t.Errorf("sent %d times, want 6", n)
		}
	})
}

// TestModernSubscriptions bear the client's own id of the request that opened them, of either type, in all that comes of them.
func TestModernSubscriptions(t *testing.T) {
	sameOnAllRoutes(t, realServer{}, nil, func(w *wire) {
		w.try("server/discover", "{"+modern+"}")
		w.try("tools/list", "{"+modern+"}")
		listen := func(what string) (id string) {
			id, _ = w.begin("subscriptions/listen", fmt.Sprintf(`{"notifications":%s,%s}`, what, modern))
			w.await("the acknowledgement of "+id, func(m message) bool {
				return m.Method == "notifications/subscriptions/acknowledged" && subscription(m) == id
			})
			return id
		}
		prompts := listen(`{"promptsListChanged":true}`)
		resources := listen(`{"resourceSubscriptions":["test://resource"]}`)
		if (prompts[0] == '"') == (resources[0] == '"') {
			w.t.Fatal("the ids are of one type")
		}
		w.try("tools/call", modernCall("change", "resource", ""))
		w.await("an update", func(m message) bool {
			return m.Method == "notifications/resources/updated" && subscription(m) == resources
		})
		w.try("tools/call", modernCall("change", "prompts", ""))
		w.await("a change", func(m message) bool {
			return m.Method == "notifications/prompts/list_changed" && subscription(m) == prompts
		})
		for _, m := range append(w.received("notifications/subscriptions/acknowledged"), w.received("notifications/prompts/list_changed")...) {
			w.note(m.Method, string(m.Params))
		}
	})
}

// subscription is the raw id of the subscription that a notification belongs to.
func subscription(m message) string {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &params) // without one it belongs to none
	return string(params.Meta["io.modelcontextprotocol/subscriptionId"])
}

// TestModernServerDies: a new life needs no greeting. Calls follow the same rules as ever, and a subscription ends with an error,
// so that its client can open it again.
func TestModernServerDies(t *testing.T) {
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			at := newPlace(t)
			w := dial(t, r, realServer{}, at, nil)
			w.do("server/discover", "{"+modern+"}")
			w.do("tools/list", "{"+modern+"}")
			listen := fmt.Sprintf(`{"notifications":{"promptsListChanged":true},%s}`, modern)
			_, listened := w.begin("subscriptions/listen", listen)
			w.awaitMethod("notifications/subscriptions/acknowledged")

			at.dieOnce(t, "out", "echo")
			if got := w.do("tools/call", modernCall("echo", "read only", "")); !strings.Contains(got, "echo: read only") {
				t.Errorf("echo: %s", got)
			}
			if got := listened().outcome(); !strings.HasPrefix(got, `error {"code":-31004`) {
				t.Errorf("the subscription ended with %s, want -31004", got)
			}
			again, _ := w.begin("subscriptions/listen", listen)
			w.await("an acknowledgement", func(m message) bool { return subscription(m) == again })

			at.dieOnce(t, "out", "pay")
			if got := w.do("tools/call", modernCall("pay", "1", "")); !strings.Contains(got, `"mayHaveExecuted":"unknown"`) {
				t.Errorf("pay: %s", got)
			}
			if got := w.do("tools/call", modernCall("pay", "2", "")); !strings.Contains(got, "paid: 2") {
				t.Errorf("pay: %s", got)
			}
			w.close()
			if reads, payments := at.sends(t, "echo"), at.sends(t, "pay"); reads != 2 || payments != 2 {
				t.Errorf("%d reads and %d payments were sent, want 2 and 2", reads, payments)
			}
			if n := at.sends(t, "initialize"); n != 0 {
				t.Errorf("%d handshakes, want none", n)
			}
		})
	}
}

// TestModernSubscriptionIsCancelled: its client hears no more of it, and the others do.
func TestModernSubscriptionIsCancelled(t *testing.T) {
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			w := dial(t, r, realServer{}, newPlace(t), nil)
			w.do("tools/list", "{"+modern+"}")
			listen := func(what string) string {
				id, _ := w.begin("subscriptions/listen", fmt.Sprintf(`{"notifications":%s,%s}`, what, modern))
				w.await("an acknowledgement", func(m message) bool { return subscription(m) == id })
				return id
			}
			prompts, resources := listen(`{"promptsListChanged":true}`), listen(`{"resourceSubscriptions":["test://resource"]}`)
			w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,%s}}`, prompts, modern)
			w.do("tools/call", modernCall("change", "prompts", ""))
			w.do("tools/call", modernCall("change", "resource", ""))
			w.await("an update", func(m message) bool {
				return subscription(m) == resources && m.Method == "notifications/resources/updated"
			})
			if late := w.received("notifications/prompts/list_changed"); len(late) != 0 {
				t.Errorf("under the cancelled subscription came %s", late[0].Params)
			}
			w.close()
		})
	}
}

// TestModernCancellation reaches the server under the id that it knows the call by.
func TestModernCancellation(t *testing.T) {
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			w := dial(t, r, realServer{}, newPlace(t), nil)
			w.do("tools/list", "{"+modern+"}")
			id, _ := w.begin("tools/call", fmt.Sprintf(`{"name":"hang","arguments":{"text":""},%s}`, strings.Replace(modern, `{`, `{"progressToken":1,`, 1)))
			w.awaitMethod("notifications/progress")
			w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
			w.do("tools/call", modernCall("echo", "after", ""))
			w.close()
			text := ""
			for _, f := range w.at.lives(t)[0].frames {
				if m := decode(t, f.frame); f.read && (m.tool() == "hang" || m.Method == "notifications/cancelled") {
					text += string(m.ID) + string(m.Params)
				}
			}
			if !regexp.MustCompile(`^(\d+)\{.*\{"requestId":(\d+)\}$`).MatchString(text) {
				t.Fatalf("the server read %s", text)
			}
			if at := strings.IndexByte(text, '{'); !strings.HasSuffix(text, `{"requestId":`+text[:at]+"}") {
				t.Errorf("another request was cancelled: %s", text)
			}
		})
	}
}
