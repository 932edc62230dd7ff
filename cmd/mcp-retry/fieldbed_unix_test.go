//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group, as a shell does.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup does what Ctrl+C in a terminal does to the processes of a group.
func interruptGroup(leader int) bool { return syscall.Kill(-leader, syscall.SIGINT) == nil }
