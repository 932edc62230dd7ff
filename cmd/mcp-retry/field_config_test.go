package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// fieldCommand carries out a command line that starts no server, in this process.
func fieldCommand(args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = run(args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}

// fieldProcess carries out a command line in a process of its own; a client pings the server, if there is one, and goes.
func fieldProcess(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), fieldProgram(t), args...)
	cmd.Env = fieldEnvironment(env)
	cmd.Dir = t.TempDir()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// fieldFile writes a file of its own and returns its path.
func fieldFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestB73PathsWithSpacesAndSpecialArgumentsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "Program Files")
	work := filepath.Join(dir, "working directory")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "the server.exe")
	if err := os.Symlink(fieldProgram(t), program); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	script := flaky.Script{Ledger: filepath.Join(dir, "the ledger")}
	file := filepath.Join(dir, "the script.json")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	special := []string{`a b`, `"quoted" & 'single'`, `$HOME %PATH% ; rm`, ``, `*`, `back\slash`}
	args := []string{flakyCommand, file}
	config := fieldFile(t, "mcp-retry.json", fmt.Sprintf(`{"servers":{"flaky":{"command":%q,"args":%s,"cwd":%q}}}`,
		program, quoteAll(slices.Concat(args, special)), work))
	_, stderr, status := fieldProcess(t, nil, "run", "--config", config)
	if status != exitFine {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	ledger, err := flaky.ReadLedger(script.Ledger)
	if err != nil || len(ledger) == 0 {
		t.Fatalf("the server was never started: %v, %s", err, stderr)
	}
	if got := ledger[0].Argv[1:]; !slices.Equal(got, slices.Concat(args, special)) {
		t.Errorf("the arguments became %q", got)
	}
	if !sameFile(ledger[0].Cwd, work) {
		t.Errorf("the server runs in %q", ledger[0].Cwd)
	}
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func TestB74EnvironmentIsAddedToOurs(t *testing.T) {
	t.Parallel()
	f := fieldSetup{
		settings: "env: {A: \"1\", BOTH: theirs, PATH: /nowhere}\n",
		script:   flaky.Script{Environment: []string{"A", "B", "BOTH", "PATH", "HOME", "LANG"}},
		env:      []string{"B=2", "BOTH=ours", "HOME=/home/x", "LANG=C"},
	}.start(t)
	f.open()
	want := map[string]string{"A": "1", "B": "2", "BOTH": "theirs", "PATH": "/nowhere", "HOME": "/home/x", "LANG": "C"}
	if got := f.readLedger()[0].Environment; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the server sees %v", got)
	}
}

func TestB74WorkingDirectory(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(dir, "ledger")
	script := filepath.Join(dir, "script.json")
	if err := os.WriteFile(script, []byte(flaky.Script{Ledger: ledger}.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "mcp-retry.yaml")
	for cwd, want := range map[string]string{
		dir: dir, "work": filepath.Join(dir, "work"), "~": home, "${PLACE}": dir, "": "/",
	} {
		os.Remove(ledger)
		setting := ""
		if cwd != "" {
			setting = "cwd: " + strconv.Quote(cwd)
		}
		if err := os.WriteFile(config, []byte(fieldConfig(script, setting)), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), fieldProgram(t), "run", "--config", config)
		cmd.Dir = "/" // as clients with a window start their servers
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "PLACE=" + dir, "GORACE=atexit_sleep_ms=0", productEnv + "=1"}
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cwd %q: %v: %s", cwd, err, out)
		}
		entries, err := flaky.ReadLedger(ledger)
		if err != nil || len(entries) == 0 || !sameFile(entries[0].Cwd, want) {
			t.Errorf("cwd %q: the server runs in %+v, want %s", cwd, entries, want)
		}
	}
}

func TestB74MissingWorkingDirectory(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	f := startField(t, "cwd: "+strconv.Quote(missing)+"\n", flaky.Script{})
	f.request("1", "initialize", fieldHello)
	if e := f.failure("1", -31004).Error; !strings.Contains(e.Message, "cwd") || !strings.Contains(e.Message, missing) {
		t.Errorf("the error is %q", e.Message)
	}
}

