package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB01LinesAround64KiBAndLarger(t *testing.T) {
	t.Parallel()
	const frame = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""}]}}`
	var sizes []int
	for _, line := range []int{65535, 65536, 65537} {
		sizes = append(sizes, line-len(frame), line-len(frame)-1) // the server's id has one digit or two
	}
	sizes = append(sizes, 1<<20, 5<<20)
	var outcomes []flaky.Outcome
	for _, size := range sizes {
		outcomes = append(outcomes, flaky.Outcome{Big: size})
	}
	f := startField(t, "", toolbox(plainTool("big", outcomes...)))
	f.open()
	for i, size := range sizes {
		id := strconv.Itoa(i)
		f.call(id, "big", fmt.Sprintf(`{"n":%d}`, i))
		want := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}}`
		if got := f.answer(id).line; got != want {
			t.Errorf("a text of %d bytes became a line of %d, want %d", size, len(got), len(want))
		}
		f.ping()
	}
	f.attempts("big", len(sizes))
	if lives := f.readLedger().Lives(); lives != 1 {
		t.Errorf("the server was started %d times", lives)
	}
}

func TestB03AnswerOverTheLimitFailsAlone(t *testing.T) {
	t.Parallel()
	f := startField(t, "max_message_bytes: 1MiB\n", toolbox(
		always(readTool("big"), flaky.Outcome{Big: 1 << 20}),
		readTool("slow", flaky.Outcome{Sleep: 200}),
	))
	f.open()
	f.call("6", "slow", "{}")
	f.arrived("slow", 1)
	f.call("5", "big", "{}")
	e := f.failure("5", -31009).Error
	size := regexp.MustCompile(`(\d+) bytes.* 1048576 bytes`).FindStringSubmatch(e.Message)
	if size == nil {
		t.Fatalf("the error names no size and limit: %q", e.Message)
	}
	if n, _ := strconv.Atoi(size[1]); n <= 1<<20 || n > 1<<20+200 {
		t.Errorf("the error speaks of %d bytes", n)
	}
	f.success("6")
	f.call("7", "slow", "{}")
	f.success("7")
	f.attempts("big", 1)
}

