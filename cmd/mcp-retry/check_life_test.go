package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// checkBed is a config with servers, and the ledgers of what became of them.
type checkBed struct {
	t       *testing.T
	dir     string
	config  string
	ledgers map[string]string
}

// newCheckBed writes a config with these servers.
func newCheckBed(t *testing.T, servers map[string]flaky.Script) *checkBed {
	t.Helper()
	b := &checkBed{t: t, dir: t.TempDir(), ledgers: map[string]string{}}
	var text strings.Builder
	text.WriteString("servers:\n")
	for name, script := range servers {
		b.ledgers[name] = filepath.Join(b.dir, name+".ledger")
		script.Ledger = b.ledgers[name]
		file := filepath.Join(b.dir, name+".json")
		b.write(file, script.String())
		fmt.Fprintf(&text, "  %s: {command: %q, args: [%s, %q]}\n", name, fieldProgram(t), flakyCommand, file)
	}
	b.config = filepath.Join(b.dir, "mcp-retry.yaml")
	b.write(b.config, text.String())
	t.Cleanup(b.nobodyLeft)
	return b
}

func (b *checkBed) write(file, text string) {
	b.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// starts are the processes of a server that were started so far, those that it started itself among them.
func (b *checkBed) starts(server string) (pids []int) {
	entries, _ := flaky.ReadLedger(b.ledgers[server])
	for _, e := range entries {
		if e.Event == flaky.EventStart || e.Event == flaky.EventGrandchild {
			pids = append(pids, e.PID)
		}
	}
	return pids
}

// await waits until a condition holds.
func (b *checkBed) await(what string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(fieldPatience); !holds(); time.Sleep(fieldPoll) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waiting for %s", what)
		}
	}
}

// nobodyLeft checks that every process of the servers has ended.
func (b *checkBed) nobodyLeft() {
	for server := range b.ledgers {
		for _, pid := range b.starts(server) {
			b.await(fmt.Sprintf("the end of a process of %s", server), func() bool { return !runs(pid) })
		}
	}
}

// command is the product with a command line.
func (b *checkBed) command(args ...string) *exec.Cmd {
	cmd := exec.Command(fieldProgram(b.t), args...)
	cmd.Env = fieldEnvironment(nil)
	cmd.Dir = b.dir
	return cmd
}

// hung never answers initialize.
func hung() flaky.Script {
	return flaky.Script{Methods: map[string]flaky.Plan{"initialize": flaky.Always(flaky.Outcome{Hang: true})}}
}

// asHost runs a hook as its host does: by a shell, elsewhere, until it has exited and nobody holds its output any more.
func asHost(t *testing.T, line string, limit time.Duration, stdin io.Reader) (stdout, stderr string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = t.TempDir()
	cmd.Stdin = stdin
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = limit // for the end of its output, once it has exited
	killed := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer killed.Stop()
	if err := cmd.Run(); err != nil {
		t.Errorf("the hook %s: %v\n%s%s", line, err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func TestB80HookEndsWhateverTheServersDo(t *testing.T) {
	t.Parallel()
	stubborn := hung()
	stubborn.IgnoreEOF, stubborn.IgnoreTerm, stubborn.Grandchild = true, true, true
	b := newCheckBed(t, map[string]flaky.Script{"fine": {}, "hung": hung(), "stubborn": stubborn})
	never, open, err := os.Pipe() // a stdin that is never closed, and never read
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	defer open.Close()
	line := fmt.Sprintf("%s=1 '%s' check --hook --timeout 5s --config '%s'", productEnv, fieldProgram(t), b.config)
	out, errs := asHost(t, line, 15*time.Second, never)
	want := regexp.MustCompile(`(?m)^\[UP  \] fine +[0-9.]+ms +ok$`)
	down := regexp.MustCompile(`(?m)^\[DOWN\] (hung|stubborn) +- +no response within 5\.0s$`)
	if !want.MatchString(out) || len(down.FindAllString(out, -1)) != 2 || strings.Count(out, "\n") != 3 || errs != "" {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
}

func TestB80NobodyInheritsADescriptorOfTheHooksHost(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "setsid", "sleep"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	script := fmt.Sprintf("setsid sleep 600 & echo $! >>'%s'; exec '%s' %s '{}'", pid, fieldProgram(t), flakyCommand)
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"leaves a daemon": map[string]any{"command": "sh", "args": []string{"-c", script}}}})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "mcp-retry.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		text, _ := os.ReadFile(pid)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				if daemon, err := os.FindProcess(n); err == nil {
					daemon.Kill()
				}
			}
		}
	})
	for _, line := range []string{"exec 5>&1; %s=1 '%s' check --hook --config '%s'", "exec 5>&1; %s=1 '%s' check --config '%s' ; exit 0"} {
		out, _ := asHost(t, fmt.Sprintf(line, productEnv, fieldProgram(t), config), 60*time.Second, nil)
		if !strings.Contains(out, "[UP  ] leaves a daemon ") {
			t.Errorf("the session learns %q", out)
		}
	}
}

