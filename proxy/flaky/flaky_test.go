package flaky_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestMain(m *testing.M) {
	if code, ok := flaky.MainFromEnv(); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// session is a client that speaks to one life of a server in this process.
type session struct {
	t      *testing.T
	in     *io.PipeWriter
	out    *bufio.Reader
	status chan int
}

// start begins one life.
func start(t *testing.T, script flaky.Script) *session {
	t.Helper()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	s := &session{t: t, in: in, out: bufio.NewReader(out), status: make(chan int, 1)}
	go func() {
		status := flaky.Serve(inReader, outWriter, io.Discard, script)
		outWriter.Close()
		inReader.Close()
		s.status <- status
	}()
	t.Cleanup(func() { in.Close(); out.Close() })
	return s
}

// send writes a line.
func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatalf("sending %s: %v", line, err)
	}
}

// line reads a line, its end included.
func (s *session) line() string {
	s.t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("reading a line: %v after %q", err, line)
	}
	return line
}

// want reads a line and compares it.
func (s *session) want(line string) {
	s.t.Helper()
	if got := strings.TrimSuffix(s.line(), "\n"); got != line {
		s.t.Fatalf("got  %s\nwant %s", got, line)
	}
}

// finish ends the input, and returns the exit status and what was still written.
func (s *session) finish() (status int, rest string) {
	s.t.Helper()
	s.in.Close()
	text, err := io.ReadAll(s.out)
	if err != nil {
		s.t.Fatalf("reading the rest: %v", err)
	}
	return <-s.status, string(text)
}

func call(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"n":%d}}}`, id, tool, id)
}

func answer(id int, member string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, member)
}

// report is the result of an ordinary call made by [call].
func report(id int, tool string, execution int) string {
	text, _ := json.Marshal(fmt.Sprintf(`{"tool":%q,"execution":%d,"arguments":{"n":%d}}`, tool, execution, id))
	return fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}]}`, text)
}

func work(outcomes ...flaky.Outcome) flaky.Script {
	return flaky.Script{Tools: []flaky.Tool{{Name: "work", Plan: flaky.Plan{Outcomes: outcomes}}}}
}

func readLedger(t *testing.T, path string) flaky.Ledger {
	t.Helper()
	ledger, err := flaky.ReadLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	return ledger
}

func TestWellBehavedServerAnswersEveryMethodOfTheProtocol(t *testing.T) {
	s := start(t, flaky.Script{
		Name:     "weather",
		PageSize: 1,
		Tools: []flaky.Tool{
			{Name: "look", Annotations: &flaky.Annotations{ReadOnly: new(true), OpenWorld: new(false)}},
			{Name: "work", Description: "Works.", Definition: flaky.Raw(`{"title":"Löok","inputSchema":{"type":"object","required":["n"]}}`)},
		},
	})
	for _, exchange := range []struct{ request, answer string }{
		{`"method":"initialize","params":{"protocolVersion":"2025-03-26"}`, `"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"logging":{},"completions":{}},"serverInfo":{"name":"weather","version":"1.2.3"}}`},
		{`"method":"ping"`, `"result":{}`},
		{`"method":"tools/list"`, `"result":{"tools":[{"annotations":{"readOnlyHint":true,"openWorldHint":false},"description":"The tool look.","inputSchema":{"type":"object"},"name":"look"}],"nextCursor":"1"}`},
		{`"method":"tools/list","params":{"cursor":"1"}`, `"result":{"tools":[{"description":"Works.","inputSchema":{"type":"object","required":["n"]},"name":"work","title":"Löok"}]}`},
		{`"method":"tools/list","params":{"cursor":"x"}`, `"error":{"code":-32602,"message":"Invalid cursor: x"}`},
		{`"method":"tools/call","params":{"name":"nobody"}`, `"error":{"code":-32602,"message":"Unknown tool: nobody"}`},
		{`"method":"resources/subscribe","params":{"uri":"flaky://one"}`, `"result":{}`},
		{`"method":"logging/setLevel","params":{"level":"info"}`, `"result":{}`},
		{`"method":"prompts/get","params":{"name":"greet"}`, `"result":{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`},
		{`"method":"vendor/x","params":{"n":12345678901234567890}`, `"result":{"method":"vendor/x","params":{"n":12345678901234567890}}`},
		{`"method":"nobody/knows"`, `"error":{"code":-32601,"message":"Method not found: nobody/knows"}`},
	} {
		s.send(`{"jsonrpc":"2.0","id":"a b",` + exchange.request + `}`)
		s.want(`{"jsonrpc":"2.0","id":"a b",` + exchange.answer + `}`)
	}
	if status, rest := s.finish(); status != 0 || rest != "" {
		t.Errorf("the end: status %d and %q", status, rest)
	}
}

