//go:build !windows

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file to the owner of another one, as far as that is allowed: if root rewrites a file of a user's, the user
// must be able to read it afterwards.
func keepOwner(f *os.File, as fs.FileInfo) {
	if owner, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(owner.Uid), int(owner.Gid)) // for anybody but root the file is theirs already
	}
}
