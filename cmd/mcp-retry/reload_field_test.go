package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// reconfigure gives the server other settings.
func (f *field) reconfigure(settings string) {
	f.t.Helper()
	f.put(fieldConfig(filepath.Join(f.dir, "script.json"), settings))
}

// put puts another config in place, as editors do: whole.
func (f *field) put(config string) {
	f.t.Helper()
	draft := f.write("draft", config)
	if err := os.Rename(draft, filepath.Join(f.dir, "mcp-retry.yaml")); err != nil {
		f.t.Fatal(err)
	}
}

// reloaded waits for a record of a reload that says so.
func (f *field) reloaded(level, detail string) {
	f.t.Helper()
	f.record("a reload: "+detail, func(r fieldRecord) bool {
		return r.Msg == "config_reload" && r.Level == level && strings.Contains(r.Detail, detail)
	})
}

func TestAChangedConfigIsInForceFromTheNextCallOn(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startField(t, "retry: {max_retries: 0}\ncache: {tools: {look: 3600}}", flaky.Script{Tools: []flaky.Tool{
		{Name: "look", Annotations: &flaky.Annotations{ReadOnly: new(true)}},
		{Name: "work", Annotations: &flaky.Annotations{ReadOnly: new(true)}, Plan: flaky.Plan{Outcomes: []flaky.Outcome{busy, busy}}},
	}})
	f.open()
	f.call("1", "look", "{}")
	f.success("1")
	f.call("2", "work", "{}")
	f.failure("2", -32000)

	f.reconfigure("retry: {max_retrys: 3}")
	f.reloaded("error", "max_retries")
	f.call("3", "look", "{}") // the old config is in force: it is cached
	f.success("3")

	f.reconfigure("retry: {max_retries: 1, base_delay: 1ms}\ncache: {tools: {look: 3600}}")
	f.reloaded("info", "in force")
	f.call("4", "look", "{}")
	f.success("4")
	f.call("5", "work", "{}")
	f.success("5")
	f.attempts("look", 1)
	f.attempts("work", 3)
	if lives := f.readLedger().Lives(); lives != 1 {
		t.Errorf("the server lived %d times", lives)
	}
}

// hangUp sends the product a hang-up.
func (f *field) hangUp() {
	f.t.Helper()
	if err := f.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		f.t.Skipf("no such signal here: %v", err)
	}
}

func TestAHangUpReloadsTheConfig(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startField(t, "retry: {max_retries: 0}", toolbox(readTool("slow", flaky.Outcome{Sleep: 500}), readTool("work", busy, busy)))
	f.open()
	f.call("1", "slow", "{}")
	f.arrived("slow", 1)
	f.reconfigure("retry: {max_retrys: 1}")
	f.hangUp()
	f.reloaded("error", "max_retries")
	f.success("1") // nothing was ended
	f.call("2", "work", "{}")
	f.failure("2", -32000)
	f.reconfigure("retry: {max_retries: 1, base_delay: 1ms}")
	f.hangUp()
	f.reloaded("info", "in force")
	f.call("3", "work", "{}")
	f.success("3")
	if lives := f.readLedger().Lives(); lives != 1 {
		t.Errorf("the server lived %d times", lives)
	}
	if status := f.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
}

func TestAHangUpAfterTheClientHasGoneEnds(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("never", flaky.Outcome{Hang: true})))
	f.open()
	f.call("1", "never", "{}")
	f.arrived("never", 1)
	f.stdin.Close()
	for deadline := time.Now().Add(fieldPatience); ; time.Sleep(fieldPoll) { // that it knows of it cannot be seen
		f.hangUp()
		select {
		case <-f.exited:
			f.failure("1", -31010)
			if status := f.exit(); status != 129 {
				t.Errorf("exit status %d", status)
			}
			return
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not end")
		}
	}
}

func TestAConfigThatIsGoneIsToldAndTakenUpWhenItIsBack(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startField(t, "retry: {max_retries: 0}", toolbox(readTool("work", busy, busy)))
	f.open()
	if err := os.Remove(filepath.Join(f.dir, "mcp-retry.yaml")); err != nil {
		t.Fatal(err)
	}
	f.reloaded("warn", "is gone")
	f.call("1", "work", "{}")
	f.failure("1", -32000)
	f.reconfigure("retry: {max_retries: 1, base_delay: 1ms}")
	f.reloaded("info", "in force")
	f.call("2", "work", "{}")
	f.success("2")
}

