//go:build unix

package proxy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// TestB50AServerThatCannotBeStartedIsToldExactly covers what the system's own errors leave in the dark.
func TestB50AServerThatCannotBeStartedIsToldExactly(t *testing.T) {
	dir := t.TempDir()
	bin := t.TempDir()
	file := func(dir, name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noPermission := file(dir, "data.sh", "#!/bin/sh\n", 0o644)
	noInterpreter := file(dir, "script.py", "#!/no/such/python3 -u\n", 0o755)
	windowsScript := file(dir, "windows.sh", "#!/bin/sh\r\necho\r\n", 0o755)
	noProgram := file(dir, "notes.txt", "just text\n", 0o755)
	file(bin, "unfit", "#!/bin/sh\n", 0o644)

	tests := []struct {
		name    string
		command string
		cwd     string
		want    string
	}{
		{"not on PATH", "no-such-command", "", `exec: "no-such-command": not found in PATH=` + bin},
		{"on PATH without permission", "unfit", "", `exec: "unfit": ` + bin + `/unfit: permission denied: the file is not executable (chmod +x makes it so) (PATH=` + bin + `)`},
		{"no such file", dir + "/missing", "", `exec: "` + dir + `/missing": no such file or directory`},
		{"no permission", noPermission, "", `exec: "` + noPermission + `": permission denied: the file is not executable (chmod +x makes it so)`},
		{"a directory", dir, "", `exec: "` + dir + `": is a directory, not a program`},
		{"no interpreter", noInterpreter, "", `exec: "` + noInterpreter + `": its interpreter "/no/such/python3", named in its first line, was not found`},
		{"Windows line ends", windowsScript, "", `exec: "` + windowsScript + `": its interpreter "/bin/sh\r", named in its first line, was not found`},
		{"no program", noProgram, "", `exec: "` + noProgram + `": exec format error: neither a program for this system nor a script whose first line names its interpreter (#!)`},
		{"relative to cwd", "./missing", dir, `exec: "./missing": no such file or directory`},
		{"no cwd", os.Args[0], dir + "/nowhere", `cwd "` + dir + `/nowhere": no such file or directory`},
		{"cwd is a file", os.Args[0], noProgram, `cwd "` + noProgram + `": not a directory`},
		{"empty", "", "", `exec: the command is empty`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := runServer(t, &schema.Server{Command: tt.command, Cwd: tt.cwd, Env: map[string]string{"PATH": bin}})
			ev := b.engine.next(t, engine.ServerDown)
			if !ev.Spawn || ev.Detail != tt.want {
				t.Errorf("spawn %v\ngot  %s\nwant %s", ev.Spawn, ev.Detail, tt.want)
			}
		})
	}
}

func TestTheCommandIsFoundInTheServersOwnPATHAndDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "my-server")); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"my-server", "./my-server"} {
		server := playing("environment GREETING")
		server.Command, server.Cwd, server.Args = command, dir, []string{"a b", "$HOME", ";exit"}
		server.Env["PATH"], server.Env["GREETING"] = dir, "hello"
		t.Setenv("GREETING", "not this")
		b := runServer(t, server)
		for _, want := range []string{`"hello"`, strconv.Quote(real), `["a b" "$HOME" ";exit"]`} {
			if got := b.engine.next(t, engine.FromServer); string(got.Frame) != want {
				t.Errorf("%s: got %s, want %s", command, got.Frame, want)
			}
		}
	}
}

// TestB46TheEndOfAServerIsToldExactly has the server end in every way there is, after it has read a line.
func TestB46TheEndOfAServerIsToldExactly(t *testing.T) {
	tests := []struct{ role, want string }{
		{"exit 0", "exit status 0"},
		{"exit 3", "exit status 3"},
		{"kill-self", "killed by signal: killed"},
		{"close-stdout", "closed its stdout while running, and was ended " + bySignal},
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			b := runServer(t, playing(tt.role))
			b.engine.next(t, engine.ServerUp)
			b.send(`{"id":1}`)
			if ev := b.engine.next(t, engine.ServerDown); ev.Spawn || endOf(ev) != tt.want || ev.Gen != 1 {
				t.Errorf("got %q (spawn %v, life %d), want %q", ev.Detail, ev.Spawn, ev.Gen, tt.want)
			}
		})
	}
}

// bySignal stands for the signal that a server was ended by: KILL, if TERM did not reach it in time.
const bySignal = "(by a signal)"

// endOf is how a server ended, whichever signal ended it.
func endOf(ev engine.Event) string {
	return strings.NewReplacer("(killed by signal: terminated)", bySignal, "(killed by signal: killed)", bySignal).Replace(ev.Detail)
}

func TestAServerThatClosesItsStdinIsEnded(t *testing.T) {
	b := runServer(t, playing("close-stdin"))
	b.engine.next(t, engine.FromServer)
	b.send(`{"id":1}`)
	ev := b.engine.next(t, engine.ServerDown)
	if want := "closed its stdin while running, and was ended " + bySignal; endOf(ev) != want {
		t.Errorf("got %q, want %q", ev.Detail, want)
	}
	if len(ev.Unsent) != 1 {
		t.Errorf("unsent: %v", ev.Unsent)
	}
}

