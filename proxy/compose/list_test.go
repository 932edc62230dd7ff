package compose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestListsOfAllServersBecomeOneInTheOrderOfTheFile(t *testing.T) {
	w := newWorld(t, "", "beta", "alpha")
	w.greeted()
	w.ask("1", "tools/list", `{"_meta":{"progressToken":"t","k":1}}`)
	if m := w.answers(1, "tools/list", `{"tools":[{"inputSchema":{"type": "object"},"name":"read","x":1.0}]}`); string(m.Params) != `{"_meta":{"k":1}}` {
		t.Errorf("alpha got %s", m.Params)
	}
	w.quiet()
	first := w.answers(0, "tools/list", `{"nextCursor":"a\"b","tools":[{"name":"one"}]}`)
	w.quiet()
	if m := w.answers(0, "tools/list", `{"tools":[{"name":"tw\u006f","description":"name"},{"title":"no name"}]}`); string(m.Params) != `{"_meta":{"k":1},"cursor":"a\"b"}` || string(m.ID) == string(first.ID) {
		t.Errorf("beta was asked for its second page with %s", m.raw)
	}
	want := `{"tools":[{"name":"beta__one"},{"name":"beta__two","description":"name"},{"inputSchema":{"type": "object"},"name":"alpha__read","x":1.0}]}`
	if m := w.answered("1"); string(m.Result) != want {
		t.Errorf("got %s\nwant %s", m.Result, want)
	}
	w.ask("2", "tools/list", `{"cursor":"a"}`)
	if m := w.answered("2"); m.Error == nil || m.Error.Code != codeParams {
		t.Errorf("a cursor that we never gave: %s", m.raw)
	}
}

func TestANameThatIsTooLongIsCutAndStillReachesItsServer(t *testing.T) {
	w := newWorld(t, "compose: {separator: '.'}", "alpha", "beta")
	w.greeted()
	long := strings.Repeat("x", 70)
	name := strings.Fields(w.knows(`{"name":"a"}`, `{"name":"`+long+`"}`))[1]
	if len(name) != maxName || !strings.HasPrefix(name, "beta.xxx") {
		t.Fatalf("it is %q", name)
	}
	w.ask("1", "tools/call", `{"name":"`+name+`"}`)
	if m := w.gets(1, "tools/call"); string(m.Params) != `{"name":"`+long+`"}` {
		t.Errorf("beta got %s", m.Params)
	}
}

func TestAServerWithoutACapabilityIsNotAskedForIt(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("0", "initialize", hello)
	w.answers(0, "initialize", greeting(`{"tools":{}}`))
	w.answers(1, "initialize", greeting(everyone))
	w.answered("0")
	w.ask("1", "prompts/list", "")
	w.idle(0)
	w.answers(1, "prompts/list", `{"prompts":[{"name":"hi"}]}`)
	if m := w.answered("1"); string(m.Result) != `{"prompts":[{"name":"beta__hi"}]}` {
		t.Errorf("got %s", m.raw)
	}
	w.ask("2", "resources/templates/list", "")
	w.refuses(1, "resources/templates/list", codeNoMethod)
	if m := w.answered("2"); m.Error == nil || m.Error.Code != codeNoMethod {
		t.Errorf("got %s", m.raw)
	}
}

func TestAServerThatDoesNotListInTimeIsLeftOutAndComesBack(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "tools/list", "")
	w.answers(0, "tools/list", `{"tools":[{"name":"a"}]}`)
	slow := w.gets(1, "tools/list")
	w.advance(listTime)
	if got := w.listed("1"); got != "alpha__a" {
		t.Errorf("listed: %s", got)
	}
	if m := w.gets(1, "notifications/cancelled"); !strings.Contains(string(m.Params), `"requestId":`+string(slow.ID)) {
		t.Errorf("beta got %s", m.raw)
	}
	w.quiet()
	w.advance(leastProbe)
	w.answers(1, "ping", "{}")
	for _, kind := range []string{"tools", "prompts", "resources"} {
		w.told("notifications/" + kind + "/list_changed")
	}
	if got := w.knows(`{"name":"a"}`, `{"name":"b"}`); got != "alpha__a beta__b" {
		t.Errorf("listed: %s", got)
	}
	w.advance(time.Hour)
	w.quiet()
	w.idle(1)
}

func TestFilteredToolsAreNotListed(t *testing.T) {
	w := newWorld(t, "defaults: {tool_filter: {deny: [rm]}}", "alpha", "beta")
	w.greeted()
	if got := w.knows(`{"name":"rm"},{"name":"ls"}`, `{"name":"rm"}`); got != "alpha__ls" {
		t.Errorf("listed: %s", got)
	}
}