func TestOutcomesArePlayedInTurn(t *testing.T) {
	script := work(
		flaky.Outcome{},
		flaky.Outcome{Error: &flaky.Error{Code: 7, Message: "a<b", Data: flaky.Raw(`[1.0]`)}},
		flaky.Outcome{IsError: "no"},
		flaky.Outcome{Result: flaky.Raw(`{"content":[]}`)},
		flaky.Outcome{ResultText: `{ "x" : 1.0 `},
		flaky.Outcome{Text: "hi"},
		flaky.Outcome{Big: 3},
		flaky.Outcome{ID: flaky.Raw(`99`), Text: "foreign"},
		flaky.Outcome{Copies: 2, Text: "twice"},
	)
	script.Tools[0].Then = &flaky.Outcome{Text: "ever after"}
	s := start(t, script)
	for n, want := range [][]string{
		{answer(0, report(0, "work", 1))},
		{answer(1, `"error":{"code":7,"message":"a<b","data":[1.0]}`)},
		{answer(2, `"result":{"content":[{"type":"text","text":"no"}],"isError":true}`)},
		{answer(3, `"result":{"content":[]}`)},
		{answer(4, `"result":{ "x" : 1.0 `)},
		{answer(5, `"result":{"content":[{"type":"text","text":"hi"}]}`)},
		{answer(6, `"result":{"content":[{"type":"text","text":"xxx"}]}`)},
		{answer(99, `"result":{"content":[{"type":"text","text":"foreign"}]}`)},
		{answer(8, `"result":{"content":[{"type":"text","text":"twice"}]}`), answer(8, `"result":{"content":[{"type":"text","text":"twice"}]}`)},
		{answer(9, `"result":{"content":[{"type":"text","text":"ever after"}]}`)},
		{answer(10, `"result":{"content":[{"type":"text","text":"ever after"}]}`)},
	} {
		s.send(call(n, "work"))
		for _, line := range want {
			s.want(line)
		}
	}
}

func TestSideEffectsComeBeforeTheAnswer(t *testing.T) {
	s := start(t, work(flaky.Outcome{
		Raw:      []string{"Server ready", "{"},
		Notify:   []flaky.Message{{Method: "notifications/message", Params: flaky.Raw(`{"level":"info"}`)}},
		Progress: []float64{1, 2.5},
		Text:     "done",
	}))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":0}}}`)
	s.want("Server ready")
	s.want("{")
	s.want(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}`)
	s.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":2.5}}`)
	s.want(answer(1, `"result":{"content":[{"type":"text","text":"done"}]}`))
}

func TestProgressForInventedTokensAndAfterTheAnswer(t *testing.T) {
	s := start(t, work(
		flaky.Outcome{Progress: []float64{1}, Text: "no token, no progress"},
		flaky.Outcome{Token: flaky.Raw(`"invented"`), Progress: []float64{1}, Text: "done",
			And: []flaky.Outcome{{Token: flaky.Raw(`"invented"`), Progress: []float64{2}, Hang: true}}},
	))
	s.send(call(1, "work"))
	s.want(answer(1, `"result":{"content":[{"type":"text","text":"no token, no progress"}]}`))
	s.send(call(2, "work"))
	s.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"invented","progress":1}}`)
	s.want(answer(2, `"result":{"content":[{"type":"text","text":"done"}]}`))
	s.want(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"invented","progress":2}}`)
}

