package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"3"}`

func TestASessionWithoutAHandshake(t *testing.T) {
	w := newWorld(t, fast+`policy: [{when: 'client.name != "modern" || client.protocol != "2026-07-28"', deny: '"who are you?"'}]`)
	w.call("1", "read", `{}`, `"_meta":{`+modernMeta+`,"traceparent":"00-x"}`)
	list := w.request("tools/list")
	meta := list["params"].(map[string]any)["_meta"].(map[string]any)
	if len(meta) != 3 || meta["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" {
		t.Errorf("we ask for the tools with _meta %v", meta)
	}
	a := w.attempt()
	w.reply(list, `{"resultType":"complete","tools":[{"name":"read","annotations":{"readOnlyHint":true}}],"nextCursor":"c"}`)
	next := w.request("tools/list")["params"].(map[string]any)
	if next["cursor"] != "c" || len(next["_meta"].(map[string]any)) != 3 {
		t.Errorf("the next page is asked for with %v", next)
	}
	w.die() // nothing has to be replayed
	w.advance(time.Second)
	w.request("tools/list")
	b := w.attempt()
	if a["params"].(map[string]any)["name"] != b["params"].(map[string]any)["name"] {
		t.Errorf("%v was sent again as %v", a, b)
	}
	w.text(b, "ok")
	w.wantText("1", "ok")
}

func TestTheFirstRequestDecidesTheEra(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	w.wantToServer(`{"jsonrpc":"2.0","method":"notifications/message"}`)
	w.call("1", "read", `{}`, `"_meta":{`+modernMeta+`}`)
	w.request("tools/list") // it needs no handshake
}

func TestAClientThatTriesTheModernRevisionFirst(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{` + modernMeta + `}}}`)
	w.refuse(w.request("server/discover"), -32601)
	w.wantError("0", -32601)
	w.handshake()
	w.die()
	w.call("1", "read", `{}`)
	w.revive() // it is a session with a handshake, after all
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
}

func TestSubscriptionsKeepTheClientsName(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"_meta":{` + modernMeta + `},"notifications":{"toolsListChanged":true}}}`)
	ours := idOf(w.request("subscriptions/listen"))
	note := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
	}
	w.say(note(ours))
	w.wantToClient(note(`"sub"`))
	w.say(note(`"` + ours + `"`))
	w.wantToClient(note(`"sub"`))
	w.say(note("99")) // nobody's
	w.silent()
	w.say(`{"jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + ours + `},"resultType":"complete"},"id":` + ours + `}`)
	w.wantToClient(`{"jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"},"resultType":"complete"},"id":"sub"}`)
	w.say(note(ours)) // over
	w.silent()

	w.send(`{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{"_meta":{` + modernMeta + `}}}`)
	ours = idOf(w.request("subscriptions/listen"))
	w.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + ours + `}}`)
	w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)

	w.send(`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"_meta":{` + modernMeta + `}}}`)
	w.die()
	w.wantError("9", engine.CodeUnavailable)
}

func TestAListeningSubscriptionDoesNotHoldUpTheEnd(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{` + modernMeta + `}}}`)
	w.step(engine.Event{Kind: engine.ClientEOF})
	w.wantError("1", engine.CodeShutdown)
	if !w.done {
		t.Error("the session did not end")
	}
}

func TestInputRequiredIsNeitherCachedNorKeptNorItsContinuationJoined(t *testing.T) {
	const asks = `{"resultType":"input_required","content":null,"inputRequests":{"k":{"method":"elicitation/create","params":{}}},"requestState":"s"}`
	w := newWorld(t, fast+"cache: {tools: {read: 60}}\nidempotency_ttl: 60\ntools: {read: {effects: none}}")
	key := `"_meta":{` + modernMeta + `,"idempotencyKey":"k"}`
	w.call("1", "read", `{}`, key)
	list := w.request("tools/list")
	w.refuse(list, -32601)
	w.reply(w.attempt(), asks)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":` + asks + `}`)
	w.call("2", "read", `{}`, key)
	w.reply(w.attempt(), asks) // not replayed
	w.answer("2")

	more := []string{key, `"inputResponses":{"k":{"action":"accept"}}`, `"requestState":"s"`}
	w.call("3", "read", `{}`, more...)
	w.call("4", "read", `{}`, more...)
	a, b := w.attempt(), w.attempt()
	if a["params"].(map[string]any)["requestState"] != "s" {
		t.Errorf("the continuation was sent as %v", a)
	}
	w.text(a, "three")
	w.wantText("3", "three")
	w.text(b, "four")
	w.wantText("4", "four")
	w.call("5", "read", `{}`, more...)
	w.attempt()
	w.die() // and what may have run is not sent again, though it only reads: the state may be good for one use
	w.advance(time.Minute)
	w.wantError("5", engine.CodeUnavailable)
	w.quiet()
}

func TestATaskIsNotKept(t *testing.T) {
	w := session(t, "idempotency_ttl: 60")
	for _, id := range []string{"1", "2"} {
		w.call(id, "write", `{}`, `"task":{"ttl":60000}`)
		w.reply(w.attempt(), `{"task":{"taskId":"t"}}`)
		w.answer(id)
	}
}
