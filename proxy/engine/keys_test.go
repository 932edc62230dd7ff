package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestTheKeyAmongTheArgumentsIsCutOutWhereverItStands(t *testing.T) {
	for args, left := range map[string]string{
		`{"_idempotency_key":"k"}`:                             `{}`,
		`{ "_idempotency_key" : "k" , "a":1}`:                  `{ "a":1}`,
		`{"a":1,"_idempotency_key":"k"}`:                       `{"a":1}`,
		`{"a":1 , "_idempotency_key":"k" , "b":[2]}`:           `{"a":1 , "b":[2]}`,
		`{"a":"\n","_idempotency\u005fkey":"k"}`:               `{"a":"\n"}`,
		`{"a":{"_idempotency_key":"inner"}}`:                   `{"a":{"_idempotency_key":"inner"}}`,
		`{"a":"_idempotency_key"}`:                             `{"a":"_idempotency_key"}`,
		`{"_idempotency_key":null,"a":"\"_idempotency_key\""}`: `{"a":"\"_idempotency_key\""}`,
	} {
		w := session(t, "")
		w.call("1", "write", args)
		w.wantToServer(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write","arguments":` + left + `}}`)
	}
}

func TestTheKeyInMetaBeatsTheOneAmongTheArguments(t *testing.T) {
	w := session(t, "")
	w.call("1", "write", `{"_idempotency_key":"b"}`, `"_meta":{"idempotencyKey":"a"}`)
	w.text(w.attempt(), "one")
	w.wantText("1", "one")
	w.call("2", "write", `{"x":1}`, `"_meta":{"idempotencyKey":"a"}`)
	w.wantText("2", "one")
	w.call("3", "write", `{"_idempotency_key":"b"}`)
	w.attempt()
}

func TestAForwardedKeyGoesWhereTheServerWantsIt(t *testing.T) {
	for _, tt := range []struct{ place, params, sent string }{
		{"_meta.key", `{"name":"write","arguments":{"o":"k"}}`, `{"name":"write","arguments":{"o":"k"},"_meta":{"key":"k"}}`},
		{"_meta.key", `{"_meta":{},"name":"write","arguments":{"o":"k"}}`, `{"_meta":{"key":"k"},"name":"write","arguments":{"o":"k"}}`},
		{"_meta.key", `{"_meta":{"a":1 },"name":"write","arguments":{"o":"k"}}`, `{"_meta":{"a":1,"key":"k" },"name":"write","arguments":{"o":"k"}}`},
		{"_meta.key", `{"_meta":{"key":"old","a":1},"name":"write","arguments":{"o":"k"}}`, `{"_meta":{"key":"k","a":1},"name":"write","arguments":{"o":"k"}}`},
		{"_meta.key", `{"_meta":null,"name":"write","arguments":{"o":"k"}}`, `{"_meta":{"key":"k"},"name":"write","arguments":{"o":"k"}}`},
		{"_meta.key", `{"_meta":{"progressToken":"p"},"name":"write","arguments":{"o":"k"}}`, `{"_meta":{"progressToken":#,"key":"k"},"name":"write","arguments":{"o":"k"}}`},
		{"arguments.key", `{"name":"write","arguments":{"o":"k"}}`, `{"name":"write","arguments":{"o":"k","key":"k"}}`},
		{"arguments.o", `{"name":"write","arguments":{"o":"k"}}`, `{"name":"write","arguments":{"o":"k"}}`},
	} {
		w := session(t, `policy: [{idempotency_key: args.o, forward_key: `+tt.place+`}]`)
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + tt.params + `}`)
		ours := idOf(decode(t, w.server[0]))
		w.wantToServer(strings.ReplaceAll(`{"jsonrpc":"2.0","id":#,"method":"tools/call","params":`+tt.sent+`}`, "#", ours))
	}
	for _, params := range []string{`{"name":"write","arguments":null}`, `{"name":"write"}`} { // a key that the client gave
		w := session(t, `policy: [{forward_key: arguments.key}]`)
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + strings.Replace(params, "}", `,"_meta":{"idempotencyKey":["k",1]}}`, 1) + `}`)
		if got := w.attempt()["params"].(map[string]any)["arguments"].(map[string]any)["key"]; got == nil {
			t.Errorf("%s was sent without the key", params)
		}
	}
}

