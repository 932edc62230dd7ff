package flaky

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// bearChild starts this program once more, as a server that never reads, never answers and ignores SIGTERM. It holds the
// stdout and stderr of its parent open, as a daemon does that a server leaves behind.
func (l *life) bearChild() {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(l.stderr, "flaky: starting a grandchild: %v\n", err)
		return
	}
	idle := Script{Start: &Plan{Then: &Outcome{Hang: true}}, Faults: Faults{IgnoreTerm: true, Lifetime: l.script.Lifetime}}
	child := exec.Command(self, os.Args[1:]...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, EnvVar+"=") {
			child.Env = append(child.Env, variable)
		}
	}
	child.Env = append(child.Env, EnvVar+"="+idle.String())
	child.Stdout, child.Stderr = l.wire.out, l.stderr
	if err := child.Start(); err != nil {
		fmt.Fprintf(l.stderr, "flaky: starting a grandchild: %v\n", err)
		return
	}
	l.journal.record(Entry{Event: EventGrandchild, PID: child.Process.Pid})
	go child.Wait()
}
