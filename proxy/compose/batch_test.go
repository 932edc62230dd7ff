package compose

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// batching is a session of alpha and beta in the revision that has batches, of which beta may speak a later one.
func batching(t *testing.T, config string) *world {
	t.Helper()
	w := newWorld(t, config, "alpha", "beta")
	w.ask("0", "initialize", strings.Replace(hello, "2025-06-18", "2025-03-26", 1))
	w.answers(0, "initialize", strings.Replace(greeting(everyone), "2025-06-18", "2025-03-26", 1))
	w.answers(1, "initialize", greeting(everyone))
	w.answered("0")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

// batch takes the next message that the client got, which must be a batch.
func (w *world) batch() (ids string, all []message) {
	w.t.Helper()
	if len(w.client) == 0 || json.Unmarshal([]byte(w.client[0].raw), &all) != nil {
		w.t.Fatalf("the client got no batch, but %v", w.client)
	}
	w.client = w.client[1:]
	var list []string
	for _, m := range all {
		list = append(list, string(m.ID))
	}
	return strings.Join(list, " "), all
}

func TestABatchIsAnsweredOnceAllItsRequestsAre(t *testing.T) {
	w := batching(t, "")
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"beta__b"}},{"jsonrpc":"2.0","id":"p","method":"ping"},` +
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/roots/list_changed"},` +
		`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"x://y"}},{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"c"}},` +
		`7,{"jsonrpc":"2.0","id":5},{"jsonrpc":"2.0","id":6,"method":"initialize","params":` + hello + `},[]]`)
	w.gets(0, "notifications/roots/list_changed")
	w.refuses(0, "resources/read", -32002)
	w.answers(1, "resources/read", `{"contents":[]}`)
	w.answers(0, "tools/list", `{"tools":[{"name":"a"}]}`)
	w.answers(1, "tools/list", `{"tools":[{"name":"b"}]}`)
	w.quiet()
	w.answers(1, "tools/call", `{"content":[]}`)
	ids, all := w.batch()
	if ids != `"p" 4 null 5 6 null 3 2 1` {
		t.Errorf("answered: %s", ids)
	}
	for _, m := range all {
		switch id := string(m.ID); {
		case id == "4" && (m.Error == nil || m.Error.Code != -32602), (id == "null" || id == "5" || id == "6") && (m.Error == nil || m.Error.Code != -32600):
			t.Errorf("%s got %+v", id, m.Error)
		case strings.Contains(`1 2 3 "p"`, id) && m.Result == nil:
			t.Errorf("%s got %+v", id, m.Error)
		}
	}
	w.quiet()
}

func TestTheAnswersOfABatchWaitForNoneThatTakesLongOrIsCancelled(t *testing.T) {
	w := batching(t, "")
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"beta__b"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	w.advance(4 * time.Second)
	w.quiet()
	w.advance(time.Second)
	if ids, _ := w.batch(); ids != "2" {
		t.Errorf("answered: %s", ids)
	}
	w.answers(1, "tools/call", `{"content":[]}`)
	w.answered("1")
	w.send(`[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"beta__b"}},{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`) // it has an answer, which the client has not
	w.quiet()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if ids, _ := w.batch(); ids != "5" {
		t.Errorf("answered: %s", ids)
	}
	w.send(`[{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"beta__b"}},{"jsonrpc":"2.0","id":7,"method":"ping"}]`)
	w.step(0, engine.Event{Kind: engine.Terminate})
	if ids, _ := w.batch(); ids != "7 6" {
		t.Errorf("answered: %s", ids)
	}
	w.quiet()
}

func TestWhatIsNoBatchIsRefused(t *testing.T) {
	w := batching(t, "")
	w.send(`[]`)
	if m := w.answered("null"); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("got %s", m.raw)
	}
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if m := w.answered("null"); m.Error == nil || m.Error.Code != -32700 {
		t.Errorf("got %s", m.raw)
	}
	w.send(`[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	w.gets(1, "notifications/roots/list_changed")
	w.quiet()
	w = newWorld(t, "", "alpha", "beta")
	w.greeted() // in a revision that has no batches
	w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`)
	if m := w.answered("null"); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("got %s", m.raw)
	}
}