func TestANewConfigBringsAServerBackAtOnce(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.servers[1].broken = true
	w.dies(1)
	w.greeted()
	w.knows(`{"name":"a"}`, "")
	w.advance(time.Hour)
	w.servers[1].broken = false
	beta := *w.board.members[1].Config
	beta.Command = "mended"
	compiled, _ := policy.Compile(&beta)
	w.step(1, engine.Event{Kind: engine.Reload, Server: &beta, Policy: compiled})
	w.advance(0)
	w.answers(1, "initialize", greeting(everyone))
	w.told("notifications/tools/list_changed")
}

func TestTasksOfAllServersAreListed(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.ask("0", "initialize", hello)
	for i := range w.servers {
		w.answers(i, "initialize", greeting(`{"tasks":{"list":{}}}`))
	}
	w.answered("0")
	w.ask("1", "tasks/list", "")
	w.answers(0, "tasks/list", `{"tasks":[{"taskId":"a"}]}`)
	w.answers(1, "tasks/list", `{"tasks":[{"taskId":"b"}]}`)
	if m := w.answered("1"); string(m.Result) != `{"tasks":[{"taskId":"a"},{"taskId":"b"}]}` {
		t.Errorf("got %s", m.raw)
	}
	w.ask("2", "tasks/get", `{"taskId":"b"}`)
	w.refuses(0, "tasks/get", codeParams)
	w.answers(1, "tasks/get", `{"taskId":"b"}`)
	w.answered("2")
}

func TestOneServersErrorHidesWhatIsItsOwn(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "tools/list", "")
	w.refuses(0, "tools/list", -32603)
	w.answers(1, "tools/list", `{"tools":[{"name":"b"}]}`)
	if got := w.listed("1"); got != "beta__b" {
		t.Errorf("listed: %s", got)
	}
	w.ask("2", "tools/list", "")
	w.refuses(0, "tools/list", -32603)
	w.refuses(1, "tools/list", -32603)
	if m := w.answered("2"); m.Error == nil || m.Error.Code != -32603 {
		t.Errorf("got %s", m.raw)
	}
}

