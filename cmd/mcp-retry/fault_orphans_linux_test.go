package main

import (
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// TestFaultKilledProxyLeavesNothingBehind: it gets no chance to end anything, at whatever moment that is; the server and all that
// it has started end all the same, and the client sees the end of its input.
func TestFaultKilledProxyLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	script := toolbox(unsafeTool("hangs", flaky.Outcome{Hang: true}), unsafeTool("works"),
		unsafeTool("floods", flaky.Outcome{Flood: 64 << 20}), unsafeTool("dies", flaky.Outcome{Kill: true}))
	script.IgnoreEOF, script.IgnoreTerm, script.Grandchild = true, true, true
	for name, moment := range map[string]func(f *field){
		"before the handshake": func(f *field) { f.written("a start", hasGrandchild(1)) },
		"between calls":        func(f *field) { f.open() },
		"during a call":        func(f *field) { f.open(); f.call("1", "hangs", "{}"); f.arrived("hangs", 1) },
		"during an answer":     func(f *field) { f.open(); f.call("1", "floods", "{}"); f.arrived("floods", 1) },
		"while a server starts": func(f *field) {
			f.open()
			f.call("1", "dies", "{}")
			f.failure("1", -31004)
			f.call("2", "works", "{}")
		},
		"while a server ends": func(f *field) { f.open(); f.stdin.Close(); f.written("the end of input", sawEOF) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startField(t, "", script)
			moment(f)
			f.cmd.Process.Kill()
			f.exit() // the client has seen the end of its input then, and of the log
			f.eventually("the end of all processes", func() bool { return len(processesOf(f.dir+"/script.json")) == 0 })
		})
	}
}

func hasGrandchild(n int) func(flaky.Ledger) bool {
	return func(l flaky.Ledger) bool { return len(l.Events(flaky.EventGrandchild)) >= n }
}

func sawEOF(l flaky.Ledger) bool { return len(l.Events(flaky.EventEOF)) > 0 }
