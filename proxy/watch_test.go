//go:build unix

package proxy

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// reloads is an engine that only remembers what it was given to reload.
type reloads struct{ got []*schema.Server }

func (r *reloads) Step(_ time.Time, ev engine.Event) []engine.Action {
	if ev.Kind == engine.Reload {
		r.got = append(r.got, ev.Server)
	}
	return nil
}

func (r *reloads) NextWake() (time.Time, bool) { return time.Time{}, false }

// watched is a watch over a file that the test writes.
type watched struct {
	*watch
	t       *testing.T
	log     *syncBuffer
	engine  *reloads
	told    []error
	written time.Time
}

func newWatched(t *testing.T, config string) *watched {
	t.Helper()
	w := &watched{t: t, log: &syncBuffer{}, engine: &reloads{}, written: time.Now().Add(-time.Hour)}
	file := filepath.Join(t.TempDir(), "mcp-retry.yaml")
	w.watch = &watch{file: file}
	w.write(config)
	o, err := Open(file, "")
	if err != nil {
		t.Fatal(err)
	}
	o.Watch = file
	o.Reloaded = func(err error) { w.told = append(w.told, err) }
	s := newSession(newLogger(w.log, 0, &jsonFormatter{}), strings.NewReader(""), &syncBuffer{}, o.Server)
	s.engine = w.engine
	w.watch = newWatch(s, &o)
	return w
}

// write writes the file, each time with a later time of change.
func (w *watched) write(config string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(config), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.written = w.written.Add(time.Second)
	if err := os.Chtimes(w.file, w.written, w.written); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) remove() {
	w.t.Helper()
	if err := os.Remove(w.file); err != nil {
		w.t.Fatal(err)
	}
}

// looks looks twice: at what has changed, and whether it is at rest.
func (w *watched) looks() {
	w.look()
	w.look()
}

func (w *watched) logged() string {
	w.session.log.flush(5 * time.Second)
	return w.log.String()
}

func TestAChangedFileIsTakenOverOnce(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.looks()
	w.write("servers: {a: {command: one}}") // touched, or saved as it was
	w.looks()
	if len(w.engine.got) != 0 {
		t.Fatal("an unchanged config was reloaded")
	}
	w.write("servers: {a: {command: two}}")
	w.looks()
	w.looks()
	if len(w.engine.got) != 1 || w.engine.got[0].Command != "two" || w.session.links()[0].launch.Command != "two" {
		t.Errorf("reloaded: %v", w.engine.got)
	}
}

func TestAFileIsNotReadWhileItIsWritten(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.write("servers: {a: ")
	w.look()
	w.write("servers: {a: {command: two}}")
	w.look()
	if len(w.engine.got) != 0 {
		t.Fatal("it was not at rest")
	}
	w.look()
	if len(w.engine.got) != 1 || w.logged() != "" {
		t.Errorf("reloaded: %v; the log: %s", w.engine.got, w.logged())
	}
}

func TestAFaultyFileIsRefusedWithItsFindings(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"misspelt":         {"servers: {a: {command: one, call_timeot: 3}}", "call_timeout"},
		"a bad expression": {"servers: {a: {command: one, policy: [{when: 'x', retry: false}]}}", "cel-"},
		"no server":        {"servers: {b: {command: one}}", `no server \"a\"`},
		"empty":            {"", "servers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, "servers: {a: {command: one}}")
			w.write(c.config)
			w.looks()
			log := w.logged()
			if len(w.engine.got) != 0 || !strings.Contains(log, c.want) || !strings.Contains(log, `"level":"error","msg":"config_reload"`) {
				t.Errorf("reloaded: %v; the log: %s", w.engine.got, log)
			}
			w.looks()
			if w.logged() != log {
				t.Error("it was refused again without a change")
			}
			w.write("servers: {a: {command: mended}}")
			w.looks()
			if len(w.engine.got) != 1 {
				t.Error("the mended file was not taken over")
			}
			if len(w.told) != 2 || w.told[0] == nil || w.told[1] != nil {
				t.Errorf("whoever wants to know was told %v", w.told)
			}
		})
	}
}

func TestAFileMayBeGoneForAMoment(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.remove()
	w.look()
	w.write("servers: {a: {command: two}}")
	w.looks()
	if len(w.engine.got) != 1 || w.logged() != "" {
		t.Errorf("reloaded: %v; the log: %s", w.engine.got, w.logged())
	}
}

