package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestB105OrdinaryErrorsDoNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	f := startField(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 3, cooldown_seconds: 600}\ntools: {hangs: {call_timeout: 0.2}}\n", toolbox(
		always(readTool("refuses"), flaky.Outcome{IsError: "bad argument"}),
		always(readTool("invalid"), flaky.Outcome{Error: &flaky.Error{Code: -32602, Message: "bad argument"}}),
		always(readTool("hangs"), flaky.Outcome{Hang: true}),
		readTool("works"),
	))
	f.open()
	next := 0
	call := func(tool string) *fieldFrame {
		next++
		id := strconv.Itoa(next)
		f.call(id, tool, fmt.Sprintf(`{"n":%d}`, next))
		return f.answer(id)
	}
	for range 5 {
		call("refuses")
	}
	for range 5 {
		call("invalid")
	}
	call("hangs")
	call("hangs")
	if r := call("works"); r.Result == nil { // a round trip resets the count
		t.Errorf("the breaker is open: %s", r.line)
	}
	for range 3 {
		if r := call("hangs"); r.Error == nil || r.Error.Code != -31001 {
			t.Errorf("the breaker is open too early: %s", r.line)
		}
	}
	for _, tool := range []string{"hangs", "works"} {
		if r := call(tool); r.Error == nil || r.Error.Code != -31002 || r.Error.Data.RetryAfterMs < 300_000 {
			t.Errorf("the breaker is not open: %s", r.line)
		}
	}
}

func TestB107ProbeOfTheBreakerStartsADeadServer(t *testing.T) {
	t.Parallel()
	script := toolbox(unsafeTool("work", flaky.Outcome{Exit: new(1)}, flaky.Outcome{Exit: new(1)}))
	script.StrictHandshake = true
	f := startField(t, "circuit_breaker: {failure_threshold: 2, cooldown_seconds: 3}\n", script)
	f.open()
	for _, id := range []string{"1", "2"} {
		f.call(id, "work", "{}")
		f.failure(id, -31004)
	}
	f.call("3", "work", "{}")
	e := f.failure("3", -31002).Error
	if e.Data.RetryAfterMs < 1 || e.Data.RetryAfterMs > 3000 {
		t.Errorf("the error says to wait %d ms", e.Data.RetryAfterMs)
	}
	f.afterCooldown(4, "work")
	f.record("a closed breaker", func(r fieldRecord) bool { return r.Msg == "circuit_breaker_state_change" && r.To == "closed" })
	f.attempts("work", 3)
}

// afterCooldown calls a tool again and again until the breaker lets a call pass, and returns the answer to that and its id.
func (f *field) afterCooldown(id int, tool string) (*fieldFrame, int) {
	f.t.Helper()
	for deadline := time.Now().Add(fieldPatience); ; id++ {
		f.call(strconv.Itoa(id), tool, fmt.Sprintf(`{"n":%d}`, id))
		r := f.answer(strconv.Itoa(id))
		if r.Error == nil || r.Error.Code != -31002 {
			return r, id
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the breaker stays open: %s", r.line)
		}
		time.Sleep(20 * time.Millisecond) // a client that does not wait as it is told
	}
}

func TestB108RejectedCallsDoNotProlongTheCooldown(t *testing.T) {
	t.Parallel()
	const cooldown = 600 * time.Millisecond
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startField(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 600ms}\n", toolbox(
		readTool("work", busy, busy, busy),
	))
	f.open()
	f.call("0", "work", "{}")
	f.failure("0", -32000)
	f.call("1", "work", "{}")
	f.failure("1", -32000)
	r, id := f.afterCooldown(2, "work")
	if r.Error == nil || r.Error.Code != -32000 {
		t.Errorf("the first probe was answered by %s", r.line)
	}
	if r, _ = f.afterCooldown(id+1, "work"); r.Result == nil {
		t.Errorf("the second probe was answered by %s", r.line)
	}
	f.attempts("work", 4)
	f.record("a closed breaker", func(r fieldRecord) bool { return r.To == "closed" })

	f.mu.Lock()
	defer f.mu.Unlock()
	var opened time.Time
	var path []string
	for _, r := range f.records {
		if r.Msg != "circuit_breaker_state_change" {
			continue
		}
		path = append(path, r.To)
		if r.To == "open" {
			opened = r.Time
		}
		if r.To == "half_open" && r.Time.Sub(opened) < cooldown {
			t.Errorf("a probe went out after %v", r.Time.Sub(opened))
		}
	}
	if got := strings.Join(path, " "); got != "open half_open open half_open closed" {
		t.Errorf("the breaker went %s", got)
	}
}
