//go:build !linux

package proxy

import (
	"os"
	"os/exec"
)

// A lifeline ends all processes of a server's group when we are gone. Here there is none: on Windows a job object does the same,
// elsewhere a server has only the end of its stdin to go by.
type lifeline struct{}

func newLifeline(*exec.Cmd) *lifeline { return nil }
func (l *lifeline) tie(p *os.Process) {}
func (l *lifeline) cut()              {}
