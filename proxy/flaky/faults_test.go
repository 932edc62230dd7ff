package flaky_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestIDsComeBackChanged(t *testing.T) {
	for _, c := range []struct{ kind, sent, back string }{
		{"", `7`, `7`},
		{"", `"x"`, `"x"`},
		{flaky.IDsFloat, `0`, `0.0`},
		{flaky.IDsFloat, `"x"`, `"x"`},
		{flaky.IDsExponent, `1`, `1e0`},
		{flaky.IDsString, `7`, `"7"`},
		{flaky.IDsString, `"7"`, `7`},
		{flaky.IDsString, `"x"`, `"x"`},
		{flaky.IDsZero, `7`, `0`},
		{flaky.IDsNull, `7`, `null`},
		{flaky.IDs32Bit, `1774232524389`, `411031141`},
		{flaky.IDs32Bit, `7`, `7`},
	} {
		s := start(t, flaky.Script{Faults: flaky.Faults{IDs: c.kind}})
		s.send(`{"jsonrpc":"2.0","id":` + c.sent + `,"method":"ping"}`)
		s.want(`{"jsonrpc":"2.0","id":` + c.back + `,"result":{}}`)
	}
}

func TestFramingFaults(t *testing.T) {
	const pong = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, c := range []struct {
		name   string
		faults flaky.Faults
		want   string
	}{
		{"crlf", flaky.Faults{CRLF: true}, pong + "\r\n"},
		{"bom", flaky.Faults{BOM: true}, "\xEF\xBB\xBF" + pong + "\n"},
		{"content-length", flaky.Faults{Framing: "content-length"}, "Content-Length: 36\r\n\r\n" + pong},
		{"pretty", flaky.Faults{Framing: "pretty"}, "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n"},
		{"held back until the end", flaky.Faults{BufferOutput: true}, pong + "\n"},
	} {
		s := start(t, flaky.Script{Faults: c.faults})
		s.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if _, got := s.finish(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestOutputIsHeldBackFromAMethodOn(t *testing.T) {
	const ping, pong = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	s := start(t, flaky.Script{Faults: flaky.Faults{BufferAfter: "notifications/initialized", Sip: 16}})
	s.send(ping)
	s.want(pong)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.send(ping)
	if _, rest := s.finish(); rest != pong+"\n" {
		t.Errorf("at the end came %q", rest)
	}
}

func TestBadByteStandsInTheText(t *testing.T) {
	script := work(flaky.Outcome{BadByte: 0x81, Text: "x"}, flaky.Outcome{Text: "y", Pretty: true})
	script.Methods = map[string]flaky.Plan{"initialize": flaky.Always(flaky.Outcome{BadByte: 0x97})}
	s := start(t, script)
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`)
	if got := s.line(); !strings.Contains(got, "\"instructions\":\"\x97\"}") {
		t.Errorf("initialize: %q", got)
	}
	s.send(call(1, "work"))
	s.want(answer(1, "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"x\x81\"}]}"))
	s.send(call(2, "work"))
	if got := s.line(); got != "{\n" {
		t.Errorf("a pretty answer begins with %q", got)
	}
}

func TestStrictServerRefusesWhatComesOutOfTurn(t *testing.T) {
	s := start(t, flaky.Script{Protocol: "2024-11-05", Faults: flaky.Faults{StrictHandshake: true}})
	early := `"error":{"code":-32600,"message":"Invalid Request: Server not initialized"}`
	for id, step := range []struct{ request, answer string }{
		{`"method":"tools/list"`, early},
		{`"method":"ping"`, `"result":{}`},
		{`"method":"initialize"`, ""},
		{`"method":"tools/list"`, early},
		{`"method":"initialize"`, `"error":{"code":-32600,"message":"Invalid Request: Server already initialized"}`},
	} {
		s.send(answer(id, step.request))
		if line := strings.TrimSpace(s.line()); step.answer != "" && line != answer(id, step.answer) {
			t.Errorf("%s is answered %s", step.request, line)
		}
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.send(answer(9, `"method":"tools/list"`))
	s.want(answer(9, `"result":{"tools":[]}`))
}

func TestNotificationsBringAboutMessages(t *testing.T) {
	s := start(t, flaky.Script{
		Initialized: []flaky.Message{{Method: "notifications/tools/list_changed"}},
		On:          map[string][]flaky.Message{"notifications/x": {{ID: flaky.Raw(`7`), Method: "roots/list"}}},
		Faults:      flaky.Faults{AnswerNotes: true},
	})
	stray := `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.want(stray)
	s.want(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	s.want(stray)
	s.want(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
}

func TestServerThatKnowsOnlyASCIIIgnoresTheRest(t *testing.T) {
	s := start(t, flaky.Script{Faults: flaky.Faults{ASCIIOnly: true}})
	s.send(`{"jsonrpc":"2.0","id":4,"method":"ping","params":{"text":"Việt"}}`)
	s.send(`{"jsonrpc":"2.0","id":5,"method":"ping"}`)
	s.want(`{"jsonrpc":"2.0","id":5,"result":{}}`)
}

func TestFloodHasNoNewline(t *testing.T) {
	s := start(t, work(flaky.Outcome{Flood: 200_000, Raw: []string{""}, Text: "done"}))
	s.send(call(1, "work"))
	if got := s.line(); got != strings.Repeat("x", 200_000)+"\n" {
		t.Errorf("the flood is %d bytes long", len(got)-1)
	}
	s.want(answer(1, `"result":{"content":[{"type":"text","text":"done"}]}`))
}

func TestStdoutClosesWhileTheServerLives(t *testing.T) {
	for name, script := range map[string]flaky.Script{
		"by an outcome": work(flaky.Outcome{CloseStdout: true}),
		"by a method":   {Tools: work().Tools, Faults: flaky.Faults{MuteAfter: "tools/call"}},
	} {
		script.IgnoreEOF = true
		s := start(t, script)
		s.send(call(1, "work"))
		text, err := io.ReadAll(s.out)
		if err != nil || strings.Count(string(text), "\n") > 1 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		s.send(call(2, "work")) // still read
		select {
		case status := <-s.status:
			t.Errorf("%s: the server ended with %d", name, status)
		default:
		}
	}
}

func TestServerDiesOfOldAge(t *testing.T) {
	for want, faults := range map[int]flaky.Faults{1: {DieAfter: 20}, 70: {Lifetime: 20, IgnoreEOF: true}} {
		s := start(t, flaky.Script{Faults: faults})
		if got := <-s.status; got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
}

// process starts the server as a process of its own.
func process(t *testing.T, script flaky.Script) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), flaky.EnvVar+"="+script.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, in, out
}

func TestTestBinaryBecomesTheServer(t *testing.T) {
	script := work(flaky.Outcome{Kill: true})
	cmd, in, out := process(t, script)
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"+call(2, "work")+"\n")
	text, err := io.ReadAll(out)
	if err != nil || string(text) != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
		t.Errorf("it answered %q, %v", text, err)
	}
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got > 0 {
		t.Errorf("it ended with status %d, not by a signal", got)
	}
}
