package proxy

import "syscall"

// dieWithParent has the kernel kill the process if we are killed. It is tied to the thread that forks.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
