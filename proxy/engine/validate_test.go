package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// validating is a session of a revision whose tools have schemas. The check of a schema {"want":X} is that a value is X.
func validating(t *testing.T, revision, settings string) (w *world, compiled *int) {
	t.Helper()
	server, policy, err := load(settings)
	if err != nil {
		t.Fatal(err)
	}
	compiled = new(int)
	compile := func(schema []byte) (engine.CheckValue, error) {
		*compiled++
		if strings.Contains(string(schema), "bad") {
			return nil, errors.New("it makes no sense")
		}
		return func(value []byte) (string, error) {
			switch {
			case string(value) == `{"too":"large"}`:
				return "", errors.New("it is too large")
			case strings.Contains(string(schema), string(value)):
				return "", nil
			}
			return "at '/n': it is another", nil
		}, nil
	}
	w = &world{t: t, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.e = engine.New(engine.Config{Server: server, Policy: policy, Seed: 1, LogLevel: engine.LevelDebug, CompileSchema: compile})
	w.now = w.start
	w.step(engine.Event{Kind: engine.Tick})
	w.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"` + revision + `"}}`)
	w.reply(w.request("initialize"), `{"protocolVersion":"`+revision+`","capabilities":{}}`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.list(`{"want":{"n":1}}`)
	return w, compiled
}

// list plays that the client lists the tools; counts has this outputSchema.
func (w *world) list(schema string) {
	w.t.Helper()
	w.send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	w.reply(w.request("tools/list"), `{"tools":[{"name":"plain"},{"name":"write","annotations":{"readOnlyHint":false}},
		{"name":"read","annotations":{"readOnlyHint":true}},{"name":"count","annotations":{"readOnlyHint":true},"outputSchema":`+schema+`}]}`)
	w.client = nil
}

func TestResultsAreHeldAgainstTheShapeOfTheirRevision(t *testing.T) {
	const oldest, second, third, newest = "2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28"
	for _, tt := range []struct{ revision, result, wrong string }{
		{oldest, `{"content":[]}`, ""},
		{oldest, `{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"image/png"}],"isError":false,"_meta":{}}`, ""},
		{oldest, `{"content":[{"type":"resource","resource":{"uri":"a:b","text":""}},{"type":"resource","resource":{"uri":"a:b","blob":""}}]}`, ""},
		{oldest, `{"content":[{"type":"text","text":"a","more":1}],"more":[]}`, ""},
		{oldest, `[]`, "the result must be an object"},
		{oldest, `{}`, "content is missing"},
		{oldest, `{"content":"text"}`, "content must be a list"},
		{oldest, `{"content":null}`, "content must be a list"},
		{oldest, `{"content":[],"content":{}}`, "content must be a list"},
		{oldest, `{"content":["text"]}`, "content[0] must be an object"},
		{oldest, `{"content":[{"text":"no type"}]}`, "content[0] has no type"},
		{oldest, `{"content":[{"type":"text","text":"a"},{"type":"text"}]}`, "content[1].text must be a text"},
		{oldest, `{"content":[{"type":"text","text":1}]}`, "content[0].text must be a text"},
		{oldest, `{"content":[{"type":"image","data":"x"}]}`, "content[0].mimeType must be a text"},
		{oldest, `{"content":[{"type":"resource","resource":"x"}]}`, "content[0].resource must be an object"},
		{oldest, `{"content":[{"type":"resource","resource":{"text":""}}]}`, "content[0].resource.uri must be a text"},
		{oldest, `{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}`, "content[0].resource must have a text or a blob"},
		{oldest, `{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}`, `content[0] is of type "audio", which 2024-11-05 does not know`},
		{second, `{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}`, ""},
		{second, `{"content":[{"type":"resource_link","uri":"a:b","name":"c"}]}`, `content[0] is of type "resource_link", which 2025-03-26 does not know`},
		{third, `{"content":[{"type":"resource_link","uri":"a:b","name":"c"}]}`, ""},
		{third, `{"content":[{"type":"resource_link","uri":"a:b"}]}`, "content[0].name must be a text"},
		{third, `{"content":[{"type":"vidéo"}]}`, `content[0] is of type "vidéo", which 2025-06-18 does not know`},
		{third, `{"content":[],"isError":"no"}`, "isError must be true or false"},
		{third, `{"content":[],"_meta":1}`, "_meta must be an object"},
		{third, `{"content":[],"structuredContent":[1]}`, "structuredContent must be an object"},
		{third, `{"content":[],"structuredContent":{}}`, ""},
		{newest, `{"content":[],"structuredContent":[1]}`, ""},
		{newest, `{"content":[],"resultType":"complete"}`, ""},
		{newest, `{"resultType":"input_required","content":null,"inputRequests":{}}`, ""},
		{newest, `{"resultType":"task","taskId":"1"}`, ""},
		{newest, `{"resultType":"perhaps","content":[]}`, `resultType is "perhaps", which 2026-07-28 does not know`},
		{third, `{"task":{"taskId":"1"}}`, ""},
		{"", `{"content":[{"type":"audio","data":"","mimeType":"a/b"}],"structuredContent":1}`, ""},
	} {
		t.Run(tt.revision+" "+tt.result, func(t *testing.T) {
			w, _ := validating(t, tt.revision, "validate_results: enforce")
			w.call("1", "plain", `{}`)
			w.reply(w.attempt(), tt.result)
			if tt.wrong == "" {
				w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":` + tt.result + `}`)
				return
			}
			m := w.answer("1")
			failure, _ := m["error"].(map[string]any)
			message, _ := failure["message"].(string)
			if !strings.Contains(message, ": "+tt.wrong+".") {
				t.Errorf("the answer is %v; want it to say %q", m, tt.wrong)
			}
			if data, _ := failure["data"].(map[string]any); data["kind"] != "malformed" || data["delivery"] != "answered" || data["mayHaveExecuted"] != "yes" {
				t.Errorf("the data is %v", data)
			}
		})
	}
}

