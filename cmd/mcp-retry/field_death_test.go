package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB46ServerDiesDuringCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  flaky.Outcome
		says string
	}{
		{"exits in order", flaky.Outcome{Exit: new(0)}, "exit status 0"},
		{"exits with 3", flaky.Outcome{Exit: new(3)}, "exit status 3"},
		{"is killed", flaky.Outcome{Kill: true}, "killed"},
		{"closes its stdout", flaky.Outcome{CloseStdout: true}, "closed its stdout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startField(t, "retry: {base_delay: 0.01}\n", toolbox(
				unsafeTool("waits", flaky.Outcome{Hang: true}), unsafeTool("dies", c.end), readTool("reads", flaky.Outcome{Hang: true}),
			))
			f.open()
			f.call("1", "waits", "{}")
			f.call("3", "reads", "{}")
			f.call("2", "dies", "{}")
			for _, id := range []string{"1", "2"} {
				if e := f.failure(id, -31004).Error; !strings.Contains(e.Message, c.says) || e.Data.MayHaveExecuted != "unknown" {
					t.Errorf("the error of %s is %q, %+v", id, e.Message, e.Data)
				}
			}
			f.success("3")
			f.attempts("reads", 2)
			f.call("4", "waits", "{}")
			f.success("4")
			if lives := f.readLedger().Lives(); lives != 2 {
				t.Errorf("the server was started %d times", lives)
			}
		})
	}
}

func TestB47CrashAfterTheEffectIsNotRepeated(t *testing.T) {
	t.Parallel()
	crash := flaky.Outcome{Effect: new(true), Exit: new(1)}
	const settings = "retry: {max_retries: 3, base_delay: 0.01}\npolicy: [{name: always, retry: true}]\n"
	f := startField(t, settings, toolbox(unsafeTool("transfer", crash), readTool("balance", crash)))
	f.open()
	f.call("1", "transfer", `{"amount":1}`)
	e := f.failure("1", -31004).Error
	if e.Data.MayHaveExecuted != "unknown" || e.Data.EndedBy != "unsafe" || !strings.Contains(e.Message, "may have taken effect") {
		t.Errorf("the error is %q, %+v", e.Message, e.Data)
	}
	f.call("2", "balance", "{}")
	if got := f.success("2").execution(); got != 2 {
		t.Errorf("the answer is of execution %d", got)
	}
	if n := f.readLedger().Executions("transfer"); n != 1 {
		t.Errorf("the transfer was made %d times", n)
	}
}

func TestB49ServerThatExitsAtOnceIsNotRespawnedInATightLoop(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work"))
	script.Start = &flaky.Plan{Then: &flaky.Outcome{Stderr: "cannot find module 'x'", Sleep: 10, Exit: new(1)}}
	f := startField(t, "circuit_breaker: {failure_threshold: 3}\n", script)
	f.request(`"hello"`, "initialize", fieldHello)
	if e := f.failure(`"hello"`, -31004).Error; !strings.Contains(e.Message, "exit status 1") || !strings.Contains(e.Message, "cannot find module 'x'") {
		t.Errorf("the error does not say why: %q", e.Message)
	}
	f.call("1", "work", "{}") // starts the server as often as a call that was not sent may, which opens the breaker
	f.failure("1", -31004)
	for id := range 20 {
		f.call(strconv.Itoa(100+id), "work", fmt.Sprintf(`{"n":%d}`, 100+id))
		f.failure(strconv.Itoa(100+id), -31002)
	}
	f.spawnsBackOff(0)
}

func TestB49ServerThatDiesAfterTheHandshakeIsNotRespawnedInATightLoop(t *testing.T) {
	t.Parallel()
	script := toolbox(always(unsafeTool("work"), flaky.Outcome{Hang: true}))
	script.DieAfter = 1000
	f := startField(t, "retry: {base_delay: 0.01}\n", script)
	f.greet()
	for id := range 4 {
		f.call(strconv.Itoa(id), "work", fmt.Sprintf(`{"n":%d}`, id))
		f.failure(strconv.Itoa(id), -31004)
	}
	f.spawnsBackOff(time.Second)
}

// spawnsBackOff checks that a server which was never of use was started again with growing waits, and never twice at a time.
// lived is how long each life lasted at least.
func (f *field) spawnsBackOff(lived time.Duration) {
	f.t.Helper()
	ledger := f.readLedger()
	starts := ledger.Events(flaky.EventStart)
	if len(starts) < 3 || len(starts) > 8 {
		f.t.Errorf("the server was started %d times", len(starts))
	}
	alive := 0
	for _, entry := range ledger {
		switch entry.Event {
		case flaky.EventStart:
			if alive++; alive > 1 {
				f.t.Errorf("life %d began while another lasted", entry.Life)
			}
		case flaky.EventEnd:
			alive--
		}
	}
	wait := 500 * time.Millisecond // the first restart is immediate
	for i := 2; i < len(starts); i++ {
		// A process takes its time to come to its first entry, so only most of the wait can be seen.
		if gap := starts[i].At.Sub(starts[i-1].At) - lived; gap < wait*8/10 {
			f.t.Errorf("life %d began %v after the one before, want %v", i+1, gap, wait)
		}
		wait *= 2
	}
}

