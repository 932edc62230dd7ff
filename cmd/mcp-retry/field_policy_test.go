package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB68ListChangedDropsWhatIsCached(t *testing.T) {
	t.Parallel()
	script := toolbox(always(readTool("read"), flaky.Outcome{}))
	script.On = map[string][]flaky.Message{"notifications/vendor/change": {{Method: "notifications/tools/list_changed"}}}
	script.Methods = map[string]flaky.Plan{"tools/list": {Outcomes: []flaky.Outcome{{}, {Result: flaky.Raw(`{"tools":[]}`)}}}}
	f := startField(t, "cache: {default_ttl: 600}\n", script)
	f.open()
	for _, id := range []string{"1", "2"} {
		f.call(id, "read", "{}")
		f.success(id)
	}
	f.attempts("read", 1)
	f.notify("notifications/vendor/change", `{}`)
	f.message("notifications/tools/list_changed")
	f.request("3", "tools/list", `{}`)
	if got := string(f.success("3").Result); got != `{"tools":[]}` {
		t.Errorf("the client got the list %s", got)
	}
	f.call("4", "read", "{}")
	f.success("4")
	f.attempts("read", 2)
}

func TestB68ToolsThatDifferAfterARestartAreAnnounced(t *testing.T) {
	t.Parallel()
	first := plainTool("first")
	first.Lives = []int{1}
	f := startField(t, "retry: {base_delay: 0.01}\n", toolbox(first, readTool("dies", flaky.Outcome{Exit: new(1)})))
	f.open()
	f.call("1", "dies", "{}")
	f.success("1")
	f.message("notifications/tools/list_changed")
	f.nothingElse()
}

func TestB70RefusedProtocolVersionPassesVerbatimAndOnce(t *testing.T) {
	t.Parallel()
	refusal := &flaky.Error{Code: -32602, Message: "Unsupported protocol version", Data: flaky.Raw(`{"supported": ["2024-11-05"], "requested": "2025-06-18"}`)}
	script := toolbox(plainTool("work"))
	script.Methods = map[string]flaky.Plan{"initialize": {Outcomes: []flaky.Outcome{{Error: refusal}}}}
	f := startField(t, "retry: {base_delay: 0.01}\ncircuit_breaker: {failure_threshold: 1}\n", script)
	f.request("1", "initialize", fieldHello)
	want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2024-11-05"],"requested":"2025-06-18"}}}`
	if got := f.answer("1").line; got != want {
		t.Errorf("the client got %s", got)
	}
	ledger := f.readLedger()
	if ledger.Requests("initialize") != 1 || ledger.Lives() != 1 {
		t.Errorf("initialize was sent %d times to %d lives", ledger.Requests("initialize"), ledger.Lives())
	}
	f.open()
	f.call("2", "work", "{}")
	f.success("2")
}

func TestB70ServerAnswersWithAnOlderRevision(t *testing.T) {
	t.Parallel()
	script := toolbox(readTool("work", flaky.Outcome{Exit: new(1)}))
	script.Protocol = "2024-11-05"
	script.StrictHandshake = true
	f := startField(t, "retry: {base_delay: 0.01}\n", script)
	if hello := f.greet(); !strings.Contains(hello.line, `"protocolVersion":"2024-11-05"`) {
		t.Errorf("the client got %s", hello.line)
	}
	f.call("1", "work", "{}")
	f.success("1")
	hellos := f.readLedger().Received("initialize")
	if len(hellos) != 2 || !strings.HasSuffix(hellos[1], `"params":`+fieldHello+`}`) {
		t.Errorf("the server was greeted with %s", hellos)
	}
}

