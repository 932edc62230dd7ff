package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs the scripts of testdata/script, one for each topic of a command. With UPDATE_SCRIPTS set, the outputs that
// they compare with are written anew.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:               ownHome,
	})
}

// ownHome gives a script a home of its own, $WORK/home, with no file of any client in it, and the path of the program as
// $PROGRAM.
func ownHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	for name, value := range map[string]string{
		"HOME": home, "USERPROFILE": home, "APPDATA": filepath.Join(home, "AppData"), "XDG_CONFIG_HOME": filepath.Join(home, ".config"),
		"CLAUDE_CONFIG_DIR": "",
	} {
		env.Setenv(name, value)
	}
	program, err := exec.LookPath("mcp-retry")
	if err != nil {
		return err
	}
	env.Setenv("PROGRAM", program)
	return os.MkdirAll(home, 0o755)
}