func TestStructuredContentIsHeldAgainstTheSchemaOfItsTool(t *testing.T) {
	for _, tt := range []struct{ revision, schema, result, wrong, unchecked string }{
		{"2025-06-18", `{"want":{"n":1}}`, `{"content":[],"structuredContent":{"n":1}}`, "", ""},
		{"2025-06-18", `{"want":{"n":1}}`, `{"content":[],"structuredContent":{"n":2}}`, "structuredContent does not match the tool's outputSchema: at '/n': it is another", ""},
		{"2025-06-18", `{"want":{"n":1}}`, `{"content":[]}`, "structuredContent is missing, though the tool has an outputSchema", ""},
		{"2025-03-26", `{"want":{"n":1}}`, `{"content":[]}`, "", ""},
		{"2025-06-18", `{"want":{"n":1}}`, `{"content":[{"type":"text","text":"no"}],"isError":true}`, "", ""},
		{"2025-06-18", `{"bad":1}`, `{"content":[],"structuredContent":{"n":2}}`, "", "it makes no sense"},
		{"2025-06-18", `{"want":{"n":1}}`, `{"content":[],"structuredContent":{"too":"large"}}`, "", "it is too large"},
		{"2025-06-18", `null`, `{"content":[],"structuredContent":{"n":2}}`, "", ""},
	} {
		t.Run(tt.revision+" "+tt.schema+" "+tt.result, func(t *testing.T) {
			w, _ := validating(t, tt.revision, "validate_results: enforce")
			w.list(tt.schema)
			w.call("1", "count", `{}`)
			w.reply(w.attempt(), tt.result)
			said := fmt.Sprint(w.answer("1"))
			if tt.wrong != "" && !strings.Contains(said, tt.wrong) || tt.wrong == "" && !strings.Contains(said, "content:") {
				t.Errorf("the answer is %s; want %q", said, tt.wrong)
			}
			if got := w.detail("unchecked_result"); !strings.Contains(got, tt.unchecked) || (tt.unchecked == "") != (got == "") {
				t.Errorf("the log says %q; want %q", got, tt.unchecked)
			}
		})
	}
}

// detail is what the last log record of an event says.
func (w *world) detail(event string) (detail string) {
	for _, r := range w.logs {
		if r.Event == event {
			detail = r.Detail
		}
	}
	return detail
}

func TestASchemaIsCompiledWhenItIsFirstNeeded(t *testing.T) {
	w, compiled := validating(t, "2025-06-18", "validate_results: warn")
	count := func(want int) {
		t.Helper()
		w.call("1", "count", `{}`)
		w.reply(w.attempt(), `{"content":[],"structuredContent":{"n":1}}`)
		w.client = nil
		if *compiled != want {
			t.Errorf("%d schemas were compiled; want %d", *compiled, want)
		}
	}
	if *compiled != 0 {
		t.Error("it was compiled when it was listed")
	}
	count(1)
	count(1)
	w.list(`{"want":{"n":1}}`)
	count(1)
	w.list(`{"want":{"n":1},"other":1}`)
	count(2)
	w.list(`{"bad":1}`)
	count(3)
	count(3)
}

