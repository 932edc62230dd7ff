package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// shieldConfig is the config file in the README of mcp-shield, as it stands there.
const shieldConfig = `# mcp-shield.yaml
defaults:
  timeout: 30s
  retries:
    max: 3
    backoff: exponential
    jitter: true
  circuit_breaker:
    threshold: 5
    reset_after: 60s

servers:
  github:
    command: "npx @modelcontextprotocol/server-github"
    env:
      GITHUB_TOKEN: "${GITHUB_TOKEN}"
    tools:
      get_file_contents:
        timeout: 60s          # slow tool gets more time
      search_repositories:
        retries:
          max: 5              # flaky tool gets more retries

  filesystem:
    command: "npx @modelcontextprotocol/server-filesystem /home/user"
    timeout: 10s
    retries:
      max: 1                  # local filesystem rarely needs retry
`

// shieldDesktop is its entry in the config of Claude Desktop.
const shieldDesktop = `{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": [
        "@daino/mcp-shield", "wrap",
        "--timeout", "30s",
        "--retries", "3",
        "--",
        "npx", "@modelcontextprotocol/server-github"
      ],
      "env": {
        "GITHUB_TOKEN": "your-token-here"
      }
    }
  }
}`

// shieldCommands are its command lines, without the program's own name.
const shieldCommands = `wrap -- npx @modelcontextprotocol/server-github
wrap --timeout 60s --retries 5 -- npx server-github
wrap --config mcp-shield.yaml --server github`

// startWithNpx starts the product with a command line, beside a config file of that name, where npx is a program that plays the
// script and writes down with what arguments it was started.
func startWithNpx(t *testing.T, name, config string, args []string, script flaky.Script) *field {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("npx is a script for a shell")
	}
	f := newField(t)
	script.Ledger = f.ledger
	bin := filepath.Join(f.dir, "bin")
	npx := fmt.Sprintf("#!/bin/sh\necho \"$GITHUB_TOKEN\" \"$@\" > %s/started\nexec %s %s %s\n", f.dir, fieldProgram(t), flakyCommand, f.write("script.json", script.String()))
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "npx"), []byte(npx), 0o700); err != nil {
		t.Fatal(err)
	}
	f.write(name, config)
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], readmePlace, f.dir)
	}
	f.launch(args, []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "GITHUB_TOKEN=secret"}, false)
	return f
}

// startShielded starts the product with a command line of mcp-shield.
func startShielded(t *testing.T, args []string, script flaky.Script) *field {
	t.Helper()
	return startWithNpx(t, "mcp-shield.yaml", shieldConfig, args, script)
}

// readmeConfig is the config file that mcp-retry was first described with, its indentation restored.
const readmeConfig = `# mcp-retry.yaml
servers:
  filesystem:
    command: npx
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/path/to/allow"]
    call_timeout: 20 # seconds to wait for one downstream response
    retry:
      max_retries: 3 # additional attempts after the first
      base_delay: 0.5 # seconds; doubles each retry
      max_delay: 20
      jitter: 0.2 # +/- 20% randomization to avoid thundering herds
    cache:
      default_ttl: 0 # 0 = caching off unless a tool overrides it
      tools:
        list_directory: 30 # seconds; read-only tools are safe to cache
        read_file: 15
    circuit_breaker:
      failure_threshold: 5 # consecutive failures before tripping open
      cooldown_seconds: 30 # how long to fail fast before a trial call
    idempotency_ttl: 300 # seconds a successful result is kept so an
    # exact retry (same args, or explicit key)
    # returns it instead of re-executing
  everything:
    command: npx
    args: ["-y", "@modelcontextprotocol/server-everything"]
`

func TestTheFirstConfigActsAsItsTextSays(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startWithNpx(t, "mcp-retry.yaml", readmeConfig, []string{"run", "--config", "mcp-retry.yaml", "--server", "filesystem"},
		toolbox(plainTool("list_directory"), plainTool("write_file", busy)))
	f.open()
	for _, id := range []string{"1", "2"} {
		f.call(id, "list_directory", `{"path":"/"}`)
		f.success(id)
	}
	f.attempts("list_directory", 1)
	f.call("3", "write_file", `{"path":"/a","_idempotency_key":"k"}`)
	if got := f.success("3").text(); strings.Contains(got, "_idempotency_key") {
		t.Errorf("the server saw the key: %s", got)
	}
	f.attempts("write_file", 2)
	f.call("4", "write_file", `{"path":"/b"},"_meta":{"idempotencyKey":"k"}`) // the same operation, whatever its other arguments
	f.success("4")
	f.attempts("write_file", 2)
	f.call("5", "write_file", `{"path":"/c"}`)
	f.success("5")
	f.call("6", "write_file", `{"path":"/c"}`) // an exact repeat
	f.success("6")
	f.attempts("write_file", 3)
	if started, _ := os.ReadFile(filepath.Join(f.dir, "started")); string(started) != "secret -y @modelcontextprotocol/server-filesystem /path/to/allow\n" {
		t.Errorf("npx was started with %s", started)
	}
}

