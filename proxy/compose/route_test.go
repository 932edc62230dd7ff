package compose

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestACallGoesToTheServerInItsName(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "tools/call", `{"_meta":{"x":[1.0, 2]},"name":"beta__\u0061dd","arguments":{"name":"alpha__add","n":1e2}}`)
	m := w.gets(1, "tools/call")
	if string(m.Params) != `{"_meta":{"x":[1.0, 2]},"name":"add","arguments":{"name":"alpha__add","n":1e2}}` {
		t.Errorf("beta got %s", m.Params)
	}
	w.serves(1, `{"id":%s,"jsonrpc":"2.0","result":{"content":[ ],"x":1.0}}`, m.ID)
	if got := w.answered("1"); got.raw != `{"id":1,"jsonrpc":"2.0","result":{"content":[ ],"x":1.0}}` {
		t.Errorf("the client got %s", got.raw)
	}
	w.quiet()
}

func TestACallOfNobodysToolIsRefused(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	for _, params := range []string{`{"name":"add"}`, `{"name":"gamma__add"}`, `{"name":5}`, `{}`, `[]`} {
		w.ask("1", "tools/call", params)
		if m := w.answered("1"); m.Error == nil || m.Error.Code != codeParams {
			t.Errorf("%s: %s", params, m.raw)
		}
	}
	w.idle(0)
	w.idle(1)
	var logged []string
	for _, r := range w.logs {
		if r.Event == "tool_call_end" {
			logged = append(logged, r.Tool+" "+r.Kind)
		}
	}
	if got := strings.Join(logged, ", "); got != "add unknown_tool, gamma__add unknown_tool" {
		t.Errorf("the log tells of %s", got)
	}
}

func TestEachServerHasItsOwnRules(t *testing.T) {
	w := newWorld(t, "defaults: {circuit_breaker: {failure_threshold: 1}, retry: {max_retries: 0}}", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"work"}`, `{"name":"work"}`)
	w.ask("1", "tools/call", `{"name":"alpha__work"}`)
	w.refuses(0, "tools/call", -32000)
	w.answered("1")
	w.ask("2", "tools/call", `{"name":"alpha__work"}`)
	if m := w.answered("2"); m.Error == nil || m.Error.Code != engine.CodeCircuitOpen || m.Error.Data.Server != "alpha" {
		t.Errorf("alpha: %s", m.raw)
	}
	w.ask("3", "tools/call", `{"name":"beta__work"}`)
	w.answers(1, "tools/call", `{"content":[]}`)
	if m := w.answered("3"); m.Result == nil {
		t.Errorf("beta: %s", m.raw)
	}
}

func TestToolFiltersSeeTheNamesOfTheServers(t *testing.T) {
	w := newWorld(t, "defaults: {tool_filter: {deny: [rm]}}", "alpha", "beta")
	w.greeted()
	w.ask("1", "tools/call", `{"name":"alpha__rm"}`)
	if m := w.answered("1"); m.Error == nil || m.Error.Code != engine.CodeDenied {
		t.Errorf("got %s", m.raw)
	}
}

func TestPromptsAndCompletionsGoToTheServerInTheName(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "prompts/get", `{"name":"beta__hi"}`)
	if m := w.answers(1, "prompts/get", `{"messages":[]}`); string(m.Params) != `{"name":"hi"}` {
		t.Errorf("beta got %s", m.Params)
	}
	w.answered("1")
	w.ask("2", "completion/complete", `{"argument":{"name":"alpha__x"},"ref":{"type":"ref/prompt","name":"beta__hi"}}`)
	if m := w.answers(1, "completion/complete", `{}`); string(m.Params) != `{"argument":{"name":"alpha__x"},"ref":{"type":"ref/prompt","name":"hi"}}` {
		t.Errorf("beta got %s", m.Params)
	}
	w.answered("2")
	w.ask("3", "prompts/get", `{"name":"hi"}`)
	if m := w.answered("3"); m.Error == nil || m.Error.Code != codeParams {
		t.Errorf("got %s", m.raw)
	}
}

func TestResourcesGoToTheServerThatListsThem(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "resources/list", "")
	w.answers(1, "resources/list", `{"resources":[{"uri":"x://both","name":"b"},{"uri":"x://beta","name":"b"}]}`)
	w.answers(0, "resources/list", `{"resources":[{"uri":"x://both","name":"a"}]}`)
	if m := w.answered("1"); string(m.Result) != `{"resources":[{"uri":"x://both","name":"a"},{"uri":"x://beta","name":"b"}]}` {
		t.Errorf("got %s", m.Result)
	}
	w.ask("2", "resources/templates/list", "")
	w.answers(0, "resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"t://{any}","name":"a"}]}`)
	w.answers(1, "resources/templates/list", `{"resourceTemplates":[{"uriTemplate":"t://beta/{id}","name":"b"}]}`)
	w.answered("2")
	for uri, server := range map[string]int{"x://both": 0, "x://beta": 1, "t://foo": 0, "t://beta/5": 1} {
		for _, method := range []string{"resources/read", "resources/subscribe", "resources/unsubscribe"} {
			w.ask("3", method, `{"uri":"`+uri+`"}`)
			w.answers(server, method, `{"contents":[]}`)
			w.idle(1 - server)
			w.answered("3")
		}
	}
	w.ask("4", "completion/complete", `{"ref":{"type":"ref/resource","uri":"t://beta/{id}"}}`)
	w.answers(1, "completion/complete", `{}`)
	w.answered("4")
	w.quiet()
}