func TestAFileThatStaysAwayIsToldOnceAndTakenUpWhenItIsBack(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	for range 2 {
		w.remove()
		w.looks()
		w.looks()
		w.write("servers: {a: {command: one}}")
		w.looks()
	}
	w.remove()
	w.looks()
	w.write("servers: {a: {command: two}}")
	w.looks()
	log := w.logged()
	if gone, back := strings.Count(log, "is gone"), strings.Count(log, "there again, as it was"); gone != 3 || back != 2 {
		t.Errorf("the log: %s", log)
	}
	if len(w.engine.got) != 1 || w.engine.got[0].Command != "two" {
		t.Errorf("reloaded: %v", w.engine.got)
	}
}

func TestAFileIsFollowedWhereverALinkPoints(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	when := time.Now()
	for i, config := range []string{"servers: {a: {command: two}}", "servers: {a: {command: six}}"} { // neither size nor time differ
		dir := filepath.Join(filepath.Dir(w.file), "v"+string(rune('0'+i)))
		target := filepath.Join(dir, "mcp-retry.yaml")
		link := filepath.Join(filepath.Dir(w.file), "link")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(target, []byte(config), 0o600), os.Chtimes(target, when, when),
			os.Symlink(target, link), os.Rename(link, w.file)); err != nil {
			t.Fatal(err)
		}
		w.looks()
	}
	if len(w.engine.got) != 2 || w.engine.got[1].Command != "six" {
		t.Errorf("reloaded: %v", w.engine.got)
	}
}

func TestAFileThatIsWrittenWhileItIsReadIsReadAgain(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	open := w.reread
	w.reread = func() (Options, error) {
		w.reread = open
		w.write("servers: {a: {command: three}}") // what is parsed is not what two looks have seen
		return open()
	}
	w.write("servers: {a: {command: two}}")
	w.looks()
	if len(w.engine.got) != 0 {
		t.Fatalf("reloaded: %v", w.engine.got)
	}
	w.looks()
	if len(w.engine.got) != 1 || w.engine.got[0].Command != "three" || len(w.told) != 1 {
		t.Errorf("reloaded: %v, told %v", w.engine.got, w.told)
	}
}

func TestAFileIsTakenOverAtOnceWhenAskedTo(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.lookAtOnce()
	w.write("servers: {a: {command: two}}")
	w.lookAtOnce()
	w.looks()
	if len(w.engine.got) != 2 || w.engine.got[1].Command != "two" {
		t.Errorf("reloaded: %v", w.engine.got)
	}
	w.remove()
	w.lookAtOnce()
	w.looks()
	if log := w.logged(); strings.Count(log, "is gone") != 1 {
		t.Errorf("the log: %s", log)
	}
}

func TestWhatIsRereadIsTheCallersToSay(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.reread = func() (Options, error) {
		o, err := Open(w.file, "a")
		o.Server.Args = []string{"added"}
		o.Policy = nil
		return o, err
	}
	w.write("servers: {a: {command: two}}")
	w.looks()
	if len(w.engine.got) != 1 || !slices.Equal(w.engine.got[0].Args, []string{"added"}) {
		t.Errorf("reloaded: %v", w.engine.got)
	}
	w.reread = func() (Options, error) { return Options{}, errors.New("not today") }
	w.write("servers: {a: {command: three}}")
	w.looks()
	if len(w.engine.got) != 1 || !strings.Contains(w.logged(), "not today") {
		t.Errorf("reloaded: %v; the log: %s", w.engine.got, w.logged())
	}
}

func TestAPipeInThePlaceOfTheFileHoldsNobodyUp(t *testing.T) {
	w := newWatched(t, "servers: {a: {command: one}}")
	w.remove()
	if err := syscall.Mkfifo(w.file, 0o600); err != nil {
		t.Skip(err)
	}
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		w.looks()
		w.lookAtOnce()
	}()
	wait(t, looked, "the watch")
	w.remove()
	w.write("servers: {a: {command: two}}")
	w.looks()
	if log := w.logged(); len(w.engine.got) != 1 || !strings.Contains(log, "no regular file") {
		t.Errorf("reloaded: %v; the log: %s", w.engine.got, log)
	}
}