func TestTheCommandLinesOfMcpShieldWorkAsTheyStand(t *testing.T) {
	t.Parallel()
	var desktop struct {
		MCPServers map[string]struct{ Args []string }
	}
	if err := json.Unmarshal([]byte(shieldDesktop), &desktop); err != nil {
		t.Fatal(err)
	}
	lines := [][]string{desktop.MCPServers["github"].Args[1:]}
	for line := range strings.Lines(shieldCommands) {
		lines = append(lines, strings.Fields(line))
	}
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	wrong := flaky.Outcome{Error: &flaky.Error{Code: -32602, Message: "no such file"}}
	for _, args := range lines {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			f := startShielded(t, args, toolbox(plainTool("get_file_contents", busy), plainTool("search_repositories", wrong)))
			f.open()
			f.call("1", "get_file_contents", "{}")
			f.success("1")
			f.attempts("get_file_contents", 2)
			f.call("2", "search_repositories", "{}") // "deterministic errors … are never retried"
			f.failure("2", -32602)
			f.attempts("search_repositories", 1)
			started, err := os.ReadFile(filepath.Join(f.dir, "started"))
			want := args[len(args)-1]
			if want == "github" {
				want = "@modelcontextprotocol/server-github"
			}
			if got := strings.TrimSpace(string(started)); err != nil || got != "secret "+want {
				t.Errorf("npx was started with %q, want %q", got, want)
			}
			f.record("the call", func(r fieldRecord) bool { return r.Msg == "tool_call_end" && r.Status == "success" })
			f.mu.Lock()
			defer f.mu.Unlock()
			i := slices.IndexFunc(f.words, func(line string) bool {
				return strings.Contains(line, `"msg":"tool_call_end"`) && strings.Contains(line, `"status":"success"`)
			})
			for _, member := range []string{`"level":"info"`, `"server":"`, `"tool":"get_file_contents"`, `"duration_ms":`, `"attempt":2`} {
				if i < 0 || !strings.Contains(f.words[i], member) {
					t.Errorf("there is no %s in the record of the call", member)
				}
			}
		})
	}
}

func TestFlagsWinOverAFileOfMcpShield(t *testing.T) {
	t.Parallel()
	f := startShielded(t, []string{"wrap", "--config", "mcp-shield.yaml", "--server", "github", "--timeout", "3s", "--retries", "0"},
		toolbox(plainTool("get_file_contents", flaky.Outcome{Hang: true}), plainTool("search_repositories", flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}})))
	f.open()
	f.call("1", "get_file_contents", "{}")
	if e := f.failure("1", -31001).Error; !strings.Contains(e.Message, "Tool 'get_file_contents' timed out after 3000ms") {
		t.Errorf("the error is %q", e.Message)
	}
	f.call("2", "search_repositories", "{}")
	f.failure("2", -32000)
	f.attempts("search_repositories", 1)
}

func TestServersOfMcpShieldAreComposed(t *testing.T) {
	t.Parallel()
	f := startShielded(t, []string{"run", "--config", "mcp-shield.yaml"}, toolbox(plainTool("look")))
	f.open()
	f.call("1", "github__look", "{}")
	f.success("1")
	f.call("2", "filesystem__look", "{}")
	f.success("2")
}

// listedTools lists all tools page by page.
func (f *field) listedTools() (names []string, pages int) {
	f.t.Helper()
	params := `{}`
	for {
		pages++
		id := fmt.Sprintf(`"page %d"`, pages)
		f.request(id, "tools/list", params)
		var r struct {
			Tools      []struct{ Name string }
			NextCursor *string
		}
		if err := json.Unmarshal(f.success(id).Result, &r); err != nil {
			f.t.Fatal(err)
		}
		for _, tool := range r.Tools {
			names = append(names, tool.Name)
		}
		if r.NextCursor == nil {
			return names, pages
		}
		cursor, _ := json.Marshal(*r.NextCursor)
		params = `{"cursor":` + string(cursor) + `}`
	}
}