func TestAResourceThatNobodyListsIsLookedFor(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask(`"r"`, "resources/read", `{"uri":"x://y"}`)
	w.idle(1)
	w.refuses(0, "resources/read", codeNoResource)
	w.answers(1, "resources/read", `{"contents":[1.0]}`)
	if m := w.answered(`"r"`); string(m.Result) != `{"contents":[1.0]}` {
		t.Errorf("got %s", m.raw)
	}
	w.ask(`"s"`, "resources/read", `{"uri":"x://z"}`)
	w.refuses(0, "resources/read", codeNoResource)
	w.refuses(1, "resources/read", codeNoResource)
	if m := w.answered(`"s"`); m.Error == nil || m.Error.Code != codeNoResource {
		t.Errorf("got %s", m.raw)
	}
	w.ask("5", "resources/read", `{"uri":"x://y"}`)
	w.refuses(0, "resources/read", -32603) // alpha knows it
	if m := w.answered("5"); m.Error == nil || m.Error.Code != -32603 {
		t.Errorf("got %s", m.raw)
	}
	w.idle(1)
	w.quiet()
}

func TestAnUnknownMethodIsAskedOfOneServerAfterTheOther(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "vendor/thing", `{"a":1}`)
	w.refuses(0, "vendor/thing", codeNoMethod)
	w.answers(1, "vendor/thing", `{"b":2}`)
	if m := w.answered("1"); string(m.Result) != `{"b":2}` {
		t.Errorf("got %s", m.raw)
	}
}

func TestPingIsAnsweredAtOnce(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("1", "ping", "")
	if m := w.answered("1"); string(m.Result) != "{}" {
		t.Errorf("got %s", m.raw)
	}
	w.idle(0)
	w.idle(1)
}

func TestTheLogLevelGoesToAllThatLog(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta", "gamma")
	w.ask("0", "initialize", hello)
	w.answers(0, "initialize", greeting(everyone))
	w.answers(1, "initialize", greeting(`{"tools":{}}`))
	w.answers(2, "initialize", greeting(everyone))
	w.answered("0")
	w.ask("1", "logging/setLevel", `{"level":"error"}`)
	w.idle(1)
	w.answers(0, "logging/setLevel", `{}`)
	w.refuses(2, "logging/setLevel", -32603)
	if m := w.answered("1"); string(m.Result) != "{}" {
		t.Errorf("got %s", m.raw)
	}
}