func TestB03EveryMessageOverTheLimitFailsAlone(t *testing.T) {
	t.Parallel()
	big := `{"text":"` + strings.Repeat("y", 1<<20) + `"}`
	f := startField(t, "max_message_bytes: 100000\n", toolbox(
		plainTool("work"),
		plainTool("asks much", flaky.Outcome{Ask: &flaky.Message{Method: "sampling/createMessage", Params: flaky.Raw(big)}}),
		plainTool("is told much", flaky.Outcome{Ask: &flaky.Message{Method: "roots/list"}}),
		plainTool("says much", flaky.Outcome{Notify: []flaky.Message{{Method: "notifications/message", Params: flaky.Raw(big)}}}),
	))
	f.open()
	f.call("1", "work", big)
	f.failure("1", -31009)
	f.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"work","arguments":` + big + `},"id":"2"}`)
	f.failure(`"2"`, -31009)
	f.call("3", "asks much", `{}`)
	if got := f.success("3").text(); !strings.Contains(got, `"told":{"error":{"code":-31009`) {
		t.Errorf("the server was told %s", got)
	}
	f.call("4", "is told much", `{}`)
	question := f.message("roots/list")
	f.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + big + `}`)
	if got := f.success("4").text(); !strings.Contains(got, `"told":{"error":{"code":-31009`) {
		t.Errorf("the server was told %s", got)
	}
	f.call("5", "says much", `{}`)
	f.success("5")
	f.nothingElse()
	f.attempts("work", 0)
}

func TestB03DefaultLimitIsAboveTenMiB(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("big", flaky.Outcome{Big: 11 << 20})))
	f.open()
	f.call("1", "big", "{}")
	if got := len(f.success("1").text()); got != 11<<20 {
		t.Errorf("the text has %d bytes", got)
	}
}

func TestB05FloodWithoutNewlineTakesNoMemory(t *testing.T) {
	t.Parallel()
	const flood = 200 << 20
	f := startField(t, "max_message_bytes: 1MiB\ntools: {drowns: {call_timeout: 0.5}}\n", toolbox(
		unsafeTool("flood", flaky.Outcome{Flood: flood, Raw: []string{""}, Text: "after the flood"}, flaky.Outcome{Raw: []string{""}}),
		unsafeTool("drowns", flaky.Outcome{Flood: flood, Hang: true}),
	))
	f.open()
	before := f.residentKiB("VmRSS")
	f.call("1", "flood", `{"n":1}`)
	if got := f.success("1").text(); got != "after the flood" {
		t.Errorf("the line after the flood became %q", got)
	}
	f.call("2", "drowns", `{"n":2}`)
	f.failure("2", -31001)
	f.call("3", "flood", `{"n":3}`)
	f.success("3")
	if after := f.residentKiB("VmHWM"); after-before > 64<<10 {
		t.Errorf("memory grew from %d KiB to %d KiB", before, after)
	}
}

// residentKiB is a figure of the product's memory; 0 where the system does not tell.
func (f *field) residentKiB(figure string) int {
	status, _ := os.ReadFile("/proc/" + strconv.Itoa(f.cmd.Process.Pid) + "/status")
	_, rest, _ := strings.Cut(string(status), figure+":")
	n := 0
	fmt.Sscan(rest, &n)
	return n
}

func TestB07ServerEndsLinesWithCRLF(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work", flaky.Outcome{Raw: []string{""}}))
	script.CRLF = true
	f := startField(t, "", script)
	f.open()
	f.call("1", "work", "{}")
	f.success("1")
	f.nothingElse()
}

func TestB09ByteOrderMarks(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work", flaky.Outcome{Text: "a\uFEFFb"}))
	script.BOM = true
	f := startField(t, "", script)
	f.send("\uFEFF" + `{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + fieldHello + `}`)
	f.success("1")
	f.notify("notifications/initialized", `{}`)
	f.request("2", "tools/list", `{}`)
	f.success("2")
	f.call("3", "work", `{"text":"c`+"\uFEFF"+`d"}`)
	if got := f.success("3").text(); got != "a\uFEFFb" {
		t.Errorf("the text became %q", got)
	}
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		if strings.HasPrefix(entry.Line, "\uFEFF") {
			t.Errorf("the server got %q", entry.Line)
		}
	}
	if call := f.readLedger().Received("tools/call"); len(call) != 1 || !strings.Contains(call[0], "c\uFEFFd") {
		t.Errorf("the mark within the argument was lost: %q", call)
	}
}

func TestB10NoiseOnStdoutStaysOutOfTheProtocol(t *testing.T) {
	t.Parallel()
	noise := []string{"Server v1.2 ready {", "  key: 'value',", "}", "\x1b[32mINFO\x1b[0m started", "", "42", `"text"`, "null", `{"level":"info"}`}
	script := toolbox(always(unsafeTool("work"), flaky.Outcome{Raw: noise}))
	script.Start = &flaky.Plan{Then: &flaky.Outcome{Raw: noise}}
	script.Methods = map[string]flaky.Plan{"initialize": flaky.Always(flaky.Outcome{Raw: noise})}
	f := startField(t, "circuit_breaker: {failure_threshold: 1}\n", script)
	f.open()
	for id := range 3 {
		f.call(strconv.Itoa(id), "work", "{}")
		f.success(strconv.Itoa(id))
	}
	f.nothingElse()
	f.attempts("work", 3)
	for _, words := range []string{"Server v1.2 ready {", "key: 'value',", "started"} {
		f.record(words, func(r fieldRecord) bool {
			return r.Msg == "noise" && r.Server == "flaky" && strings.Contains(r.Detail, words)
		})
	}
}

func TestB12InvalidUTF8FromTheClient(t *testing.T) {
	t.Parallel()
	f := startField(t, "", flaky.Script{})
	f.open()
	f.send("\xFF\xFE")
	f.failure("null", -32700)
	f.send(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"text":"` + "\xFF" + `"}}`)
	if r := f.frame("a parse error", func(r *fieldFrame) bool { return r.Error != nil }); r.Error.Code != -32700 {
		t.Errorf("the answer is %s", r.line)
	}
	f.ping()
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		if strings.ContainsAny(entry.Line, "\uFFFD") || !strings.HasPrefix(entry.Line, "{") {
			t.Errorf("the server got %q", entry.Line)
		}
	}
}

func TestB13ServerSendsBytesOfACodePage(t *testing.T) {
	t.Parallel()
	script := toolbox(always(readTool("work"), flaky.Outcome{BadByte: 0x81, Text: "caf"}))
	script.Methods = map[string]flaky.Plan{"initialize": flaky.Always(flaky.Outcome{BadByte: 0x97})}
	f := startField(t, "cache: {default_ttl: 60}\n", script)
	hello := f.greet()
	if !strings.Contains(string(hello.Result), "\uFFFD") {
		t.Errorf("the bad byte of initialize was not replaced: %s", hello.line)
	}
	f.request("1", "tools/list", `{}`)
	f.success("1")
	f.call("2", "work", "{}")
	first := f.success("2")
	f.call("3", "work", "{}")
	if again := f.success("3"); first.text() != "caf\uFFFD" || again.text() != first.text() {
		t.Errorf("the text became %q, and from the cache %q", first.text(), again.text())
	}
	f.attempts("work", 1)
	f.logged("bad_frame")
}

func TestB14ServerSwallowsRequestsThatItCannotDecode(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("plain"), unsafeTool("unsafe"))
	script.ASCIIOnly = true
	f := startField(t, "retry: {max_retries: 2, base_delay: 0.01}\ntools: {plain: {retry: {max_retries: 0}}}\npolicy: [{when: 'args.text != \"Viet Nam\"', call_timeout: 0.4s}]\n", script)
	f.open()
	f.call("3", "unsafe", `{"text":"Việt Nam"}`)
	f.call("4", "plain", `{"text":"Việt Nam"}`)
	f.call("5", "plain", `{"text":"Viet Nam"}`)
	f.success("5")
	if e := f.failure("4", -31001).Error; e.Data.Attempts != 1 {
		t.Errorf("it was tried %d times", e.Data.Attempts)
	}
	if e := f.failure("3", -31001).Error; e.Data.Attempts != 1 || e.Data.EndedBy != "unsafe" {
		t.Errorf("an unsafe tool was tried %d times (%s)", e.Data.Attempts, e.Data.EndedBy)
	}
	f.ping()
	ledger := f.written("a cancellation", func(l flaky.Ledger) bool { return len(l.Received("notifications/cancelled")) > 0 })
	for _, line := range ledger.Received("tools/call") {
		var m struct {
			ID     json.RawMessage
			Params struct {
				Name      string
				Arguments struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		want := 0
		if m.Params.Name == "plain" && m.Params.Arguments.Text == "Việt Nam" {
			want = 1
		}
		if got := cancelsOf(ledger, string(m.ID)); got != want {
			t.Errorf("%d cancellations of %s, want %d", got, line, want)
		}
	}
}

func TestB15AnswerOverSeveralLines(t *testing.T) {
	t.Parallel()
	f := startField(t, "retry: {max_retries: 0}\npolicy: [{when: args.n == 1, call_timeout: 0.3s}]\n", toolbox(plainTool("work", flaky.Outcome{Pretty: true})))
	f.open()
	f.call("3", "work", `{"n":1}`)
	f.failure("3", -31001)
	f.call("4", "work", `{"n":2}`)
	f.success("4")
	f.nothingElse()
}

func TestB15ServerFramesLikeALanguageServer(t *testing.T) {
	t.Parallel()
	script := flaky.Script{}
	script.Framing = "content-length"
	f := startField(t, "", script)
	f.request("1", "initialize", fieldHello)
	e := f.failure("1", -31004).Error
	if !strings.Contains(e.Message, "Content-Length") {
		t.Errorf("the error does not name the framing: %q", e.Message)
	}
	pid := f.readLedger()[0].PID
	f.logged("server_exit")
	if runs(pid) {
		t.Errorf("the server still runs")
	}
}

func TestB17BytesOfArgumentsAndResultsAreKept(t *testing.T) {
	t.Parallel()
	const (
		arguments = "{\"code\":\"a<b && c>d \u2028 \\u003c \\/\", \"n\": 1.0}"
		result    = "{\"content\":[{\"type\":\"text\",\"text\":\"a<b && c>d \u2028 \\u003c \\/\"}], \"n\": 1.0}"
	)
	f := startField(t, "", toolbox(plainTool("echo", flaky.Outcome{ResultText: result})))
	f.open()
	f.call("1", "echo", arguments)
	if got := string(f.answer("1").Result); got != result {
		t.Errorf("the client got %s", got)
	}
	if got := f.readLedger().Received("tools/call")[0]; !strings.Contains(got, `"arguments":`+arguments) {
		t.Errorf("the server got %s", got)
	}
}

func TestB19ConcurrentFramesDoNotMix(t *testing.T) {
	t.Parallel()
	script := toolbox(
		always(plainTool("work"), flaky.Outcome{}),
		plainTool("again", flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}),
		always(plainTool("gone"), flaky.Outcome{Hang: true}),
	)
	script.Sip = 1 << 10
	f := startField(t, "retry: {base_delay: 0.01}\n", script)
	f.open()
	const calls = 50
	text := strings.Repeat("y", 60<<10)
	for i := range calls {
		f.call(strconv.Itoa(i), []string{"work", "again", "work", "gone"}[i%4], fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, text))
		if i%4 == 3 {
			f.cancel(strconv.Itoa(i))
		}
	}
	for i := range calls {
		if i%4 != 3 {
			want := fmt.Sprintf(`"n":%d,"text":"%s"`, i, text)
			if got := f.success(strconv.Itoa(i)).text(); !strings.Contains(got, want) {
				t.Errorf("call %d got %.100q", i, got)
			}
		}
	}
	f.ping()
	f.nothingElse()
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		if !json.Valid([]byte(entry.Line)) {
			t.Errorf("the server got %.100q", entry.Line)
		}
	}
}
