//go:build unix

package flaky_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

func TestStubbornServerIgnoresEOFAndTerm(t *testing.T) {
	script := flaky.Script{Ledger: filepath.Join(t.TempDir(), "ledger"), Faults: flaky.Faults{IgnoreEOF: true, IgnoreTerm: true, Grandchild: true, Lifetime: 20_000}}
	cmd, in, _ := process(t, script)
	in.Close()
	awaitEvent(t, script.Ledger, flaky.EventEOF)
	cmd.Process.Signal(syscall.SIGTERM)
	awaitEvent(t, script.Ledger, flaky.EventTerm)
	grandchild := awaitEvent(t, script.Ledger, flaky.EventGrandchild).PID
	cmd.Process.Kill()
	cmd.Process.Wait()
	if err := syscall.Kill(grandchild, 0); err != nil {
		t.Errorf("the grandchild did not outlive the server: %v", err)
	}
	syscall.Kill(grandchild, syscall.SIGKILL)
}
