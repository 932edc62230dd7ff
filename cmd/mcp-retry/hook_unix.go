//go:build !windows

package main

import (
	"os"
	"strconv"
	"syscall"
)

// keepDescriptors has no server that is checked inherit what our host has opened beside the standard streams. A copy of a hook's
// output may be among it, and a server, or what that leaves running, would hold it: hosts wait for its end.
func keepDescriptors() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // those that we opened ourselves are so already
		}
	}
}