func TestB76VariablesAreExpandedWhereAServerIsDescribed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := flaky.Script{Ledger: filepath.Join(dir, "ledger"), Environment: []string{"SECRET"}}
	file := fieldFile(t, "script.json", script.String())
	config := fieldFile(t, "mcp-retry.yaml", fmt.Sprintf(`servers:
  flaky:
    command: "${PROGRAM}"
    args: [%s, %q, "${TOKEN}", "x${UNSET:-y}z", "${EMPTY:-default}", "$${TOKEN}", "$TOKEN"]
    env: {SECRET: "Bearer ${TOKEN}"}
    cwd: "${DIR}"
`, flakyCommand, file))
	env := []string{"PROGRAM=" + fieldProgram(t), "TOKEN=s3cret-${DIR}", "DIR=" + dir, "EMPTY="}
	_, stderr, status := fieldProcess(t, env, "run", "--log-level", "debug", "--config", config)
	if status != exitFine {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	ledger, err := flaky.ReadLedger(script.Ledger)
	if err != nil || len(ledger) == 0 {
		t.Fatalf("the server was never started: %v, %s", err, stderr)
	}
	start := ledger[0]
	if want := []string{"s3cret-${DIR}", "xyz", "default", "${TOKEN}", "$TOKEN"}; !slices.Equal(start.Argv[3:], want) {
		t.Errorf("the arguments became %q, want %q", start.Argv[3:], want)
	}
	if got := start.Environment["SECRET"]; got != "Bearer s3cret-${DIR}" {
		t.Errorf("the variable became %q", got)
	}
	if !sameFile(start.Cwd, dir) {
		t.Errorf("the server runs in %q", start.Cwd)
	}
	shown, words, _ := fieldProcess(t, env, "explain", "--config", config)
	if all := stderr + shown + words; strings.Contains(all, "s3cret") {
		t.Errorf("the secret was shown: %s", all)
	}
}

func TestB76VariablesThatCannotBeExpandedAreNamed(t *testing.T) {
	t.Parallel()
	for _, place := range []string{`command: "${MISSING}"`, "command: x\n    args: [\"${MISSING}\"]", "command: x\n    env: {A: \"${MISSING}\"}", "command: x\n    cwd: \"${MISSING}\""} {
		for placeholder, word := range map[string]string{"${MISSING}": "MISSING", "${input:key}": "input:key", "${env:X}": "${X}", "${workspaceFolder}": "workspaceFolder"} {
			config := fieldFile(t, "mcp-retry.yaml", "servers:\n  flaky:\n    "+strings.ReplaceAll(place, "${MISSING}", placeholder)+"\n")
			stdout, stderr, status := fieldCommand("run", "--config", config)
			line := 3 + strings.Count(place, "\n")
			if status != exitUsage || stdout != "" || !strings.Contains(stderr, word) || !strings.Contains(stderr, fmt.Sprintf("mcp-retry.yaml:%d:", line)) {
				t.Errorf("%s in %s: exit status %d, %q, %s", placeholder, place, status, stdout, stderr)
			}
		}
	}
}

func TestB77JSONWithCommentsAndTrailingCommas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := flaky.Script{Ledger: filepath.Join(dir, "ledger")}
	file := fieldFile(t, "script.json", script.String())
	config := fieldFile(t, "mcp-retry.json", "\uFEFF"+fmt.Sprintf(`{
  // the servers
  "servers": {
    "flaky": { /* a comment, with "quotes" and // */
      "command": %q,
      "args": [%q, %q, "https://example.com//x", "/* no comment */", "a,]",],
    },
  },
}`, fieldProgram(t), flakyCommand, file))
	_, stderr, status := fieldProcess(t, nil, "run", "--config", config)
	if status != exitFine {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	ledger, err := flaky.ReadLedger(script.Ledger)
	if err != nil || len(ledger) == 0 {
		t.Fatalf("the server was never started: %v, %s", err, stderr)
	}
	if want := []string{"https://example.com//x", "/* no comment */", "a,]"}; !slices.Equal(ledger[0].Argv[3:], want) {
		t.Errorf("the arguments became %q", ledger[0].Argv)
	}
}

func TestB77ConfigOfAClientIsToldApart(t *testing.T) {
	t.Parallel()
	config := fieldFile(t, "claude.json", `{"mcpServers": {"a": {"command": "x"}}}`)
	_, stderr, status := fieldCommand("run", "--config", config)
	if status != exitUsage || !strings.Contains(stderr, `"mcpServers"`) || !strings.Contains(stderr, `"servers"`) {
		t.Errorf("exit status %d: %s", status, stderr)
	}
}