func TestFilteredToolsAreAbsentAndRefused(t *testing.T) {
	t.Parallel()
	script := toolbox(plainTool("put_a"), plainTool("get_a"), plainTool("get_secret"), plainTool("get_b"), plainTool("drop"))
	script.PageSize = 2
	for filter, want := range map[string]string{
		`{}`:                                     "put_a get_a get_secret get_b drop",
		`{allow: ["get_*"]}`:                     "get_a get_secret get_b",
		`{allow: ["get_*"], deny: [get_secret]}`: "get_a get_b",
		`{allow: [get_secret], deny: ["*_sec*"]}`: "",
		`{deny: ["get_?", drop]}`:                 "put_a get_secret",
		`{allow: []}`:                             "",
	} {
		t.Run(filter, func(t *testing.T) {
			t.Parallel()
			f := startField(t, "tool_filter: "+filter, script)
			f.greet()
			names, _ := f.listedTools()
			if got := strings.Join(names, " "); got != want {
				t.Errorf("listed: %s; want %s", got, want)
			}
			for i, tool := range script.Tools {
				id := fmt.Sprint(i)
				f.call(id, tool.Name, "{}")
				if slices.Contains(names, tool.Name) {
					f.success(id)
				} else {
					f.failure(id, -31005)
					f.attempts(tool.Name, 0)
				}
			}
		})
	}
}

func TestARuleThatDeniesHidesNothing(t *testing.T) {
	t.Parallel()
	f := startField(t, `policy: [{deny: 'args.path.startsWith("/etc") ? "not there" : ""'}]`, toolbox(plainTool("look")))
	f.greet()
	if names, _ := f.listedTools(); !slices.Equal(names, []string{"look"}) {
		t.Errorf("listed: %v", names)
	}
	f.call("1", "look", `{"path":"/etc/passwd"}`)
	if e := f.failure("1", -31005).Error; !strings.Contains(e.Message, "not there") {
		t.Errorf("the error is %q", e.Message)
	}
	f.call("2", "look", `{"path":"/tmp"}`)
	f.success("2")
}

func TestARateIsLimitedByTheKeyOfARule(t *testing.T) {
	t.Parallel()
	f := startField(t, "rate_limit: {calls: 1, per: 3600}\npolicy: [{rate_limit_key: 'args.user'}]", toolbox(plainTool("work"), plainTool("rest")))
	f.open()
	f.call("1", "work", `{"user":"ann","n":1}`)
	f.success("1")
	f.call("2", "rest", `{"user":"ann","n":2}`) // the key is all that counts
	if e := f.failure("2", -31003).Error; e.Data.RetryAfterMs < 1 || e.Data.RetryAfterMs > 3600_000 {
		t.Errorf("it may be repeated after %d ms", e.Data.RetryAfterMs)
	}
	f.call("3", "work", `{"user":"bob","n":3}`)
	f.success("3")
	f.call("4", "work", `{"n":4}`) // no key: the tool's own bucket
	f.success("4")
	f.call("5", "rest", `{"n":5}`)
	f.success("5")
	f.call("6", "work", `{"n":6}`)
	f.failure("6", -31003)
}

func TestCallsWaitTheirTurnForATokenAndEachAttemptTakesOne(t *testing.T) {
	t.Parallel()
	f := startField(t, "rate_limit: {calls: 5, per: 1, burst: 1, max_wait: 30}", toolbox(plainTool("work")))
	f.open()
	const calls = 6
	for i := range calls {
		f.call(fmt.Sprint(i), "work", fmt.Sprintf(`{"n":%d}`, i))
	}
	for i := range calls {
		if n := f.success(fmt.Sprint(i)).execution(); n != i+1 {
			t.Errorf("call %d was execution %d", i, n)
		}
	}
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f = startField(t, "rate_limit: {calls: 1, per: 3600, burst: 2}\nretry: {max_retries: 3, base_delay: 1ms}", toolbox(always(plainTool("work"), busy)))
	f.open()
	f.call("1", "work", "{}")
	f.answer("1")
	f.attempts("work", 2)
}

func TestOnlySoManyCallsAreAtTheServerAtATime(t *testing.T) {
	t.Parallel()
	f := startField(t, "max_concurrency: 1", toolbox(plainTool("never", flaky.Outcome{Hang: true}), plainTool("work")))
	f.open()
	f.call("1", "never", "{}")
	f.arrived("never", 1)
	f.call("2", "work", "{}")
	f.call("3", "work", `{"n":3}`)
	f.cancel("2") // while it waits
	f.ping()
	f.attempts("work", 0)
	f.cancel("1")
	f.success("3")
	f.attempts("work", 1)
	f.nothingElse()
}
