//go:build unix

package proxy

import (
	"os"
	"os/signal"
	"syscall"
)

// ignoreBrokenPipes keeps a closed stdout or stderr from killing the process, and returns what undoes that. Servers, unlike
// after signal.Ignore, start with the usual disposition.
func ignoreBrokenPipes() (undo func()) {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
