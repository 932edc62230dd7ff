package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// What else stands in the README that mcp-retry was first described with, beside [readmeConfig]; its indentation is restored.
const (
	readmeClient = `{
  "mcpServers": {
    "filesystem": {
      "command": "mcp-retry",
      "args": ["run", "--config", "/absolute/path/to/mcp-retry.yaml", "--server", "filesystem"]
    }
  }
}`
	readmeCheck = `mcp-retry check --config /absolute/path/to/mcp-retry.yaml`
	readmeTable = `[UP  ] filesystem 180.4ms ok
[DOWN] everything - no response within 10.0s
`
	readmeHook = `{
  "hooks": {
    "SessionStart": [
      {
        "matcher": "startup",
        "hooks": [
          {
            "type": "command",
            "command": "mcp-retry check --config /absolute/path/to/mcp-retry.yaml ; exit 0",
            "timeout": 15
          }
        ]
      }
    ]
  }
}`
	readmePlace = "/absolute/path/to" // of the config
)

func TestTheFirstEntryForAClientWorksAsItStands(t *testing.T) {
	t.Parallel()
	var client struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal([]byte(readmeClient), &client); err != nil {
		t.Fatal(err)
	}
	entry := client.MCPServers["filesystem"]
	if entry.Command != "mcp-retry" {
		t.Errorf("the command is %q", entry.Command)
	}
	f := startWithNpx(t, "mcp-retry.yaml", readmeConfig, entry.Args, toolbox(plainTool("list_directory")))
	f.open()
	f.call("1", "list_directory", `{"path":"/"}`)
	f.success("1")
	if started, _ := os.ReadFile(filepath.Join(f.dir, "started")); !strings.Contains(string(started), "@modelcontextprotocol/server-filesystem /path/to/allow") {
		t.Errorf("npx was started with %s", started)
	}
}

func TestTheFirstCheckPrintsWhatItsTextShows(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("npx is a script for a shell")
	}
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	if err := json.Unmarshal([]byte(readmeHook), &settings); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("mcp-retry.yaml", readmeConfig)
	write("mcp-retry", fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", productEnv, fieldProgram(t)))
	well := write("well.json", flaky.Script{}.String())
	mute := write("mute.json", flaky.Script{Methods: map[string]flaky.Plan{"initialize": flaky.Always(flaky.Outcome{Hang: true})}}.String())
	write("npx", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*server-everything) script='%s';;\n*) script='%s';;\nesac\nexec '%s' %s \"$script\"\n",
		mute, well, fieldProgram(t), flakyCommand))
	for line, status := range map[string]int{readmeCheck: 1, settings.Hooks["SessionStart"][0].Hooks[0].Command: 0} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, readmePlace, dir))
			cmd.Dir = t.TempDir() // hooks run anywhere
			cmd.Env = append(fieldEnvironment(nil), "HOME="+cmd.Dir, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, err := cmd.Output()
			if got := cmd.ProcessState.ExitCode(); got != status {
				t.Errorf("exit status %d, want %d (%v)", got, status, err)
			}
			if got, want := duration.ReplaceAllString(string(out), "*"), duration.ReplaceAllString(readmeTable, "*"); got != want {
				t.Errorf("it printed\n%s\nnot\n%s", got, want)
			}
		})
	}
}

// duration is how long a server took to answer, with the blanks that align the table.
var duration = regexp.MustCompile(` +[0-9.]+ms +`)
