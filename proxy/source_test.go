//go:build unix

package proxy

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// patience is how long what must come may take on a machine with other things to do. It says nothing about how fast it should.
const patience = 100 * time.Second

// wait fails the test if a channel stays silent: the bound is for broken code only.
func wait[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestSourceReadsAPipeToItsEnd(t *testing.T) {
	r, w := pipe(t)
	s := newSource(r)
	defer s.close()
	go func() {
		io.WriteString(w, strings.Repeat("hello ", 1<<20))
		w.Close()
	}()
	all, err := io.ReadAll(s)
	if err != nil || len(all) != 6<<20 {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

func TestSourceGivesWhatIsThereAndThenEndsThoughThePipeStaysOpen(t *testing.T) {
	r, w := pipe(t)
	s := newSource(r)
	defer s.close()
	ended := make(chan string)
	go func() {
		all, _ := io.ReadAll(s)
		ended <- string(all)
	}()
	io.WriteString(w, "last words")
	s.finish()
	if got := wait(t, ended, "the end of the source"); got != "last words" {
		t.Errorf("got %q", got)
	}
}

func TestSourceEndsThoughSomebodyNeverStopsWriting(t *testing.T) {
	r, w := pipe(t)
	s := newSource(r)
	defer s.close()
	go func() {
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	}()
	s.finish()
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, s)
		close(ended)
	}()
	wait(t, ended, "the end of the source")
}

func TestPauseEnds(t *testing.T) {
	tests := []struct {
		name   string
		act    func(s source, w *os.File)
		closed bool
	}{
		{"by a kick", func(s source, w *os.File) { s.kick() }, false},
		{"by the other end's closing, though there is something to read", func(s source, w *os.File) { w.Close() }, true},
		{"by finish", func(s source, w *os.File) { s.finish() }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, w := pipe(t)
			s := newSource(r)
			defer s.close()
			io.WriteString(w, "unread")
			paused := make(chan bool)
			go func() { paused <- s.pause() }()
			tt.act(s, w)
			if closed := wait(t, paused, "the end of the pause"); closed != tt.closed {
				t.Errorf("closed: %v", closed)
			}
		})
	}
}

func TestPlainSourcePauseEnds(t *testing.T) {
	c, _ := net.Pipe()
	s := newSource(c)
	s.kick()
	if s.pause() {
		t.Error("a kick is taken for the end")
	}
	s.finish()
	if !s.pause() {
		t.Error("the end is not seen")
	}
	if _, err := s.Read(nil); err != io.EOF {
		t.Errorf("got %v after the end", err)
	}
}