// TestB80HookOfTheREADME runs the hook as it stands in the README, with only the path of the config replaced.
func TestB80HookOfTheREADME(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Hooks struct {
			SessionStart []struct {
				Hooks []struct {
					Command string
					Timeout int
				}
			}
		}
	}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(readme, -1) {
		if bytes.Contains(block[1], []byte("SessionStart")) {
			if err := json.Unmarshal(block[1], &settings); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(settings.Hooks.SessionStart) != 1 || len(settings.Hooks.SessionStart[0].Hooks) != 1 {
		t.Fatal("the README shows no hook")
	}
	hook := settings.Hooks.SessionStart[0].Hooks[0]
	if limit := time.Duration(hook.Timeout) * time.Second; limit <= hookDeadline {
		t.Errorf("the host would end the hook after %s, and it may take %s", limit, hookDeadline)
	}
	b := newCheckBed(t, map[string]flaky.Script{"fine": {}, "gone": {Start: &flaky.Plan{Then: &flaky.Outcome{Exit: new(3)}}}})
	const path = "/absolute/path/to/mcp-retry.yaml"
	if !strings.Contains(hook.Command, path) {
		t.Fatalf("the hook reads %q", hook.Command)
	}
	out, _ := asHost(t, "exec <&-\n"+strings.ReplaceAll(hook.Command, path, b.config), time.Duration(hook.Timeout)*time.Second, nil)
	if !strings.Contains(out, "[UP  ] fine") || !strings.Contains(out, "[DOWN] gone") {
		t.Errorf("the session learns %q", out)
	}
}

func TestCheckThatIsKilledLeavesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
	if runtime.GOOS == "linux" { // elsewhere a server has only the end of its stdin to go by
		signals = append(signals, syscall.SIGKILL)
	}
	for _, signal := range signals {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			stubborn := hung()
			stubborn.IgnoreEOF, stubborn.IgnoreTerm = true, true
			b := newCheckBed(t, map[string]flaky.Script{"hung": hung(), "stubborn": stubborn})
			cmd := b.command("check", "--config", b.config, "--timeout", "1h")
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			b.await("the servers", func() bool { return len(b.starts("hung")) == 1 && len(b.starts("stubborn")) == 1 })
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); signal != syscall.SIGKILL && status != 128+int(signal) {
				t.Errorf("it ended with status %d (%v)", status, err)
			}
			if out.Len() > 0 {
				t.Errorf("it printed %q", out.String())
			}
		})
	}
}

// TestB114ACheckStartsEachServerOnce checks servers that are slow, broken and fine, as a host would that does so every so often.
func TestB114ACheckStartsEachServerOnce(t *testing.T) {
	t.Parallel()
	b := newCheckBed(t, map[string]flaky.Script{
		"slow":     {Start: &flaky.Plan{Then: &flaky.Outcome{Sleep: 300}}},
		"crashing": {Start: &flaky.Plan{Then: &flaky.Outcome{Exit: new(1)}}},
		"fine":     {},
	})
	for round := 1; round <= 3; round++ {
		cmd := b.command("check", "--config", b.config, "--json")
		text, _ := cmd.Output()
		var report checkReport
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatalf("it printed %q: %v", text, err)
		}
		var verdicts []string
		for _, h := range report.Servers {
			verdicts = append(verdicts, h.Name+" "+h.Status)
		}
		slices.Sort(verdicts)
		if want := []string{"crashing down", "fine up", "slow up"}; !slices.Equal(verdicts, want) || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("round %d: %q, status %d", round, verdicts, cmd.ProcessState.ExitCode())
		}
		for server := range b.ledgers {
			if n := len(b.starts(server)); n != round {
				t.Errorf("round %d: %s was started %d times", round, server, n)
			}
		}
	}
}
