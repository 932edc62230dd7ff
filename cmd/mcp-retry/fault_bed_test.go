package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The fault tests kill, stop, starve and flood the processes of a session, and judge by the server's book what came of it.

// faultField is a session with the server of [faultServerCommand].
type faultField struct {
	*field
	book *faultBook
}

// startFault starts a session for a server with these settings, YAML; flags are further ones of run.
func startFault(t *testing.T, settings string, flags ...string) *faultField {
	t.Helper()
	f := &faultField{field: newField(t)}
	f.book = newFaultBook(t, f.dir)
	t.Cleanup(func() { f.noneLeft(t) }) // after the end of the session, which launch sees to
	config := f.write("mcp-retry.yaml", faultConfig(t, f.book, settings))
	f.launch(slices.Insert(flags, 0, "run", "--log-level", "debug", "--config", config), nil, false)
	return f
}

// newFaultBook is a fresh book in a directory.
func newFaultBook(t testing.TB, dir string) *faultBook {
	t.Helper()
	book, err := openFaultBook(filepath.Join(dir, "book"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.calls.Close() })
	return book
}

// faultConfig is a config with one server, "faulty", that keeps a book; more are further arguments of it.
func faultConfig(t testing.TB, book *faultBook, settings string, more ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("servers:\n  faulty:\n    command: %q\n    args: [%s, %q", self, faultServerCommand, book.path)
	for _, arg := range more {
		config += ", " + strconv.Quote(arg)
	}
	config += "]\n"
	for line := range strings.Lines(settings) {
		config += "    " + strings.TrimRight(line, "\n") + "\n"
	}
	return config
}

// noneLeft checks that no life of the server outlived the session, which has ended.
func (f *faultField) noneLeft(t *testing.T) {
	for _, pid := range f.book.lives() {
		awaitEnd(t, pid)
	}
}

// awaitEnd waits until a process has ended, and ends it if it does not.
func awaitEnd(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(fieldPatience); runs(pid); time.Sleep(fieldPoll) {
		if time.Now().After(deadline) {
			t.Errorf("process %d is left behind", pid)
			if orphan, err := os.FindProcess(pid); err == nil {
				orphan.Kill()
			}
			return
		}
	}
}

// order calls a tool; more are further members of params.
func (f *faultField) order(id, tool string, o faultOrder, more ...string) {
	f.t.Helper()
	f.call(id, tool, o.arguments(more...))
}

// arguments are the arguments of a call, as [field.call] takes them.
func (o faultOrder) arguments(more ...string) string {
	text := fmt.Sprintf(`{"n":%d,"fault":%q,"size":%d,"pad":%q}`, o.N, o.Fault, o.Size, o.Pad)
	return strings.Join(slices.Insert(more, 0, text), ",")
}

// kept checks how often a call came to the server, and how often it was done.
func (f *faultField) kept(n, attempts, executions int) {
	f.t.Helper()
	if a, e := f.book.counts(n); a != attempts || e != executions {
		f.t.Errorf("call %d came %d times and was done %d times, want %d and %d", n, a, e, attempts, executions)
	}
}

// came waits until a call has reached the server so many times.
func (f *faultField) came(n, attempts int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("call %d at the server", n), func() bool {
		a, _ := f.book.counts(n)
		return a >= attempts
	})
}

// eventually waits for what cannot be waited for: files and foreign processes.
func (f *field) eventually(what string, holds func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(fieldPatience); !holds(); time.Sleep(fieldPoll) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: this never came to be", what)
		}
	}
}

// pid is the process of the server's present life.
func (f *faultField) pid() int {
	f.t.Helper()
	lives := f.book.lives()
	if len(lives) == 0 {
		f.t.Fatal("the server was never started")
	}
	return lives[len(lives)-1]
}

// done checks that the answer to a call is that of its n-th execution.
func (r *fieldFrame) done(t *testing.T, n, execution int) {
	t.Helper()
	if want := fmt.Sprintf("n=%d execution=%d ", n, execution); !strings.HasPrefix(r.text(), want) {
		t.Errorf("the answer is %.200s, want %q", r.line, want)
	}
}

// underRace reports whether the race detector is on, which multiplies what memory is needed.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}
