//go:build unix

package proxy

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// blocking makes a file blocking, as stdout is when a process starts.
func blocking(t *testing.T, f *os.File) bool {
	t.Helper()
	f.Fd()
	return isBlocking(t, f)
}

// isBlocking reports whether a file is in blocking mode.
func isBlocking(t *testing.T, f *os.File) bool {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var flags int
	conn.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK == 0
}
