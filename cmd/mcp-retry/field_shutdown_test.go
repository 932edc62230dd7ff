package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB54ServerWritesOnlyAtTheEndOfItsInput(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("work"))
	script.BufferAfter = "tools/call"
	f := startField(t, "call_timeout: 0.3\nretry: {max_retries: 0}\n", script)
	f.open()
	f.call("1", "work", "{}")
	f.failure("1", -31001)
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	f.nothingElse()
	if len(f.readLedger().Events(flaky.EventEOF)) != 1 {
		t.Errorf("the server never saw the end of its input")
	}
}

func TestB54ServerWritesNothingAtAll(t *testing.T) {
	t.Parallel()
	script := flaky.Script{}
	script.BufferOutput = true
	f := startField(t, "startup_timeout: 0.3\n", script)
	f.request("1", "initialize", fieldHello)
	if e := f.failure("1", -31004).Error; !strings.Contains(e.Message, "initialize") {
		t.Errorf("the error is %q", e.Message)
	}
	f.close()
	f.nothingElse()
}

func TestB55CallsInFlightAreAnsweredAfterTheClientClosedItsEnd(t *testing.T) {
	t.Parallel()
	const calls = 20
	var outcomes []flaky.Outcome
	for i := range calls {
		outcomes = append(outcomes, flaky.Outcome{Sleep: flaky.Millis(100 + i*20)})
	}
	f := startField(t, "", toolbox(unsafeTool("work", outcomes...)))
	f.request(`"hello"`, "initialize", fieldHello)
	f.notify("notifications/initialized", `{}`)
	for id := range calls {
		f.call(strconv.Itoa(id), "work", fmt.Sprintf(`{"n":%d}`, id))
	}
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	for id := range calls {
		f.success(strconv.Itoa(id))
	}
	ended := f.readLedger().Events(flaky.EventEnd)
	if len(ended) != 1 || ended[0].Code != 0 {
		t.Errorf("the server did not end in order: %+v", ended)
	}
}

func TestB56ServerIgnoresEveryWishToEnd(t *testing.T) {
	t.Parallel()
	script := toolbox(unsafeTool("never", flaky.Outcome{Hang: true}))
	script.IgnoreEOF, script.IgnoreTerm, script.Grandchild = true, true, true
	f := startField(t, "", script)
	f.open()
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	ledger := f.readLedger()
	if len(ledger.Events(flaky.EventEOF)) != 1 || len(ledger.Events(flaky.EventTerm)) != 1 || len(ledger.Events(flaky.EventEnd)) != 0 {
		t.Errorf("the server was not asked to end before it was killed: %+v", ledger)
	}
	if len(ledger.Events(flaky.EventGrandchild)) != 1 {
		t.Errorf("there was no grandchild: this shows less than it should")
	}
}

func TestB57SignalsEndTheServerToo(t *testing.T) {
	t.Parallel()
	for signal, status := range map[os.Signal]int{syscall.SIGTERM: 143, os.Interrupt: 130, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			script := toolbox(unsafeTool("never", flaky.Outcome{Hang: true}))
			script.IgnoreEOF = true
			script.Grandchild = true
			f := fieldSetup{script: script, wrap: []string{}}.start(t) // with a config file, a hang-up reloads it
			f.open()
			f.call("1", "never", "{}")
			f.arrived("never", 1)
			if err := f.cmd.Process.Signal(signal); err != nil {
				t.Skipf("no such signal here: %v", err)
			}
			if e := f.failure("1", -31010).Error; e.Data.MayHaveExecuted != "unknown" {
				t.Errorf("the error says %+v", e.Data)
			}
			if got := f.exit(); got != status {
				t.Errorf("exit status %d, want %d", got, status)
			}
		})
	}
}

func TestB57SignalEndsAnIdleSession(t *testing.T) {
	t.Parallel()
	f := startField(t, "", flaky.Script{})
	f.open()
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Skipf("no such signal here: %v", err)
	}
	if got := f.exit(); got != 143 {
		t.Errorf("exit status %d", got)
	}
	if ended := f.readLedger().Events(flaky.EventEnd); len(ended) != 1 || ended[0].Code != 0 {
		t.Errorf("the server did not end in order: %+v", ended)
	}
}