// TestWhatAServerWroteBeforeItsEndComesFirst has a server that writes a lot and exits at once.
func TestWhatAServerWroteBeforeItsEndComesFirst(t *testing.T) {
	const n = 20000
	server := playing("last-words " + strconv.Itoa(n))
	inR, _ := pipe(t)
	b := runOver(t, server, inR, discard{})
	got := 0
	for {
		ev := wait(t, b.engine.events, "the end of the server")
		if ev.Kind == engine.FromServer {
			got++
		}
		if ev.Kind == engine.ServerDown {
			break
		}
	}
	if got != n {
		t.Errorf("%d of %d frames came before the end", got, n)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// familyMember returns the process id of the child that a server in the role "family" has started.
func familyMember(t *testing.T, b *bench) int {
	t.Helper()
	pid, err := strconv.Atoi(string(b.engine.next(t, engine.FromServer).Frame))
	if err != nil {
		t.Fatal(err)
	}
	b.engine.next(t, engine.FromServer) // it is ready
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// waitForEnd waits until a process is gone or a zombie, which nobody may be there to reap.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "Z") {
				return
			}
		}
	}
	t.Errorf("process %d is still there", pid)
}

func TestAProcessThatTheServerLeavesBehindIsEndedToo(t *testing.T) {
	b := runServer(t, playing("family"))
	pid := familyMember(t, b)
	b.send("go")
	if ev := b.engine.next(t, engine.ServerDown); ev.Detail != "exit status 7" {
		t.Errorf("got %q", ev.Detail)
	}
	waitForEnd(t, pid)
}

// TestAPipeHeldByAProcessOutOfReachDelaysNothing has a grandchild in a session of its own hold the server's pipes.
func TestAPipeHeldByAProcessOutOfReachDelaysNothing(t *testing.T) {
	b := runServer(t, playing("family apart"))
	familyMember(t, b)
	b.send("go")
	if ev := b.engine.next(t, engine.ServerDown); ev.Detail != "exit status 7" {
		t.Errorf("got %q", ev.Detail)
	}
}

// TestB56AStubbornServerIsKilled ends sessions with servers that ignore the end of stdin, and TERM too.
func TestB56AStubbornServerIsKilled(t *testing.T) {
	for _, role := range []string{"echo", "obeys-term", "stubborn"} {
		t.Run(role, func(t *testing.T) {
			b := runServer(t, playing(role))
			b.engine.next(t, engine.ServerUp)
			if role != "echo" {
				b.engine.next(t, engine.FromServer)
			}
			b.in.Close()
			wait(t, b.done, "the end of the session")
		})
	}
}

// TestB57ATerminatedSessionLeavesNoServer is the same with a session that is told to end.
func TestB57ATerminatedSessionLeavesNoServer(t *testing.T) {
	b := runServer(t, playing("family"))
	pid := familyMember(t, b)
	b.terminate()
	wait(t, b.done, "the end of the session")
	waitForEnd(t, pid)
}

// TestB60TheServerHasAProcessGroupOfItsOwn, so that Ctrl+C in a terminal does not reach it.
func TestB60TheServerHasAProcessGroupOfItsOwn(t *testing.T) {
	b := runServer(t, playing("group"))
	if ev := b.engine.next(t, engine.FromServer); string(ev.Frame) != "true" {
		t.Errorf("got %s", ev.Frame)
	}
}

// TestB61AServerThatFloodsStderrStillAnswers, though nobody reads our own stderr.
func TestB61AServerThatFloodsStderrStillAnswers(t *testing.T) {
	for _, end := range []string{"lines", "returns", "nothing"} {
		t.Run(end, func(t *testing.T) {
			server := playing("stderr " + end)
			server.Name, server.MaxMessageBytes = "s", 1<<20
			_, log := pipe(t)
			inR, inW := pipe(t)
			_, outW := pipe(t)
			e := newCrossing()
			s := newSession(newLogger(log, 0, &jsonFormatter{}), inR, outW, server)
			s.engine = e
			ended := make(chan struct{})
			go func() {
				s.serve(nil)
				close(ended)
			}()
			for range 5 {
				fmt.Fprintln(inW, `{"id":1}`)
				e.next(t, engine.FromServer)
			}
			inW.Close()
			wait(t, ended, "the end of the session")
		})
	}
}

func TestWhatAServerSaysOnStderrIsLoggedAndReportedAtItsEnd(t *testing.T) {
	b := runServer(t, &schema.Server{Command: "/bin/sh", Args: []string{"-c", `echo starting >&2; printf '\033[31mno token\033[0m' >&2; exit 4`}})
	ev := b.engine.next(t, engine.ServerDown)
	if ev.Detail != "exit status 4" || ev.Stderr != "starting\nno token" {
		t.Errorf("got %q and %q", ev.Detail, ev.Stderr)
	}
	wait(t, b.done, "the end of the session")
	var texts []any
	for _, m := range lines(t, b.log.String()) {
		if m["msg"] == "server_stderr" && m["server"] == "s" && m["level"] == "info" {
			texts = append(texts, m["text"])
		}
	}
	if got := fmt.Sprint(texts); got != "[starting no token]" {
		t.Errorf("logged: %s", got)
	}
}

// TestB63AServerThatNeverReadsBlocksNothing fills its stdin, and ends the session in both ways.
func TestB63AServerThatNeverReadsBlocksNothing(t *testing.T) {
	for _, way := range []string{"EOF", "TERM"} {
		t.Run(way, func(t *testing.T) {
			b := runServer(t, playing("deaf"))
			b.engine.next(t, engine.FromServer)
			line := `"` + strings.Repeat("x", 64<<10) + `"`
			for range 32 {
				b.send(line)
			}
			if way == "EOF" {
				b.in.Close()
			} else {
				b.terminate()
			}
			wait(t, b.done, "the end of the session")
		})
	}
}
