//go:build unix

package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// isolate gives a command a process group of its own, so that Ctrl+C in a terminal reaches us alone, and so that whatever
// it starts can be ended with it.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// adopt and disown have nothing to do: a process group needs no keeping.
func adopt(*os.Process)  {}
func disown(*os.Process) {}

// terminateGroup asks the processes of a group to end.
func terminateGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends the processes of a group.
func killGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }

// groupAlive reports whether any process of a group is left.
func groupAlive(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) != syscall.ESRCH }

// describeExit says how a process ended.
func describeExit(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return fmt.Sprintf("exit status %d", state.ExitCode())
	}
	words := "killed by signal: " + status.Signal().String()
	if status.CoreDump() {
		words += " (core dumped)"
	}
	return words
}