func TestAServerBesideTheOnlyOneIsToldToJoinInTheNextSession(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(readTool("look")))
	f.open()
	f.put(fieldConfig(filepath.Join(f.dir, "script.json"), "") + "  another: {command: nothing}\n")
	f.reloaded("warn", `"another"`)
	f.call("1", "look", "{}")
	f.success("1")
	f.reloaded("info", "in force")
}

func TestTheOnlyServerOfASessionCannotBeRemoved(t *testing.T) {
	t.Parallel()
	f := newField(t)
	config := fieldConfig(f.write("script.json", flaky.Script{Ledger: f.ledger, Tools: []flaky.Tool{readTool("look")}}.String()), "")
	f.launch([]string{"run", "--log-level", "debug", "--server", "flaky", "--config", f.write("mcp-retry.yaml", config)}, nil, false)
	f.open()
	f.put(strings.Replace(config, "flaky:", "renamed:", 1))
	f.reloaded("error", `no server "flaky"`)
	f.call("1", "look", "{}")
	f.success("1")
}

func TestAServerWithAChangedCommandIsStartedAnewOnceIdle(t *testing.T) {
	t.Parallel()
	f := startField(t, "", toolbox(plainTool("slow", flaky.Outcome{Ask: gate()})))
	f.open()
	f.call("1", "slow", "{}")
	slow := f.message("gate")
	f.reconfigure("env: {ANOTHER: value}")
	f.reloaded("info", "started anew")
	if lives := f.readLedger().Lives(); lives != 1 {
		t.Errorf("the server lived %d times while a call was in flight", lives)
	}
	f.pass(slow)
	f.success("1")
	f.written("a second life", func(l flaky.Ledger) bool { return l.Lives() == 2 })
	f.call("2", "slow", "{}")
	f.success("2")
	f.attempts("slow", 2)
}

func TestFlagsWinOverAConfigThatIsReloaded(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := newField(t)
	script := flaky.Script{Ledger: f.ledger, Tools: []flaky.Tool{{Name: "work", Plan: flaky.Plan{Outcomes: []flaky.Outcome{busy, busy, busy}}}}}
	config := f.write("mcp-retry.yaml", fieldConfig(f.write("script.json", script.String()), ""))
	f.launch([]string{"wrap", "--log-level", "debug", "--retries", "0", "--config", config}, nil, false)
	f.open()
	f.reconfigure("retry: {max_retries: 5}")
	f.reloaded("info", "in force")
	f.call("1", "work", "{}")
	f.failure("1", -32000)
	f.attempts("work", 1)
}

func TestOneOfSeveralServersIsReconfigured(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := newField(t)
	f.write("script.json", flaky.Script{Ledger: f.ledger, Tools: []flaky.Tool{{Name: "work", Plan: flaky.Plan{Outcomes: []flaky.Outcome{busy, busy}}}}}.String())
	f.write("other.json", flaky.Script{Ledger: filepath.Join(f.dir, "other.jsonl"), Tools: []flaky.Tool{{Name: "rest"}}}.String())
	both := func(settings string) string {
		other := strings.TrimPrefix(fieldConfig(filepath.Join(f.dir, "other.json"), ""), "servers:\n")
		return fieldConfig(filepath.Join(f.dir, "script.json"), settings) + strings.Replace(other, "flaky:", "other:", 1)
	}
	f.launch([]string{"run", "--log-level", "debug", "--config", f.write("mcp-retry.yaml", both("retry: {max_retries: 0}"))}, nil, false)
	f.open()
	f.call("1", "flaky__work", "{}")
	f.failure("1", -32000)
	f.put(both("retry: {max_retries: 1, base_delay: 1ms}"))
	f.reloaded("info", "in force")
	f.call("2", "flaky__work", "{}")
	f.success("2")
	f.call("3", "other__rest", "{}")
	f.success("3")
	f.attempts("work", 3)
}