func TestB72LinesOfTheClientThatAreNoMessage(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("waits", flaky.Outcome{Ask: &flaky.Message{Method: "roots/list"}})))
	f.open()
	before := len(f.readLedger().Events(flaky.EventReceived))
	for _, c := range []struct {
		line, id string
		code     int
	}{
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, "null", -32600},
		{`[]`, "null", -32600},
		{`[1,2]`, "null", -32600},
		{`{"jsonrpc":"2.0","id":3,"method":"pi`, "null", -32700},
		{`7`, "null", -32600},
		{`null`, "null", -32600},
		{`"text"`, "null", -32600},
		{`{`, "null", -32700},
		{`{"jsonrpc":"2.0","id":4}`, "4", -32600},
		{`{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"x"}}`, "5", -32600},
		{`{"jsonrpc":"2.0","id":6,"method":7}`, "6", -32600},
		{`{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":8,"id":9,"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":8,"method":"ping"} {"jsonrpc":"2.0","id":9,"method":"ping"}`, "null", -32700},
	} {
		f.send(c.line)
		r := f.frame("an answer to "+c.line, func(r *fieldFrame) bool { return r.Error != nil })
		if r.Error.Code != c.code || string(r.ID) != c.id && string(r.ID) != "null" {
			t.Errorf("%s is answered by %s", c.line, r.line)
		}
		f.mu.Lock()
		delete(f.told, string(r.ID)) // it answers no request
		f.mu.Unlock()
	}
	f.call("1", "waits", "{}")
	f.message("roots/list")
	f.send(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`)
	f.failure("null", -32600) // under id 1 it would end the call that is open
	f.cancel("1")
	f.ping()
	f.nothingElse()
	if after := len(f.readLedger().Events(flaky.EventReceived)); after != before+3 {
		t.Errorf("%d of the lines reached the server", after-before-3)
	}
}

func TestB72ServerSendsBatches(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("work", flaky.Outcome{Raw: []string{
		`[]`, `[1,2,null]`, `[[]]`,
		`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"one"}},` +
			`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"in a batch"}]}}]`,
	}, Hang: true})))
	f.open()
	f.call("1", "work", "{}")
	if id := f.serverID("work", 0); id != "3" {
		t.Fatalf("the server got id %s", id)
	}
	f.message("notifications/message")
	if got := f.success("1").text(); got != "in a batch" {
		t.Errorf("the client got %q", got)
	}
	f.ping()
	f.nothingElse()
}

func TestB89RateLimitWithinAResultIsRetriedOnlyByARule(t *testing.T) {
	t.Parallel()
	limited := flaky.Outcome{IsError: "rate limit reached, try again shortly"}
	const rule = "policy:\n" +
		"  - name: rate limited\n" +
		"    when: 'tool.name != \"unruled\" && error.kind == \"tool\" && error.text.contains(\"rate limit\")'\n" +
		"    retry: true\n" +
		"    retry_delay: 10ms\n"
	f := startField(t, "retry: {max_retries: 2}\ncache: {default_ttl: 60}\n"+rule, toolbox(
		readTool("ruled", limited, limited),
		readTool("unruled", limited),
		readTool("ordinary", flaky.Outcome{Text: "the rate limit is 60 calls a minute"}),
		readTool("hopeless", limited, limited, limited),
	))
	f.open()
	f.call("1", "ruled", "{}")
	f.success("1")
	f.attempts("ruled", 3)
	want := `{"content":[{"type":"text","text":"rate limit reached, try again shortly"}],"isError":true}`
	f.call("2", "unruled", "{}")
	if got := string(f.answer("2").Result); got != want {
		t.Errorf("the client got %s", got)
	}
	f.attempts("unruled", 1)
	f.call("3", "ordinary", "{}")
	f.success("3")
	f.attempts("ordinary", 1)
	f.call("4", "hopeless", "{}")
	if got := string(f.answer("4").Result); got != want {
		t.Errorf("the client got %s", got)
	}
	f.attempts("hopeless", 3)
	f.call("5", "hopeless", "{}")
	f.success("5")
	f.attempts("hopeless", 4)
}

func TestB102ReadAfterWriteIsFresh(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		write flaky.Tool
	}{
		{"write", unsafeTool("write")},
		{"write that fails half-way", unsafeTool("write", flaky.Outcome{Effect: new(true), IsError: "half of it"})},
		{"write that is answered by an error", unsafeTool("write", flaky.Outcome{Effect: new(true), Error: &flaky.Error{Code: -32000, Message: "half of it"}})},
		{"write that times out", unsafeTool("write", flaky.Outcome{Effect: new(true), Hang: true})},
		{"write that kills the server", unsafeTool("write", flaky.Outcome{Effect: new(true), Exit: new(1)})},
		{"tool of which nothing is known", plainTool("write")},
		{"tool of which nothing is known, and that times out", plainTool("write", flaky.Outcome{Effect: new(true), Hang: true})},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startField(t, "retry: {max_retries: 0}\ncache: {tools: {read: 600}}\ntools: {write: {call_timeout: 0.4}}\n", toolbox(readTool("read"), c.write))
			f.open()
			for _, id := range []string{"1", "2"} {
				f.call(id, "read", `{"key":"k"}`)
				if got := f.success(id).execution(); got != 1 {
					t.Errorf("the first read got execution %d", got)
				}
			}
			f.call("3", "write", `{"key":"k"}`)
			f.answer("3")
			f.call("4", "read", `{"key":"k"}`)
			if got := f.success("4").execution(); got != 2 {
				t.Errorf("the read after the write got execution %d", got)
			}
		})
	}
}

func TestB102ReadDuringAWriteIsNotKept(t *testing.T) {
	t.Parallel()
	f := startField(t, "cache: {tools: {read: 600}}\n", toolbox(readTool("read", flaky.Outcome{Ask: gate()}), unsafeTool("write")))
	f.open()
	f.call("1", "read", "{}")
	read := f.message("gate")
	f.call("2", "write", "{}")
	f.success("2")
	f.pass(read)
	f.success("1") // read before the write, answered after it
	f.call("3", "read", "{}")
	if got := f.success("3").execution(); got != 2 {
		t.Errorf("the read after the write got execution %d", got)
	}
}

func TestB103ErrorsAreNotCached(t *testing.T) {
	t.Parallel()
	f := startField(t, "retry: {max_retries: 0}\ncache: {default_ttl: 600, tools: {ruled: 600}}\nidempotency_ttl: 600\n"+
		"policy:\n  - {name: not found, cache_ttl: 'result.content[0].text == \"not found\" ? duration(\"0s\") : duration(\"600s\")'}\n", toolbox(
		readTool("is_error", flaky.Outcome{IsError: "busy"}),
		readTool("error", flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}),
		readTool("ruled", flaky.Outcome{Text: "not found"}),
		unsafeTool("unsafe", flaky.Outcome{IsError: "busy"}),
	))
	f.open()
	for i, tool := range []string{"is_error", "error", "ruled", "unsafe"} {
		id := strconv.Itoa(10 * i)
		f.call(id, tool, "{}")
		first := f.answer(id)
		if first.execution() != 0 {
			t.Errorf("%s: the first answer is %s", tool, first.line)
		}
		id = strconv.Itoa(10*i + 1)
		f.call(id, tool, "{}")
		if got := f.success(id); got.execution() == 0 {
			t.Errorf("%s: the second call got %s", tool, got.line)
		}
		f.attempts(tool, 2)
	}
}

func TestB109RepeatOfAWriteWhoseAnswerWasLostRunsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, settings, meta string }{
		{"with a key of the client", "", `,"_meta":{"idempotencyKey":"k"}`},
		{"with idempotency_ttl", "idempotency_ttl: 600\n", ""},
		{"with nothing said", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startField(t, "retry: {max_retries: 0}\npolicy: [{when: has(meta.impatient), call_timeout: 0.2s}]\n"+c.settings, toolbox(
				always(unsafeTool("create"), flaky.Outcome{Ask: gate()}),
				always(unsafeTool("late"), flaky.Outcome{Ask: gate()}),
				unsafeTool("fails", flaky.Outcome{Effect: new(false), Error: &flaky.Error{Code: -1, Message: "no"}}),
			))
			f.open()
			f.call("1", "create", `{"a":1}`+c.meta)
			first := f.message("gate")
			f.cancel("1")
			f.call("2", "create", `{"a":1}`+c.meta)
			f.pass(first)
			if got := f.success("2").execution(); got != 1 {
				t.Errorf("the repeat after a cancellation got execution %d", got)
			}
			impatient := `,"_meta":{"impatient":true}`
			if c.meta != "" {
				impatient = strings.Replace(c.meta, `{`, `{"impatient":true,`, 1)
			}
			f.call("3", "late", `{"a":1}`+impatient)
			late := f.message("gate")
			f.failure("3", -31001)
			f.call("4", "late", `{"a":1}`+c.meta)
			f.pass(late)
			if got := f.success("4").execution(); got != 1 {
				t.Errorf("the repeat after a timeout got execution %d", got)
			}
			f.call("7", "create", `{"a":2}`+strings.Replace(c.meta, `"k"`, `"l"`, 1))
			second := f.message("gate")
			f.cancel("7")
			f.pass(second)
			f.written("the late answer", func(l flaky.Ledger) bool {
				return slices.ContainsFunc(l.Events(flaky.EventSent), func(e flaky.Entry) bool { return strings.Contains(e.Line, `"create\",\"execution\":2`) })
			})
			f.ping() // it has come, and nobody was there to take it
			f.call("8", "create", `{"a":2}`+strings.Replace(c.meta, `"k"`, `"l"`, 1))
			if got := f.success("8").execution(); got != 2 {
				t.Errorf("the repeat after a late answer got execution %d", got)
			}
			f.attempts("create", 2)
			f.attempts("late", 1)
			f.call("5", "fails", `{"a":1}`+c.meta)
			f.failure("5", -1)
			f.call("6", "fails", `{"a":1}`+c.meta)
			f.success("6")
		})
	}
}

func TestB111CallWithoutAnAnswerEnds(t *testing.T) {
	t.Parallel()
	f := fieldSetup{
		script: toolbox(plainTool("never", flaky.Outcome{Hang: true}), plainTool("work")),
		wrap:   []string{"--timeout", "3", "--retries", "0"},
	}.start(t)
	f.open()
	f.call(`"stuck"`, "never", "{}")
	id := f.serverID("never", 0)
	f.call("2", "work", "{}")
	f.success("2")
	e := f.failure(`"stuck"`, -31001).Error
	if !strings.HasPrefix(e.Message, "Tool 'never' timed out after 3000ms") {
		t.Errorf("the error is %q", e.Message)
	}
	f.cancelled(id)
	f.ping()
}

func TestB111ThereIsATimeoutByDefault(t *testing.T) {
	t.Parallel()
	normal, stderr, status := fieldCommand("explain", "--config", fieldFile(t, "mcp-retry.yaml", "servers: {a: {command: x}}\n"))
	if status != exitFine || !strings.Contains(normal, "call_timeout: 30s") || !strings.Contains(normal, "max_call_time: 600s") {
		t.Errorf("exit status %d: %s%s", status, normal, stderr)
	}
}
