package proxy

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// A lifeline ends all processes of a server's group when we are gone, however that came: also those that the server has started,
// which the signal of dieWithParent does not reach.
//
// It is a pipe that nobody writes to. The server inherits the end for reading, and so does what it starts; the end for writing is
// ours alone. The kernel is told to signal that something can be read to the whole group, by KILL: what there is to read is the
// end of the pipe, when we have gone and our end with us. A process that has left the group is on its own, and so are those
// that the server started without any of its open files, if it goes before that.
//
// The nil lifeline does nothing.
type lifeline struct{ ours, theirs *os.File }

// newLifeline prepares a command that is about to be started. Without a lifeline, dieWithParent is left.
func newLifeline(cmd *exec.Cmd) *lifeline {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
	return &lifeline{ours, theirs}
}

// tie ties the processes of a group to us; p leads it and has just been started.
func (l *lifeline) tie(p *os.Process) {
	if l == nil {
		return
	}
	if conn, err := l.theirs.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) {
			// Only the last of these arms it.
			if _, err := unix.FcntlInt(fd, unix.F_SETOWN, -p.Pid); err != nil {
				return
			}
			if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(syscall.SIGKILL)); err != nil {
				return
			}
			if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err == nil {
				unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
			}
		})
	}
	l.theirs.Close()
}

// cut lets go of it: the group has ended, or was never tied.
func (l *lifeline) cut() {
	if l != nil {
		closeFiles(l.theirs, l.ours)
	}
}