func TestACancelledRequestGetsNoAnswer(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"work"}`, "")
	t.Run("of one server", func(t *testing.T) {
		w.ask("1", "tools/call", `{"name":"alpha__work"}`)
		call := w.gets(0, "tools/call")
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if m := w.gets(0, "notifications/cancelled"); !strings.Contains(string(m.Params), `"requestId":`+string(call.ID)) {
			t.Errorf("alpha got %s", m.raw)
		}
		w.serves(0, `{"jsonrpc":"2.0","id":%s,"result":{}}`, call.ID)
		w.idle(1)
	})
	t.Run("of all servers", func(t *testing.T) {
		w.ask("2", "prompts/list", "")
		w.answers(0, "prompts/list", `{"prompts":[]}`)
		list := w.gets(1, "prompts/list")
		w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		if m := w.gets(1, "notifications/cancelled"); !strings.Contains(string(m.Params), `"requestId":`+string(list.ID)) {
			t.Errorf("beta got %s", m.raw)
		}
		w.idle(0)
		w.serves(1, `{"jsonrpc":"2.0","id":%s,"result":{"prompts":[]}}`, list.ID)
	})
	w.quiet()
}

func TestProgressReachesTheClientUnderItsOwnToken(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"work"}`, `{"name":"work"}`)
	for i, name := range []string{"alpha", "beta"} {
		w.ask(name[:0]+string(rune('1'+i)), "tools/call", `{"name":"`+name+`__work","_meta":{"progressToken":"`+name+`"}}`)
		m := w.gets(i, "tools/call")
		w.serves(i, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
		if m := w.told("notifications/progress"); string(m.Params) != `{"progressToken":"`+name+`","progress":1}` {
			t.Errorf("got %s", m.Params)
		}
	}
}

func TestWhatServersAskComesBackToTheOneThatAsked(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	var asked [2]message
	for i, who := range []string{"alpha", "beta"} {
		w.serves(i, `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"who":"%s","_meta":{"progressToken":5}}}`, who)
		asked[i] = w.told("sampling/createMessage")
		if want := `{"who":"` + who + `","_meta":{"progressToken":` + string(asked[i].ID) + `}}`; string(asked[i].Params) != want {
			t.Errorf("%s: the client got %s", who, asked[i].raw)
		}
	}
	if string(asked[0].ID) == string(asked[1].ID) {
		t.Fatal("two questions have one id")
	}
	for i := range asked {
		w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, asked[i].ID)
		if m := w.gets(i, "notifications/progress"); string(m.Params) != `{"progressToken":5,"progress":1}` {
			t.Errorf("progress: server %d got %s", i, m.Params)
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"n":%d}}`, asked[i].ID, i)
		if m := w.gets(i, ""); string(m.ID) != "7" || string(m.Result) != `{"n":`+string(rune('0'+i))+`}` {
			t.Errorf("server %d got %s", i, m.raw)
		}
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, asked[i].ID) // twice
		w.idle(i)
	}
	w.serves(1, `{"jsonrpc":"2.0","id":"x","method":"roots/list"}`)
	third := w.told("roots/list")
	w.serves(1, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`)
	if m := w.told("notifications/cancelled"); string(m.Params) != `{"requestId":`+string(third.ID)+`}` {
		t.Errorf("the client got %s", m.raw)
	}
	w.quiet()
}

func TestNotificationsPassBothWays(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	for i := range w.servers {
		w.gets(i, "notifications/roots/list_changed")
	}
	const words = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1.0}}`
	w.serves(1, words)
	if m := w.told("notifications/message"); m.raw != words {
		t.Errorf("got %s", m.raw)
	}
	w.serves(0, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.told("notifications/tools/list_changed")
	w.quiet()
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.send(`{"jsonrpc":"1.0","id":3,"method":"x"}`)
	if m := w.answered("3"); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("got %s", m.raw)
	}
	w.send(`{`)
	if m := w.answered("null"); m.Error == nil || m.Error.Code != -32700 {
		t.Errorf("got %s", m.raw)
	}
	w.step(0, engine.Event{Kind: engine.ClientTooBig, Frame: []byte(`{"jsonrpc":"2.0","id":4,"method":"x",`), Tail: []byte(`"}}`), Size: 1 << 30})
	if m := w.answered("4"); m.Error == nil || m.Error.Code != engine.CodeTooLarge {
		t.Errorf("got %s", m.raw)
	}
	w.serves(1, `{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
	asked := w.told("roots/list")
	w.step(0, engine.Event{Kind: engine.ClientTooBig, Frame: []byte(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{`), Tail: []byte(`"}}`), Size: 1 << 30})
	if m := w.gets(1, ""); m.Error == nil || string(m.ID) != "7" {
		t.Errorf("beta got %s", m.raw)
	}
	w.advance(time.Minute)
	w.quiet()
}