func TestARetryCarriesTheForwardedKeyAndAFreshID(t *testing.T) {
	w := session(t, fast+`policy: [{idempotency_key: args.o, forward_key: _meta.key}]`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"write","arguments":{"o":"k"}}}`)
	for range 3 {
		ours := idOf(decode(t, w.server[0]))
		w.wantToServer(`{"jsonrpc":"2.0","id":` + ours + `,"method":"tools/call","params":{"_meta":{"progressToken":` + ours + `,"key":"k"},"name":"write","arguments":{"o":"k"}}}`)
		w.say(`{"jsonrpc":"2.0","id":` + ours + `,"error":{"code":-32000,"message":"busy"}}`)
		w.advance(time.Second)
	}
}

func TestAKeptResultMakesRoomAndTheFactStays(t *testing.T) {
	w := session(t, "cache: {max_entries: 2}")
	keyed := func(id, key string) {
		w.call(id, "write", `{}`, `"_meta":{"idempotencyKey":"`+key+`"}`)
	}
	for i := range 4 {
		id := strconv.Itoa(i)
		keyed(id, "k"+id)
		w.text(w.attempt(), id)
		w.wantText(id, id)
	}
	keyed("10", "k3")
	w.wantText("10", "3")
	keyed("11", "k0")
	w.quiet()
	if data := w.wantError("11", engine.CodeOutcomeUnknown); data["mayHaveExecuted"] != "yes" {
		t.Errorf("data is %v", data)
	}
	w.advance(301 * time.Second)
	keyed("12", "k0")
	w.attempt()

	w = session(t, "cache: {max_bytes: 1KiB}")
	keyed("1", "k")
	w.text(w.attempt(), strings.Repeat("x", 2000))
	w.answer("1")
	keyed("2", "k")
	w.quiet()
	w.wantError("2", engine.CodeOutcomeUnknown)
}

func TestOnAmbiguousSaysWhetherARepeatRuns(t *testing.T) {
	for _, tt := range []struct {
		settings string
		key      string
		runs     bool
	}{
		{``, ``, true},
		{``, `"_meta":{"idempotencyKey":"k"}`, false},
		{`policy: [{on_ambiguous: run}]`, `"_meta":{"idempotencyKey":"k"}`, true},
		{`policy: [{on_ambiguous: refuse}]`, ``, false},
	} {
		w := session(t, "retry: {max_retries: 0}\n"+tt.settings)
		var extra []string
		if tt.key != "" {
			extra = []string{tt.key}
		}
		w.call("1", "write", `{}`, extra...)
		w.attempt()
		w.die()
		w.wantError("1", engine.CodeUnavailable)
		w.call("2", "write", `{}`, extra...)
		if !tt.runs {
			w.wantError("2", engine.CodeOutcomeUnknown)
			continue
		}
		w.revive()
		w.text(w.attempt(), "ok")
		w.wantText("2", "ok")
	}
}

func TestOnAmbiguousRunDoesNotWaitForAnOverdueAnswer(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncall_timeout: 2\npolicy: [{on_ambiguous: run}]")
	w.call("1", "write", `{}`)
	a := w.attempt()
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.call("2", "write", `{}`)
	b := w.attempt()
	w.text(a, "late")
	w.silent()
	w.text(b, "ok")
	w.wantText("2", "ok")
}

func TestIdempotencyTTLReplaysWritesAndNotReads(t *testing.T) {
	w := session(t, "idempotency_ttl: 60\ntools: {cached_*: {cache_ttl: 1, effects: none}}")
	for _, tool := range []string{"write", "plain", "idem"} {
		w.call("1", tool, `{}`)
		w.text(w.attempt(), tool)
		w.wantText("1", tool)
		w.call("2", tool, `{}`)
		w.quiet()
		w.wantText("2", tool)
		w.advance(61 * time.Second)
		w.call("3", tool, `{}`)
		w.text(w.attempt(), tool)
		w.wantText("3", tool)
	}
	for range 2 {
		w.call("4", "read", `{}`)
		w.text(w.attempt(), "r")
		w.wantText("4", "r")
	}
}

func TestNoDeduplicationWhereARuleSaysSo(t *testing.T) {
	w := session(t, "policy: [{idempotency_key: false}]")
	w.call("1", "write", `{"_idempotency_key":"k"}`)
	w.call("2", "write", `{"_idempotency_key":"k"}`)
	w.attempt()
	w.attempt()
}

func TestARequiredKeyThatErrsRefusesTheCall(t *testing.T) {
	w := session(t, "policy: [{idempotency_key: args.order, required: true}]")
	w.call("1", "write", `{}`)
	w.quiet()
	w.wantError("1", engine.CodeDenied)
	w.call("2", "write", `{"order":7}`)
	w.attempt()
}

// A read that was sent before a write must not answer somebody who asks after the write has ended.
func TestB102AReadDoesNotJoinOneThatAWriteHasOvertaken(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{}`)
	old := w.attempt()
	w.call("2", "read", `{}`) // joins
	w.quiet()
	w.call("3", "write", `{}`)
	w.text(w.attempt(), "written")
	w.wantText("3", "written")
	w.call("4", "read", `{}`)
	fresh := w.attempt()
	w.text(old, "old")
	w.wantText("1", "old")
	w.wantText("2", "old")
	w.text(fresh, "new")
	w.wantText("4", "new")
	w.silent()
}