func TestB50CommandThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	broken := filepath.Join(dir, "broken")
	for path, mode := range map[string]os.FileMode{plain: 0o644, broken: 0o755} {
		if err := os.WriteFile(path, []byte("#!/no/such/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for command, words := range map[string][]string{
		"no-such-command-anywhere": {"not found in PATH=/usr/bin:/bin"},
		plain:                      {"permission denied"},
		dir:                        {"is a directory"},
		broken:                     {"/no/such/interpreter"},
	} {
		f := newField(t)
		f.launch([]string{"wrap", "--", command}, []string{"PATH=/usr/bin:/bin"}, false)
		f.request("1", "initialize", fieldHello)
		e := f.failure("1", -31004).Error
		for _, word := range append(words, strconv.Quote(command)) {
			if !strings.Contains(e.Message, word) {
				t.Errorf("the error does not say %q: %s", word, e.Message)
			}
		}
		if status := f.close(); status != exitFailed {
			t.Errorf("exit status %d", status)
		}
	}
}

func TestB52ClientDoesNotWaitForTheServerToBeReady(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work"))
	script.Start = &flaky.Plan{Then: &flaky.Outcome{Sleep: 500}}
	f := startField(t, "call_timeout: 0.2\ntotal_timeout: 0.3\nretry: {max_retries: 0}\ntools: {work: {call_timeout: 50, total_timeout: 90}}\n", script)
	f.request("1", "initialize", fieldHello)
	f.notify("notifications/initialized", `{}`)
	f.request("2", "tools/list", `{}`)
	f.call("3", "work", "{}")
	for _, id := range []string{"1", "2", "3"} {
		f.success(id)
	}
	var order []string
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		for _, method := range []string{"initialize", "notifications/initialized", "tools/list", "tools/call"} {
			if strings.Contains(entry.Line, `"method":"`+method+`"`) {
				order = append(order, method)
			}
		}
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "initialize notifications/initialized tools/list tools/call") {
		t.Errorf("the server got %s", got)
	}
}

func TestB67NewLifeOfTheServerIsGreetedAsTheFirstWas(t *testing.T) {
	t.Parallel()
	script := toolbox(
		always(readTool("work"), flaky.Outcome{}),
		unsafeTool("last", flaky.Outcome{And: []flaky.Outcome{{Sleep: 20, Exit: new(1)}}}),
	)
	script.StrictHandshake = true
	f := startField(t, "", script)
	f.open()
	f.request("1", "logging/setLevel", `{"level":"warning"}`)
	f.success("1")
	for _, uri := range []string{"flaky://one", "flaky://two"} {
		f.request("2", "resources/subscribe", `{"uri":"`+uri+`"}`)
		f.success("2")
	}
	f.request("3", "resources/unsubscribe", `{"uri":"flaky://two"}`)
	f.success("3")
	f.call("4", "last", "{}")
	f.success("4")
	f.logged("server_exit")
	f.call("5", "work", "{}")
	f.success("5")
	f.nothingElse()

	lives := map[int][]string{}
	for _, entry := range f.readLedger().Events(flaky.EventReceived) {
		_, rest, _ := strings.Cut(entry.Line, `"method":`)
		lives[entry.Life] = append(lives[entry.Life], strings.TrimSuffix(rest, "}"))
	}
	want := []string{
		`"initialize","params":` + fieldHello,
		`"notifications/initialized"`,
		`"logging/setLevel","params":{"level":"warning"}`,
		`"resources/subscribe","params":{"uri":"flaky://one"}`,
		`"tools/call","params":{"name":"work","arguments":{}}`,
	}
	var got []string
	for _, line := range lives[2] {
		if !strings.HasPrefix(line, `"tools/list"`) { // the proxy may look whether the tools are still the same
			got = append(got, line)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the second life got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestB101CallThatWasNeverSentIsSentAgain(t *testing.T) {
	t.Parallel()
	script := toolbox(unsafeTool("pay", flaky.Outcome{And: []flaky.Outcome{{Sleep: 20, Exit: new(1)}}}))
	// The second life fails before it reads anything, the third is well.
	script.Start = &flaky.Plan{Outcomes: []flaky.Outcome{{}, {Exit: new(1)}}}
	f := startField(t, "retry: {max_retries: 0}\n", script)
	f.open()
	f.call("1", "pay", `{"n":1}`)
	f.success("1")
	f.logged("server_exit")
	f.call("2", "pay", `{"n":2}`)
	f.success("2")
	f.attempts("pay", 2)
	if lives := f.readLedger().Lives(); lives != 3 {
		t.Errorf("the server was started %d times", lives)
	}
}