func TestAServerThatCannotStartHidesOnlyItselfAndComesBack(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.servers[1].broken = true
	w.dies(1)
	w.ask("0", "initialize", hello)
	w.quiet()
	w.answers(0, "initialize", greeting(`{"tools":{}}`))
	if m := w.answered("0"); !strings.Contains(string(m.Result), `"capabilities":{"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":true}}`) {
		t.Errorf("got %s", m.raw)
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.gets(0, "notifications/initialized")
	if got := w.knows(`{"name":"a"}`, ""); got != "alpha__a" {
		t.Errorf("listed: %s", got)
	}
	w.ask("1", "tools/call", `{"name":"beta__b"}`)
	if m := w.answered("1"); m.Error == nil || m.Error.Code != engine.CodeUnavailable || m.Error.Data.Server != "beta" || !strings.Contains(m.Error.Message, "not found") {
		t.Errorf("got %s", m.raw)
	}
	w.advance(time.Hour)
	if n := w.servers[1].starts; n < 50 || n > 80 {
		t.Errorf("it was started %d times within an hour", n)
	}
	w.servers[1].broken = false
	for start := w.now; len(w.servers[1].got) == 0 && w.now.Sub(start) <= mostProbe; {
		w.advance(time.Second)
	}
	w.answers(1, "initialize", greeting(everyone))
	w.gets(1, "notifications/initialized")
	for _, kind := range []string{"tools", "prompts", "resources"} {
		w.told("notifications/" + kind + "/list_changed")
	}
	if got := w.knows(`{"name":"a"}`, `{"name":"b"}`); got != "alpha__a beta__b" {
		t.Errorf("listed: %s", got)
	}
	w.advance(time.Hour)
	w.quiet()
}

func TestACallOfAServerThatIsMissingWaitsForIt(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.servers[1].broken = true
	w.dies(1)
	w.greeted()
	w.ask("1", "logging/setLevel", `{"level":"error"}`)
	w.answers(0, "logging/setLevel", "{}")
	w.answered("1")
	w.servers[1].broken = false
	w.advance(10 * time.Second)
	w.ask("2", "tools/call", `{"name":"beta__b"}`)
	w.ask("3", "tools/call", `{"name":"beta__c"}`)
	w.ask("4", "tools/call", `{"name":"beta__d"}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	w.answers(1, "initialize", greeting(everyone))
	w.gets(1, "notifications/initialized")
	w.answers(1, "logging/setLevel", "{}")
	w.answers(1, "tools/list", `{"tools":[]}`) // the engine wants to know their annotations
	for range 2 {
		m := w.answers(1, "tools/call", `{"content":[]}`)
		if strings.Contains(string(m.Params), `"c"`) {
			t.Error("the cancelled call was sent")
		}
	}
	w.answered("2")
	w.answered("4")
	w.quiet()
}

func TestAServerThatDiesIsStartedAgainUnseen(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	w.dies(1)
	w.ask("1", "tools/call", `{"name":"alpha__a"}`)
	w.answers(0, "tools/call", `{"content":[]}`)
	w.answered("1")
	w.ask("2", "tools/call", `{"name":"beta__b"}`)
	w.answers(1, "initialize", greeting(everyone))
	w.gets(1, "notifications/initialized")
	w.answers(1, "tools/call", `{"content":[]}`)
	w.answered("2")
	w.quiet()
	w.idle(0)
}

func TestAServerThatDiesForGoodIsMissedOnce(t *testing.T) {
	w := newWorld(t, "defaults: {restart: never}", "alpha", "beta")
	w.greeted()
	w.dies(1)
	w.ask("1", "tools/list", "")
	w.answers(0, "tools/list", `{"tools":[{"name":"a"}]}`)
	if got := w.listed("1"); got != "alpha__a" {
		t.Errorf("listed: %s", got)
	}
	w.advance(time.Hour)
	if w.servers[1].starts != 1 {
		t.Errorf("it was started %d times", w.servers[1].starts)
	}
	w.quiet()
}

func TestADroppedServerIsMissedWhateverErrorsLookLike(t *testing.T) {
	for _, errors := range []string{"protocol", "result"} {
		t.Run(errors, func(t *testing.T) {
			w := newWorld(t, "defaults: {retry: {max_retries: 0}, errors: "+errors+"}", "alpha", "beta")
			w.greeted()
			w.knows(`{"name":"a"}`, `{"name":"b"}`)
			w.servers[1].broken = true
			w.dies(1)
			w.ask("1", "tools/call", `{"name":"beta__b"}`)
			w.advance(10 * time.Second)
			if m := w.answered("1"); !strings.Contains(m.raw, "not found") || (m.Error == nil) != (errors == "result") {
				t.Errorf("the client got %s", m.raw)
			}
			w.told("notifications/tools/list_changed")
			i := slices.IndexFunc(w.logs, func(r engine.Record) bool { return r.Event == "server_missing" })
			if i < 0 || !strings.Contains(w.logs[i].Detail, "not found") {
				t.Errorf("the log does not say what is missing: %+v", w.logs)
			}
		})
	}
}

func TestACallThatItsServerNeverGotIsTalliedAsAnyOther(t *testing.T) {
	for errors, member := range map[string]string{"protocol": `"error":{"code":-31004`, "result": `"isError":true`} {
		t.Run(errors, func(t *testing.T) {
			w := newWorld(t, "defaults: {errors: "+errors+"}", "alpha", "beta")
			var ended []string
			w.board.members[1].Meter = &engine.Meter{
				CallBegan: func(tool engine.ToolName) { ended = append(ended, "begun "+tool.Name) },
				CallEnded: func(tool engine.ToolName, end engine.CallEnd) { ended = append(ended, end.Status+" "+tool.Name) },
			}
			w.servers[1].broken = true
			w.dies(1)
			w.greeted()
			w.ask("1", "tools/call", `{"name":"beta__b"}`)
			w.ask("2", "prompts/get", `{"name":"beta__b"}`)
			if m := w.answered("2"); m.Error == nil || m.Error.Code != -31004 {
				t.Errorf("of the prompt the client got %s", m.raw)
			}
			m := w.answered("1")
			for _, part := range []string{member, `"data":{"source":"mcp-retry","kind":"unavailable","server":"beta","tool":"b",` +
				`"attempts":0,"delivery":"not_sent","mayHaveExecuted":"no"}`, "not found"} {
				if !strings.Contains(m.raw, part) {
					t.Errorf("there is no %s in %s", part, m.raw)
				}
			}
			i := slices.IndexFunc(w.logs, func(r engine.Record) bool { return r.Event == "tool_call_end" })
			if i < 0 {
				t.Fatalf("no record of the call: %+v", w.logs)
			}
			if r := w.logs[i]; r.Server != "beta" || r.Tool != "b" || r.RequestID != "1" || r.Status != "error" || r.Code != -31004 || r.Delivery != "not_sent" {
				t.Errorf("the log says %+v", r)
			}
			if got := strings.Join(ended, ", "); got != "begun b, error b" {
				t.Errorf("counted: %s", got)
			}
		})
	}
}

func TestACallThatIsCancelledBeforeItsServerIsThereIsTallied(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.servers[1].broken = true
	w.dies(1)
	w.greeted()
	w.servers[1].broken = false
	w.advance(10 * time.Second)
	w.ask("1", "tools/call", `{"name":"beta__b"}`)
	w.ask("2", "tools/call", `{"name":"beta__c"}`)
	w.advance(time.Second)
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.step(0, engine.Event{Kind: engine.Terminate})
	w.answered("2")
	var ends []string
	for _, r := range w.logs {
		if r.Event == "tool_call_end" {
			ends = append(ends, r.Tool+" "+r.Status+" "+r.Duration.String())
		}
	}
	if got := strings.Join(ends, ", "); got != "b cancelled 1s, c cancelled 1s" {
		t.Errorf("the log tells: %s", got)
	}
}