func TestWarnLetsAnInvalidResultPassAndSaysSo(t *testing.T) {
	w, _ := validating(t, "2025-06-18", "validate_results: warn")
	w.call("1", "plain", `{}`)
	w.reply(w.attempt(), `{"content":"text"}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"content":"text"}}`)
	for _, r := range w.logs {
		if r.Event == "invalid_result" && r.Level == engine.LevelWarn && r.Tool == "plain" && r.RequestID == "1" && r.Detail == "content must be a list" {
			return
		}
	}
	t.Errorf("the log is %+v", w.logs)
}

func TestResultsAreNotValidatedUnlessToldSo(t *testing.T) {
	w, compiled := validating(t, "2025-06-18", "tools: {other: {validate_results: enforce}}")
	w.call("1", "count", `{}`)
	w.reply(w.attempt(), `{"content":"text"}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"content":"text"}}`)
	if *compiled != 0 || w.logged("invalid_result") != 0 {
		t.Error("it was validated")
	}
}

// An invalid result is a failure that the built-in policy does not retry, and that rules see as malformed.
func TestAnInvalidResultIsRetriedOnlyIfARuleSaysSo(t *testing.T) {
	for rule, attempts := range map[string]int{
		"": 1,
		"policy: [{when: 'error.kind == \"malformed\" && error.delivery == \"answered\" && !error.transient', retry: true}]": 3,
	} {
		w, _ := validating(t, "2025-06-18", "validate_results: enforce\nretry: {max_retries: 2, base_delay: 0, jitter: 0}\n"+rule)
		w.call("1", "count", `{}`)
		for range attempts {
			w.reply(w.attempt(), `{"content":[],"structuredContent":{"n":2}}`)
		}
		w.wantError("1", engine.CodeInvalidResult)
		w.quiet()
	}
}

func TestAnInvalidResultIsNeitherCachedNorKept(t *testing.T) {
	w, _ := validating(t, "2025-06-18", "validate_results: enforce\ncache: {tools: {count: 60}}\nidempotency_ttl: 60\nretry: {max_retries: 0}")
	for _, tool := range []string{"count", "write"} {
		w.call("1", tool, `{}`)
		w.reply(w.attempt(), `{"content":"text"}`)
		w.wantError("1", engine.CodeInvalidResult)
		w.call("2", tool, `{}`)
		w.reply(w.attempt(), `{"content":[],"structuredContent":{"n":1}}`)
		w.client = nil
		w.call("3", tool, `{}`)
		w.quiet()
		w.client = nil
	}
}

// So is one that comes too late.
func TestALateResultThatIsInvalidIsNotKept(t *testing.T) {
	w, _ := validating(t, "2025-06-18", "validate_results: enforce\ncall_timeout: 1\ntotal_timeout: 3\nretry: {max_retries: 0}")
	w.call("1", "write", `{}`)
	a := w.attempt()
	w.advance(time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.reply(a, `{"content":"text"}`)
	w.call("2", "write", `{}`)
	w.attempt()
}

func TestACallIsLoggedWhenItIsAdmitted(t *testing.T) {
	w := session(t, "tool_filter: {deny: [write]}")
	w.call("1", "read", `{}`)
	w.call("2", "write", `{}`)
	if w.logged("tool_call_start") != 2 {
		t.Errorf("the log is %+v", w.logs)
	}
}

func TestAnOutputSchemaThatIsNoObjectAsksForNothingAndIsTold(t *testing.T) {
	for schema, want := range map[string]int{`"string"`: 1, `true`: 1, `false`: 1, `[{}]`: 1, `7`: 1, `null`: 0} {
		w, compiled := validating(t, "2025-06-18", "validate_results: enforce\nretry: {max_retries: 0}")
		w.list(schema)
		for _, result := range []string{`{"content":[],"structuredContent":{"n":2}}`, `{"content":[]}`} {
			w.call("1", "count", fmt.Sprintf(`{"n":%d}`, len(result)))
			w.reply(w.attempt(), result)
			w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)
		}
		told := 0
		for _, r := range w.logs {
			if r.Event == "unchecked_result" && strings.Contains(r.Detail, "no JSON object") {
				told++
			}
		}
		if told != want || *compiled > 0 {
			t.Errorf("%s: told %d times, compiled %d times", schema, told, *compiled)
		}
	}
}
