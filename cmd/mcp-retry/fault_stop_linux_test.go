package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// stop has the server hang as a process does that waits for a dead disk: it does not run at all. It returns its process.
func (f *faultField) stop() int {
	f.t.Helper()
	pid := f.pid()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("a stopped server", func() bool { return processState(pid) == 'T' })
	return pid
}

func (f *faultField) resume(pid int) {
	f.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		f.t.Fatal(err)
	}
}

// processState is the state of a process: R, S, D, T, Z, or 0 if there is none.
func processState(pid int) byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return state[0]
}

// TestFaultStoppedServerAnswersLate: what it answers once it goes on reaches whoever asks again, and nobody twice. It was done
// once.
func TestFaultStoppedServerAnswersLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, more string }{
		{"read-only", "reads", ""},
		{"unannotated", "plain", ""},
		{"unsafe", "pays", ""},
		{"keyed", "pays", `"_meta":{"idempotencyKey":"k"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 100}\n"+
				"policy: [{when: args.n == 1, call_timeout: 0.3s}]\n")
			f.open()
			var more []string
			if c.more != "" {
				more = []string{c.more}
			}
			pid := f.stop()
			f.order("1", c.tool, faultOrder{N: 1}, more...)
			f.failure("1", -31001)
			f.resume(pid)
			f.came(1, 1)
			f.ping() // the server answers in order, so it has answered the call now
			f.order("2", c.tool, faultOrder{N: 1}, more...)
			f.success("2").done(t, 1, 1)
			f.order("3", c.tool, faultOrder{N: 3})
			f.success("3").done(t, 3, 1)
			f.close()
			f.nothingElse()
			f.kept(1, 1, 1)
			if lives := len(f.book.lives()); lives != 1 {
				t.Errorf("the server was started %d times", lives)
			}
		})
	}
}

// TestFaultRepeatJoinsACallOfAStoppedServer that may still be done: it is not sent again, and gets its answer.
func TestFaultRepeatJoinsACallOfAStoppedServer(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {`"_meta":{"idempotencyKey":"k"}`}} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 100}\n"+
				"policy: [{name: patience, when: 'has(meta.patient)', call_timeout: 60s, total_timeout: 70s}]\n"+
				"tools: {pays: {call_timeout: 0.3}}\n")
			f.open()
			pid := f.stop()
			f.order("1", "pays", faultOrder{N: 1}, more...)
			f.failure("1", -31001)
			f.order("2", "pays", faultOrder{N: 1}, more...)
			f.failure("2", -31007)
			patient := `"_meta":{"patient":true}`
			if more != nil {
				patient = `"_meta":{"patient":true,"idempotencyKey":"k"}`
			}
			f.order("3", "pays", faultOrder{N: 1}, patient)
			f.until("a third call", func() bool { return f.count("tool_call_start") == 3 })
			f.resume(pid)
			f.success("3").done(t, 1, 1)
			f.close()
			f.nothingElse()
			f.kept(1, 1, 1)
		})
	}
}

// TestFaultStoppedServerAnswersEachAttempt, once it goes on: the first answer is the client's, all others are nobody's.
func TestFaultStoppedServerAnswersEachAttempt(t *testing.T) {
	t.Parallel()
	f := startFault(t, "retry: {max_retries: 10, base_delay: 0.01, backoff: constant}\ncircuit_breaker: {failure_threshold: 100}\ncall_timeout: 0.5\n")
	f.open()
	pid := f.stop()
	f.order("1", "reads", faultOrder{N: 1})
	f.record("a second attempt", func(r fieldRecord) bool { return r.Msg == "attempt_end" && r.Attempt == 1 })
	f.resume(pid)
	f.success("1")
	f.ping()
	f.close()
	f.nothingElse()
}

// TestFaultServerIsStoppedForGood: it is ended, and the next life serves.
func TestFaultServerIsStoppedForGood(t *testing.T) {
	t.Parallel()
	f := startFault(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 0.1}\n"+
		"policy: [{when: has(meta.impatient), call_timeout: 0.3s}]\n")
	f.open()
	pid := f.stop()
	n := 0
	f.eventually("a life that serves", func() bool {
		n++
		f.mu.Lock()
		hung := f.count("server_hung") > 0
		f.mu.Unlock()
		var more []string
		if !hung {
			more = []string{`"_meta":{"impatient":true}`}
		}
		f.order(strconv.Itoa(n), "pays", faultOrder{N: n}, more...)
		r := f.answer(strconv.Itoa(n))
		if r.Result != nil {
			r.done(t, n, 1)
			return true
		}
		if code := r.Error.Code; code != -31001 && code != -31002 && code != -31004 { // it hangs, is spared for now, is being ended
			t.Fatalf("the answer is %s", r.line)
		}
		return false
	})
	awaitEnd(t, pid)
	f.logged("server_hung")
	if lives := len(f.book.lives()); lives != 2 {
		t.Errorf("the server was started %d times, want twice", lives)
	}
}

// TestFaultStoppedServerIsEndedWithTheSession, whichever way that ends.
func TestFaultStoppedServerIsEndedWithTheSession(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*faultField){
		"end of input": func(f *faultField) { f.close() },
		"SIGTERM":      func(f *faultField) { f.cmd.Process.Signal(syscall.SIGTERM); f.exit() },
		"SIGKILL":      func(f *faultField) { f.cmd.Process.Kill(); f.exit() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "")
			f.open()
			pid := f.stop()
			end(f)
			awaitEnd(t, pid)
		})
	}
}