func TestSleepingAndHangingCallsDoNotHoldUpOthers(t *testing.T) {
	s := start(t, flaky.Script{Tools: []flaky.Tool{
		{Name: "slow", Plan: flaky.Always(flaky.Outcome{Ask: &flaky.Message{Method: "roots/list"}})},
		{Name: "mute", Plan: flaky.Always(flaky.Outcome{Hang: true})},
		{Name: "work"},
	}})
	s.send(call(1, "slow"))
	s.want(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
	s.send(call(2, "mute"))
	s.send(call(3, "work"))
	s.want(answer(3, report(3, "work", 1)))
	s.send(`{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}`)
	if got := s.line(); !strings.Contains(got, `"id":1`) || !strings.Contains(got, `\"told\":{\"result\":{\"roots\":[]}}`) {
		t.Errorf("the answer does not tell what the client said: %s", got)
	}
}

func TestLaterOutcomesOfTheSameRequestFollow(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger")
	script := work(flaky.Outcome{Hang: true, And: []flaky.Outcome{
		{Sleep: 1, Error: &flaky.Error{Code: -32000, Message: "late"}},
		{Text: "later"},
		{Exit: new(4)},
	}})
	script.Ledger = ledger
	s := start(t, script)
	s.send(call(3, "work"))
	s.want(answer(3, `"error":{"code":-32000,"message":"late"}`))
	s.want(answer(3, `"result":{"content":[{"type":"text","text":"later"}]}`))
	if status := <-s.status; status != 4 {
		t.Errorf("status %d, want 4", status)
	}
	if n := readLedger(t, ledger).Executions("work"); n != 0 {
		t.Errorf("%d executions of a call that hung", n)
	}
}

func TestCancelledRequestsAreAnsweredOnlyByServersThatIgnoreIt(t *testing.T) {
	for _, obeys := range []bool{false, true} {
		ask := flaky.Outcome{Ask: &flaky.Message{Method: "ping"}, Text: "late"}
		script := work(ask)
		script.ObeyCancel = obeys
		s := start(t, script)
		s.send(call(5, "work"))
		s.want(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		s.send(`{"jsonrpc":"2.0","id":0,"result":{}}`)
		if !obeys {
			s.want(answer(5, `"result":{"content":[{"type":"text","text":"late"}]}`))
			continue
		}
		s.send(call(6, "work")) // the second: nothing was written before its answer
		s.want(answer(6, report(6, "work", 2)))
	}
}

func TestLedgerCountsAcrossLives(t *testing.T) {
	script := work(
		flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}},
		flaky.Outcome{Effect: new(true), Exit: new(3)},
	)
	script.Ledger = filepath.Join(t.TempDir(), "ledger")
	t.Setenv("FLAKY_TEST_SET", "yes")
	script.Environment = []string{"FLAKY_TEST_SET", "FLAKY_TEST_UNSET"}

	first := start(t, script)
	first.send(call(1, "work"))
	first.want(answer(1, `"error":{"code":-32000,"message":"busy"}`))
	first.send(call(2, "work"))
	if status := <-first.status; status != 3 {
		t.Errorf("the first life ended with %d, want 3", status)
	}
	second := start(t, script)
	second.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	second.send(call(3, "work"))
	second.want(answer(3, report(3, "work", 2)))
	second.finish()

	ledger := readLedger(t, script.Ledger)
	if ledger.Lives() != 2 || ledger.Attempts("work") != 3 || ledger.Executions("work") != 2 {
		t.Errorf("%d lives, %d attempts, %d executions; want 2, 3, 2", ledger.Lives(), ledger.Attempts("work"), ledger.Executions("work"))
	}
	executed := ledger.Events(flaky.EventExecuted)
	if got := executed[1]; got.Life != 2 || got.Execution != 2 || string(got.Arguments) != `{"n":3}` {
		t.Errorf("the second execution: %+v", got)
	}
	if got := ledger.Received("notifications/initialized"); len(got) != 1 {
		t.Errorf("notifications/initialized came as %q", got)
	}
	if got := ledger[0].Environment; len(got) != 1 || got["FLAKY_TEST_SET"] != "yes" {
		t.Errorf("environment: %v", got)
	}
	if got := ledger.Events(flaky.EventEnd); got[0].Code != 3 || got[1].Code != 0 || len(ledger.Events(flaky.EventEOF)) != 1 {
		t.Errorf("the ends: %+v", got)
	}
}