func TestB57ServerDoesNotOutliveAProxyThatIsKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can end a process with its parent")
	}
	script := flaky.Script{}
	script.IgnoreEOF, script.IgnoreTerm = true, true
	f := startField(t, "", script)
	f.open()
	f.cmd.Process.Kill()
	f.exit() // and no process is left
}

func TestB60InterruptOfTheTerminalReachesTheProxyAlone(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(unsafeTool("slow", flaky.Outcome{Hang: true})))
	f.open()
	f.call("1", "slow", "{}")
	f.arrived("slow", 1)
	if !interruptGroup(f.cmd.Process.Pid) {
		t.Skip("there are no process groups here")
	}
	f.failure("1", -31010)
	if got := f.exit(); got != 130 {
		t.Errorf("exit status %d", got)
	}
	ledger := f.readLedger()
	if ledger.Lives() != 1 || len(ledger.Events(flaky.EventEOF)) != 1 || len(ledger.Events(flaky.EventEnd)) != 1 {
		t.Errorf("the server was hit by the signal, or started again: %+v", ledger)
	}
}

func TestB61FloodOfStderrHoldsUpNothing(t *testing.T) {
	t.Parallel()
	const flood = 1 << 20
	line := strings.Repeat("x", 1023)
	for name, noisy := range map[string]flaky.Outcome{
		"lines":      {Stderr: strings.Repeat(line+"\n", flood>>10)},
		"no newline": {FloodStderr: flood},
		"returns":    {Stderr: strings.Repeat(line+"\r", flood>>10)},
	} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, log unread %t", name, deaf), func(t *testing.T) {
				t.Parallel()
				f := fieldSetup{script: toolbox(always(unsafeTool("work"), noisy)), deafLog: deaf}.start(t)
				f.open()
				for id := range 3 {
					f.call(strconv.Itoa(id), "work", "{}")
					f.success(strconv.Itoa(id))
				}
				if status := f.close(); status != exitFine {
					t.Errorf("exit status %d", status)
				}
			})
		}
	}
}

func TestB63ServerThatStopsReadingCanStillBeEnded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(*field) int
		want int
		code int
	}{
		{"by the end of the input", (*field).close, exitFine, -31001},
		{"by a signal", func(f *field) int { f.cmd.Process.Signal(syscall.SIGTERM); return f.exit() }, 143, -31010},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			script := toolbox(unsafeTool("work"))
			script.DeafAfter = "notifications/initialized"
			settings := "call_timeout: 0.5\n"
			if c.code == -31010 {
				settings = "call_timeout: 60\n"
			}
			f := startField(t, settings+"retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 100}\n", script)
			f.greet()
			const calls = 16
			for id := range calls {
				f.call(strconv.Itoa(id), "work", fmt.Sprintf(`{"n":%d,"text":"%s"}`, id, strings.Repeat("y", 64<<10)))
			}
			f.send("7") // what comes before the answer to this was read
			f.failure("null", -32600)
			if status := c.end(f); status != c.want {
				t.Errorf("exit status %d, want %d", status, c.want)
			}
			for id := range calls {
				f.failure(strconv.Itoa(id), c.code)
			}
		})
	}
}

func TestB65SlowCallHoldsUpNothing(t *testing.T) {
	t.Parallel()
	f := startField(t, "call_timeout: 100\ntotal_timeout: 200\nretry: {base_delay: 20, jitter: false}\n", toolbox(
		plainTool("slow", flaky.Outcome{Hang: true}),
		always(plainTool("busy"), flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}),
		plainTool("fast"),
	))
	f.open()
	f.call("1", "slow", "{}")
	f.call("2", "busy", "{}")
	f.arrived("slow", 1)
	f.arrived("busy", 1)
	f.ping()
	f.request("3", "tools/list", `{}`)
	f.success("3")
	f.call("4", "fast", "{}")
	f.success("4")
	f.cancel("1")
	f.cancelled(f.serverID("slow", 0))
	f.cancel("2")
	f.close()
	f.nothingElse() // neither of the two had been answered
	f.attempts("busy", 1)
}