// A write that timed out may take effect at any moment until its answer, or its loss, is known.
func TestALateEndOfAWriteMakesReadsStaleAgain(t *testing.T) {
	for name, end := range map[string]func(*world, map[string]any){
		"late result": func(w *world, a map[string]any) { w.text(a, "late") },
		"late isError": func(w *world, a map[string]any) {
			w.reply(a, `{"content":[],"isError":true}`)
		},
		"death":      func(w *world, a map[string]any) { w.die() },
		"no end":     func(w *world, a map[string]any) { w.advance(10 * time.Minute) },
		"late error": func(w *world, a map[string]any) { w.refuse(a, -32603) },
	} {
		w := session(t, "cache: {tools: {read: 3600}}\ncall_timeout: 2\nretry: {max_retries: 0}")
		w.call("1", "write", `{}`)
		a := w.attempt()
		w.advance(3 * time.Second)
		w.wantError("1", engine.CodeTimeout)
		w.call("2", "read", `{}`)
		w.text(w.attempt(), "old")
		w.wantText("2", "old")
		w.call("3", "read", `{}`)
		w.quiet()
		w.wantText("3", "old")
		end(w, a)
		w.silent()
		w.call("4", "read", `{}`)
		if name == "death" {
			w.revive()
		}
		if len(w.server) != 1 {
			t.Errorf("%s: the read was answered from the cache", name)
		}
	}
}

// The tools are listed while the first call runs: what it may do is judged by what is known when it fails.
func TestAToolThatIsListedDuringItsFirstCallIsJudgedByThat(t *testing.T) {
	for _, known := range []bool{false, true} {
		w := newWorld(t, fast+"call_timeout: 2")
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
		w.reply(w.request("initialize"), `{"capabilities":{}}`)
		w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		w.request("notifications/initialized")
		w.client = nil
		w.call("1", "write", `{}`)
		list := w.request("tools/list")
		w.attempt()
		if known {
			w.reply(list, tools)
		}
		w.advance(time.Minute)
		if data := w.wantError("1", engine.CodeTimeout); data["endedBy"] != "unsafe" {
			t.Errorf("data is %v", data)
		}
		w.quiet()
	}
}

func TestToolsAreListedAsSoonAsTheHandshakeIsOver(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.call("1", "read", `{}`)
	init := w.request("initialize")
	w.request("notifications/initialized")
	w.quiet() // not in the middle of the handshake
	w.reply(init, `{"capabilities":{}}`)
	a := w.attempt()
	first := w.request("tools/list")
	w.text(a, "ok")
	w.reply(first, `{"tools":[{"name":"a"}],"nextCursor":"2"}`)
	second := w.request("tools/list")
	if got := second["params"].(map[string]any)["cursor"]; got != "2" {
		t.Errorf("the second page was asked for with the cursor %v", got)
	}
	w.reply(second, `{"tools":[{"name":"b"}]}`)
	w.call("2", "read", `{}`)
	w.attempt()
	w.quiet()
}

func TestAListThatNeverEndsIsGivenUp(t *testing.T) {
	w := newWorld(t, "")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.reply(w.request("initialize"), `{"capabilities":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.call("1", "read", `{}`)
	pages := 0
	for len(w.server) > 0 && pages < 5000 {
		m := decode(t, w.server[0])
		w.server = w.server[1:]
		if m["method"] == "tools/list" {
			pages++
			w.reply(m, `{"tools":[],"nextCursor":"again"}`)
		}
	}
	if pages != 1000 {
		t.Errorf("%d pages were asked for", pages)
	}
}

func TestAServerWithoutToolsListIsAskedOnce(t *testing.T) {
	w := newWorld(t, fast+"call_timeout: 2")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.reply(w.request("initialize"), `{"capabilities":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.client = nil
	w.call("1", "x", `{}`)
	w.refuse(w.request("tools/list"), -32601)
	w.attempt()
	w.advance(3 * time.Second) // without annotations, it is retried
	w.request("notifications/cancelled")
	w.text(w.attempt(), "ok")
	w.wantText("1", "ok")
	w.call("2", "y", `{}`)
	w.attempt()
	w.quiet()
}

func TestToolsThatChangeWhileTheyAreListedAreListedAgain(t *testing.T) {
	w := session(t, "")
	w.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.client = nil
	w.call("1", "read", `{"n":1}`)
	list := w.request("tools/list")
	w.attempt()
	w.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.client = nil
	w.reply(list, tools)
	w.call("2", "read", `{"n":2}`)
	w.request("tools/list")
}

// The first call came before the tools were known: its kept result is that of a read all the same.
func TestAKeptReadIsStaleAfterAWriteThoughItsToolWasUnknownAtFirst(t *testing.T) {
	w := newWorld(t, "call_timeout: 2\nretry: {max_retries: 0}")
	w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`)
	w.reply(w.request("initialize"), `{"capabilities":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.client = nil
	w.call("1", "read", `{}`)
	w.reply(w.request("tools/list"), tools)
	a := w.attempt()
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.request("notifications/cancelled")
	w.text(a, "old")
	w.call("2", "write", `{}`)
	w.text(w.attempt(), "written")
	w.wantText("2", "written")
	w.call("3", "read", `{}`)
	w.attempt()
}

func TestAToolThatIsStatedToBeUnsafeIsRetriedWhereTheServerHonoursItsKey(t *testing.T) {
	w := session(t, fast+"tools: {plain: {effects: unsafe}}\npolicy: [{idempotency_key: args.o, forward_key: _meta.key}]")
	w.call("1", "plain", `{"o":"k"}`)
	w.refuse(w.attempt(), -32000)
	w.advance(time.Second)
	w.text(w.attempt(), "done")
	w.wantText("1", "done")
}