func TestStartIsPlayedLifeByLife(t *testing.T) {
	script := work()
	script.Ledger = filepath.Join(t.TempDir(), "ledger")
	script.Start = &flaky.Plan{Outcomes: []flaky.Outcome{{Stderr: "no token", Exit: new(3)}, {Raw: []string{"Welcome!"}}}}
	script.Tools = append(script.Tools, flaky.Tool{Name: "new", Lives: []int{2}})
	if status, _ := start(t, script).finish(); status != 3 {
		t.Errorf("the first life ended with %d, want 3", status)
	}
	s := start(t, script)
	s.want("Welcome!")
	s.send(call(1, "new"))
	s.want(answer(1, report(1, "new", 1)))
	third := start(t, script)
	third.send(call(1, "new"))
	third.want(answer(1, `"error":{"code":-32602,"message":"Unknown tool: new"}`))
}

func TestOutageGoesBeforeThePlan(t *testing.T) {
	s := start(t, flaky.Script{Tools: []flaky.Tool{
		{Name: "down", Plan: flaky.Plan{Outage: &flaky.Outage{For: 60_000, Outcome: flaky.Outcome{Text: "out"}}}},
		{Name: "well", Plan: flaky.Plan{Outage: &flaky.Outage{For: 0, Outcome: flaky.Outcome{Text: "out"}}}},
	}})
	for id := range 2 {
		s.send(call(id, "down"))
		s.want(answer(id, `"result":{"content":[{"type":"text","text":"out"}]}`))
		s.send(call(id, "well"))
		s.want(answer(id, report(id, "well", id+1)))
	}
}

func TestScriptSurvivesJSON(t *testing.T) {
	script := flaky.Script{
		Tools: []flaky.Tool{{Name: "pay", Annotations: &flaky.Annotations{Destructive: new(true)}, Plan: flaky.Plan{
			Outcomes: []flaky.Outcome{{Effect: new(true), Hang: true}, {Exit: new(0)}, {ResultText: "<{ 1.0 >"}},
			Then:     &flaky.Outcome{Sleep: 5},
		}}},
		Faults: flaky.Faults{CRLF: true, IDs: flaky.IDsFloat},
	}
	again, err := flaky.ParseScript([]byte(script.String()))
	if err != nil {
		t.Fatal(err)
	}
	if again.String() != script.String() {
		t.Errorf("got  %s\nwant %s", again, script)
	}
}

func TestScriptWordsAndMistakes(t *testing.T) {
	for _, c := range []struct{ text, problem string }{
		{`{"tools":[{"name":"a","outcomes":["ok","hang","exit","kill",{"exit":0}],"then":"ok"}],"start":{"then":"hang"}}`, ""},
		{`{"tools":[{"name":"a","outcomes":["hangs"]}]}`, `unknown outcome "hangs"`},
		{`{"tools":[{"name":"a","outcomes":[{"slep":1}]}]}`, `unknown field "slep"`},
		{`{"crfl":true}`, `unknown field "crfl"`},
		{`{"ids":"flaot"}`, `unknown kind of ids "flaot"`},
		{`{"framing":"lsp"}`, `unknown framing "lsp"`},
		{`{"tools":[{}]}`, "a tool has no name"},
		{`{} {}`, "more than one JSON value"},
		{`nowhere.json`, "nowhere.json"},
	} {
		_, err := flaky.LoadScript(c.text)
		switch {
		case c.problem == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
			t.Errorf("%s: error %v, want %q", c.text, err, c.problem)
		}
	}
}
