package engine_test

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// What tool_filter hides is cut out of tools/list, and nothing else of the answer is touched.
func TestHiddenToolsAreCutOutOfTheList(t *testing.T) {
	for _, tt := range []struct {
		name, filter, result, want string
	}{
		{"the first", `{deny: [a]}`, `{"tools":[{"name":"a"},{"name":"b"}]}`, `{"tools":[{"name":"b"}]}`},
		{"the last", `{deny: [b]}`, `{"tools":[{"name":"a"},{"name":"b"}]}`, `{"tools":[{"name":"a"}]}`},
		{"one in the middle", `{deny: [b]}`, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"tools":[{"name":"a"},{"name":"c"}]}`},
		{"every other", `{deny: [a, c]}`, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`, `{"tools":[{"name":"b"},{"name":"d"}]}`},
		{"several in a row", `{allow: [a, d]}`, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}`, `{"tools":[{"name":"a"},{"name":"d"}]}`},
		{"the first ones", `{allow: [c]}`, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"tools":[{"name":"c"}]}`},
		{"all, and the cursor lives on", `{allow: []}`, `{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}`, `{"tools":[],"nextCursor":"2"}`},
		{"none", `{allow: ["*"]}`, `{"tools":[{"name":"a"}]}`, `{"tools":[{"name":"a"}]}`},
		{"deny wins", `{allow: ["get_*"], deny: ["*_b"]}`, `{"tools":[{"name":"get_a"},{"name":"get_b"}]}`, `{"tools":[{"name":"get_a"}]}`},
		{"blanks stay", `{deny: [b]}`, `{ "tools" : [ {"name":"a"} , { "name" : "b" } , {"name":"c" } ] , "x":[ ] }`,
			`{ "tools" : [ {"name":"a"} , {"name":"c" } ] , "x":[ ] }`},
		{"a name in escapes", `{deny: [b]}`, `{"tools":[{"name":"\u0062"},{"n\u0061me":"b"},{"name":"c"}]}`, `{"tools":[{"name":"c"}]}`},
		{"a name that is repeated", `{deny: [b]}`, `{"tools":[{"name":"a","name":"b"},{"name":"b","name":"a"}]}`, `{"tools":[]}`},
		{"a list that is repeated", `{deny: [b]}`, `{"tools":[{"name":"b"}],"tools":[{"name":"a"},{"name":"b"}]}`, `{"tools":[],"tools":[{"name":"a"}]}`},
		{"what is no tool", `{deny: [b]}`, `{"tools":[1,{},{"name":2},{"name":"a"},null]}`, `{"tools":[{"name":"a"}]}`},
		{"names elsewhere", `{deny: [b]}`, `{"tools":[{"name":"a","inputSchema":{"name":"b"}}],"_meta":{"tools":[{"name":"b"}]}}`,
			`{"tools":[{"name":"a","inputSchema":{"name":"b"}}],"_meta":{"tools":[{"name":"b"}]}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "tool_filter: "+tt.filter)
			w.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`)
			w.reply(w.request("initialize"), `{}`)
			w.client = nil
			w.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
			w.reply(w.request("tools/list"), tt.result)
			w.wantToClient(`{"jsonrpc":"2.0","id":"list","result":` + tt.want + `}`)

			w.send(`{"jsonrpc":"2.0","id":"again","method":"tools/list"}`) // some servers write the id last
			w.say(`{"result":` + tt.result + `,"id":` + idOf(w.request("tools/list")) + `,"jsonrpc":"2.0"}`)
			w.wantToClient(`{"result":` + tt.want + `,"id":"again","jsonrpc":"2.0"}`)
		})
	}
}

func TestHiddenToolsAreCutInSessionsWithoutAHandshake(t *testing.T) {
	w := newWorld(t, "tool_filter: {deny: [b]}")
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`)
	w.reply(w.request("tools/list"), `{"resultType":"complete","ttlMs":1000,"tools":[{"name":"a"},{"name":"b"}]}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":1000,"tools":[{"name":"a"}]}}`)
	w.call("2", "b", `{}`, `"_meta":{`+modernMeta+`}`)
	w.wantError("2", engine.CodeDenied)
	w.quiet()
}

func TestAHiddenToolCannotBeCalled(t *testing.T) {
	w := session(t, "tool_filter: {deny: [wr*]}\ncache: {tools: {\"*\": 60}}")
	w.call("1", "write", `{}`)
	if data := w.wantError("1", engine.CodeDenied); data["rule"] != "tool_filter" || data["mayHaveExecuted"] != "no" {
		t.Errorf("the data is %v", data)
	}
	w.quiet()
	w.call("2", "read", `{}`)
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
}

// After a restart the client is told of other tools only if it can see them.
func TestAChangeOfHiddenToolsIsNoChangeOfTheList(t *testing.T) {
	for _, tt := range []struct {
		name, tools string
		told        bool
	}{
		{"a hidden one is new", strings.Replace(tools, `{"name":"plain"}`, `{"name":"plain"},{"name":"write_more"}`, 1), false},
		{"a hidden one has changed", strings.Replace(tools, `"destructiveHint":true`, `"destructiveHint":false`, 1), false},
		{"another one is new", strings.Replace(tools, `{"name":"plain"}`, `{"name":"plain"},{"name":"more"}`, 1), true},
		{"nothing has changed", tools, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := session(t, "tool_filter: {deny: [wr*]}\nretry: {max_retries: 0}")
			w.die()
			w.call("1", "read", `{}`)
			w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}}`)
			w.request("notifications/initialized")
			w.reply(w.request("tools/list"), tt.tools)
			told := len(w.client) > 0 && strings.Contains(w.client[0], "list_changed")
			if told != tt.told {
				t.Errorf("the client got %q", w.client)
			}
		})
	}
}
