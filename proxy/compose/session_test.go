package compose

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestInitializeMergesWhatTheServersSay(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask(`"i"`, "initialize", hello)
	w.answers(0, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":false},"experimental":{"x":{"n":1.0}}},"serverInfo":{"name":"a","version":"1"},"instructions":"Be <kind>."}`)
	w.quiet()
	m := w.answers(1, "initialize", `{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"experimental":{"y":{}}},"serverInfo":{"name":"b","version":"1"}}`)
	if string(m.Params) != hello {
		t.Errorf("beta got %s", m.Params)
	}
	want := `{"protocolVersion":"2025-03-26","capabilities":{"experimental":{"x":{"n":1.0},"y":{}},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},` +
		`"serverInfo":{"name":"mcp-retry","version":"1"},"instructions":"# alpha (its tools begin with alpha__)\n\nBe <kind>."}`
	if m := w.answered(`"i"`); string(m.Result) != want {
		t.Errorf("got  %s\nwant %s", m.Result, want)
	}
	w.quiet()
}

func TestInitializeWaitsForNobodyBeyondItsStartupTimeout(t *testing.T) {
	w := newWorld(t, "defaults: {startup_timeout: 2}", "alpha", "mute")
	w.ask("0", "initialize", hello)
	w.answers(0, "initialize", greeting(everyone))
	w.advance(1900 * time.Millisecond)
	w.quiet()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`) // which must not be
	w.advance(200 * time.Millisecond)
	w.answered("0")
	w.servers[1].got = nil
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.idle(1)
}

func TestInitializeIsAnsweredBeforeClientsGiveUp(t *testing.T) {
	w := newWorld(t, "defaults: {startup_timeout: 120}", "alpha", "slow")
	w.ask("0", "initialize", hello)
	w.answers(0, "initialize", greeting(everyone))
	w.advance(greetTime)
	w.answered("0")
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.ask("1", "tools/list", "")
	w.answers(0, "tools/list", `{"tools":[{"name":"a"}]}`)
	if got := w.listed("1"); got != "alpha__a" {
		t.Errorf("listed: %s", got)
	}
	w.ask("2", "tools/call", `{"name":"slow__b"}`)
	w.advance(20 * time.Second)
	w.quiet()
	w.answers(1, "initialize", greeting(everyone)) // there is one alone
	w.gets(1, "notifications/initialized")
	w.answers(1, "tools/list", `{"tools":[]}`)
	w.answers(1, "tools/call", `{"content":[]}`)
	w.answered("2")
	w.told("notifications/tools/list_changed")
	w.told("notifications/prompts/list_changed")
	w.told("notifications/resources/list_changed")
	w.quiet()
	w.idle(1)
}

func TestInitializeFailsIfNoServerIsThere(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("0", "initialize", hello)
	w.refuses(0, "initialize", -32602)
	w.servers[1].broken = true
	w.dies(1)
	if m := w.answered("0"); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("got %s", m.raw)
	}
	w.ask("1", "initialize", hello)
	w.answers(0, "initialize", greeting(everyone))
	if m := w.answered("1"); m.Result == nil {
		t.Errorf("the second time: %s", m.raw)
	}
}

func TestInitializeSaysOfEachServerWhyItIsMissing(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	for i := range w.servers {
		w.servers[i].broken = true
		w.dies(i)
	}
	w.ask("0", "initialize", hello)
	m := w.answered("0")
	if m.Error == nil || m.Error.Code != engine.CodeUnavailable || !strings.Contains(m.Error.Message, "'alpha'") || !strings.Contains(m.Error.Message, "'beta'") {
		t.Errorf("got %s", m.raw)
	}
}

func TestWhatIsSentBeforeTheHandshakeIsOverWaits(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("0", "initialize", hello)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.ask("1", "tools/list", "")
	w.ask("2", "tools/call", `{"name":"beta__b"}`)
	w.ask("3", "tools/call", `{"name":"beta__c"}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	w.step(0, engine.Event{Kind: engine.ClientEOF})
	w.answers(1, "initialize", greeting(everyone))
	w.idle(1)
	w.answers(0, "initialize", greeting(everyone))
	w.answered("0")
	w.gets(1, "notifications/initialized")
	w.answers(0, "tools/list", `{"nextCursor":"2","tools":[{"name":"a"}]}`)
	w.answers(1, "tools/list", `{"tools":[{"name":"b"}]}`)
	w.answers(1, "tools/list", `{"tools":[{"name":"b"}]}`) // the engine's own
	w.answers(0, "tools/list", `{"tools":[{"name":"c"}]}`)
	if got := w.listed("1"); got != "alpha__a alpha__c beta__b" {
		t.Errorf("listed: %s", got)
	}
	if w.ended {
		t.Fatal("it ended before the call was answered")
	}
	w.answers(1, "tools/call", `{"content":[]}`)
	w.answered("2")
	if !w.ended {
		t.Error("it did not end")
	}
	w.quiet()
}

func TestTheEndOfTheClientWaitsForNobodyForEver(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("0", "initialize", hello)
	w.ask("1", "tools/list", "")
	w.step(0, engine.Event{Kind: engine.ClientEOF})
	w.advance(2 * drainTime)
	for _, id := range []string{"0", "1"} {
		if m := w.answered(id); m.Error == nil || m.Error.Code != engine.CodeShutdown {
			t.Errorf("%s: %s", id, m.raw)
		}
	}
	if !w.ended {
		t.Error("it did not end")
	}
	w.quiet()
}

func TestTerminateAnswersAllThatIsPending(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta", "gamma")
	w.servers[2].broken = true
	w.dies(2)
	w.greeted()
	w.servers[2].broken = false
	w.advance(10 * time.Second)
	w.ask("1", "tools/list", "")
	w.ask("2", "tools/call", `{"name":"beta__b"}`)
	w.ask("3", "tools/call", `{"name":"gamma__b"}`)
	w.ask("4", "vendor/x", "")
	w.step(0, engine.Event{Kind: engine.Terminate})
	for _, id := range []string{"1", "2", "3", "4"} {
		if m := w.answered(id); m.Error == nil || m.Error.Code != engine.CodeShutdown {
			t.Errorf("%s: %s", id, m.raw)
		}
	}
	if !w.ended {
		t.Error("it did not end")
	}
	w.quiet()
	if _, ok := w.board.NextWake(); ok {
		t.Error("it wants to be woken after its end")
	}
}

const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func TestServersWithoutAHandshakeAreDiscoveredTogether(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta", "old")
	w.ask("1", "server/discover", `{`+modern+`}`)
	w.answers(0, "server/discover", `{"resultType":"complete","supportedVersions":["2027-01-01","2026-07-28"],"capabilities":{"tools":{}},"instructions":"A."}`)
	w.answers(1, "server/discover", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"prompts":{}}}`)
	w.refuses(2, "server/discover", codeNoMethod)
	m := w.answered("1")
	for _, want := range []string{`"supportedVersions":["2026-07-28"]`, `"tools":{"listChanged":true}`, `"prompts":{"listChanged":true}`, `A.`, `"io.modelcontextprotocol/serverInfo":{"name":"mcp-retry","version":"1"}`} {
		if !strings.Contains(string(m.Result), want) {
			t.Errorf("no %s in %s", want, m.raw)
		}
	}
	w.ask("2", "tools/list", `{`+modern+`}`)
	w.answers(0, "tools/list", `{"resultType":"complete","ttlMs":5000,"cacheScope":"public","tools":[{"name":"a"}]}`)
	w.answers(1, "tools/list", `{"resultType":"complete","ttlMs":700,"cacheScope":"public","tools":[]}`)
	w.answers(2, "tools/list", `{"resultType":"complete","ttlMs":900,"cacheScope":"public","tools":[]}`)
	if m := w.answered("2"); string(m.Result) != `{"tools":[{"name":"alpha__a"}],"resultType":"complete","ttlMs":700,"cacheScope":"public"}` {
		t.Errorf("got %s", m.raw)
	}
	w.quiet()
}

func TestASubscriptionIsOneForTheClient(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask(`"s"`, "subscriptions/listen", `{`+modern+`,"notifications":{"toolsListChanged":true,"promptsListChanged":true}}`)
	var at [2]string
	ack := func(i int, granted string) {
		w.serves(i, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}}`, at[i], granted)
	}
	changed := func(i int) {
		w.serves(i, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, at[i])
	}
	for i := range at {
		at[i] = string(w.gets(i, "subscriptions/listen").ID)
	}
	ack(0, `{"toolsListChanged":true}`)
	changed(0)
	w.quiet()
	ack(1, `{"promptsListChanged":true}`)
	if m := w.client[0]; string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"promptsListChanged":true,"toolsListChanged":true}}` {
		t.Errorf("the client first got %s", m.raw)
	}
	w.told("notifications/subscriptions/acknowledged")
	if m := w.told("notifications/tools/list_changed"); string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}` {
		t.Errorf("the client got %s", m.raw)
	}
	w.serves(0, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, at[0])
	w.quiet()
	changed(1)
	w.told("notifications/tools/list_changed")
	w.serves(1, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}`, at[1])
	w.answered(`"s"`)
	w.quiet()
}

func TestASubscriptionOutlivesAServer(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("5", "subscriptions/listen", `{`+modern+`,"notifications":{"toolsListChanged":true}}`)
	for i := range w.servers {
		m := w.gets(i, "subscriptions/listen")
		w.serves(i, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, m.ID)
	}
	w.told("notifications/subscriptions/acknowledged")
	w.ask("6", "tools/list", `{`+modern+`}`)
	w.answers(0, "tools/list", `{"tools":[]}`)
	w.answers(1, "tools/list", `{"tools":[]}`)
	w.answered("6")
	w.dies(1)
	w.quiet()
	w.advance(5 * time.Second)
	w.answers(1, "server/discover", `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	if m := w.told("notifications/tools/list_changed"); string(m.Params) != `{"_meta":{"io.modelcontextprotocol/subscriptionId":5}}` {
		t.Errorf("got %s", m.raw)
	}
	w.gets(1, "subscriptions/listen")
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	w.gets(0, "notifications/cancelled")
	w.gets(1, "notifications/cancelled")
	w.quiet()
}
