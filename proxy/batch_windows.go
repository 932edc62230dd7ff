package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
)

// throughShell has cmd.exe run the command if it is a batch file.
func throughShell(cmd *exec.Cmd) error {
	if !isBatch(cmd.Path) {
		return nil
	}
	line, err := batchLine(filepath.FromSlash(cmd.Path), cmd.Args[1:])
	if err != nil {
		return err
	}
	cmd.SysProcAttr.CmdLine = line
	cmd.Path = filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe") // not the one that comes first on some PATH
	return nil
}