func TestB82DurationsAreSecondsOrSayTheirUnit(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		return fieldFile(t, "mcp-retry.yaml", "servers:\n  flaky:\n    command: x\n    call_timeout: "+text+"\n")
	}
	stated := regexp.MustCompile(`name: call_timeout .*\n\s+call_timeout: (\S+)`)
	for text, want := range map[string]string{
		`31`: "31s", `1.5`: "1.5s", `30s`: "30s", `1m30s`: "90s", `500ms`: "500ms", `"20s"`: "20s",
	} {
		normal, stderr, _ := fieldCommand("explain", "--config", file(text))
		got := stated.FindStringSubmatch(normal)
		if got == nil || got[1] != want {
			t.Errorf("call_timeout: %s became %q, want %s: %s%s", text, got, want, normal, stderr)
		}
	}
	for text, advice := range map[string]string{
		`"30"`: `"30s"`, `0`: "above 0", `-1s`: "negative", `-1`: "above 0", `1d`: `"24h"`, `30 s`: `"30s"`, `soon`: "20s",
	} {
		stdout, _, status := fieldCommand("validate", file(text))
		if status != exitFailed || !strings.Contains(stdout, "mcp-retry.yaml:4:19:") || !strings.Contains(stdout, advice) {
			t.Errorf("call_timeout: %s: exit status %d, %s", text, status, stdout)
		}
	}
}

func TestB82NumberOfSecondsIsNotTakenForNanoseconds(t *testing.T) {
	t.Parallel()
	f := startField(t, "call_timeout: 5\n", toolbox(plainTool("work", flaky.Outcome{Sleep: 50})))
	f.open()
	f.call("1", "work", "{}")
	f.success("1")
	f.attempts("work", 1)
}

func TestB84NamesOfToolsAreTakenAsWritten(t *testing.T) {
	t.Parallel()
	names := []string{"no", "on", "null", "1e3", "0123", "12:30:00", "yes", "~", "0x1F", "1_000", "2024-01-01", ".5"}
	var tools []flaky.Tool
	keys := "tools:\n"
	for _, name := range names {
		tools = append(tools, unsafeTool(name))
		keys += "  " + name + ": {cache_ttl: 60}\n"
	}
	list := "tool_filter: {allow: [" + strings.Join(names, ", ") + "]}\n"
	f := startField(t, list+keys, toolbox(append(tools, unsafeTool("1000"), unsafeTool("83"))...))
	f.open()
	for i, name := range names {
		for n := range 2 {
			id := strconv.Itoa(10*i + n)
			f.call(id, name, `{}`)
			f.success(id)
		}
		f.attempts(name, 1)
	}
	f.call("1001", "1000", `{}`)
	f.failure("1001", -31005)
	f.call("1002", "83", `{}`)
	f.failure("1002", -31005)
}

func TestB84TabsAreNamed(t *testing.T) {
	t.Parallel()
	config := fieldFile(t, "mcp-retry.yaml", "servers:\n  flaky:\n\tcommand: x\n")
	stdout, _, status := fieldCommand("validate", config)
	if status != exitFailed || !strings.Contains(stdout, "mcp-retry.yaml:3:") || !strings.Contains(stdout, "tab") {
		t.Errorf("exit status %d: %s", status, stdout)
	}
}

func TestB85ExpressionsThatYAMLTakesApart(t *testing.T) {
	t.Parallel()
	policy := func(value string) string {
		return fieldFile(t, "mcp-retry.yaml", "servers:\n  flaky:\n    command: x\n    policy:\n      - name: one\n        cache_key: "+value+"\n        cache_ttl: 5\n")
	}
	for _, expression := range []string{
		`args.a ? args.b : args.c`,
		`args.text.contains('rate: 1') ? "a" : "b"`,
		`!tool.annotated ? "a" : "b"`,
		`args.x == 'a #b' ? "a" : "b"`,
		`{'k': 1}`,
		`[args.a, "b"]`,
		`"a" + args.b`,
	} {
		stdout, _, status := fieldCommand("validate", policy(expression))
		if status != exitFailed || !strings.Contains(stdout, "mcp-retry.yaml:6:") || !strings.Contains(stdout, `"cache_key"`) || !strings.Contains(stdout, "quotes") {
			t.Errorf("unquoted %s: exit status %d, %s", expression, status, stdout)
		}
		for _, form := range []string{"'" + strings.ReplaceAll(expression, "'", "''") + "'", strconv.Quote(expression), "|\n          " + expression} {
			if stdout, _, status := fieldCommand("validate", policy(form)); status != exitFine {
				t.Errorf("%s: exit status %d, %s", form, status, stdout)
			}
		}
	}
}
