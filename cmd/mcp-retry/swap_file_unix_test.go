//go:build !windows

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFileThatRootRewritesStaysItsOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	const somebody = 12345
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, somebody, somebody); err != nil {
		t.Skip(err)
	}
	backup, _, err := backUp(file, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	if err := swapFile(file, []byte("before"), []byte("after")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, backup} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != somebody || owner.Gid != somebody || info.Mode() != 0o600 {
			t.Errorf("%s belongs to %d:%d, its mode is %s", filepath.Base(name), owner.Uid, owner.Gid, info.Mode())
		}
	}
}
