package main

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestAServerThatWritesToStderrWithoutEndDoesNotBuryTheLog(t *testing.T) {
	t.Parallel()
	const lines = 20000
	status := 3
	f := startField(t, "retry: {max_retries: 0}", toolbox(plainTool("die", flaky.Outcome{
		Stderr: strings.Repeat("\x1b[31mspam\x1b[0m\n", lines) + strings.Repeat("long", 4<<10) + "\nlast words", Exit: &status,
	})))
	f.open()
	f.call("1", "die", "{}")
	if e := f.failure("1", -31004).Error; !strings.Contains(e.Message, "last words") || strings.Contains(e.Message, "\x1b") || len(e.Message) > 8<<10 {
		t.Errorf("the error is %.400q", e.Message)
	}
	dropped := f.record("what was left out", func(r fieldRecord) bool { return r.Msg == "log_dropped" && r.Server == "flaky" })
	if !strings.Contains(dropped.Detail, "lines of its stderr") {
		t.Errorf("the log says %q", dropped.Detail)
	}
	f.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	logged := 0
	for _, r := range f.records {
		if r.Msg != "server_stderr" {
			continue
		}
		logged++
		if strings.ContainsRune(r.Text, '\x1b') {
			t.Errorf("an escape sequence is in the log: %q", r.Text)
		}
	}
	if logged == 0 || logged > lines/4 {
		t.Errorf("%d lines were logged", logged)
	}
}
