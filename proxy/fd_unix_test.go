//go:build darwin || linux || openbsd

package proxy

import (
	"io"
	"strings"
	"testing"
)

// A machine that is busy with other things must not cost the last words of a server.
func TestSourceGivesWhatIsThereHoweverLateItIsRead(t *testing.T) {
	r, w := pipe(t)
	s := newSource(r)
	defer s.close()
	io.WriteString(w, strings.Repeat("last words ", 1<<10))
	s.finish()
	s.(*fdSource).until.Store(1) // long ago
	ended := make(chan string)
	go func() {
		var all strings.Builder
		io.CopyBuffer(&all, struct{ io.Reader }{s}, make([]byte, 100))
		ended <- all.String()
	}()
	if got := wait(t, ended, "the end of the source"); got != strings.Repeat("last words ", 1<<10) {
		t.Errorf("got %d bytes", len(got))
	}
}

// A reader that sits in a blocking read heeds no kicks, and whoever kicks may hold a lock.
func TestKicksThatNobodyHeedsBlockNobody(t *testing.T) {
	r, _ := pipe(t)
	s := newSource(r)
	defer s.close()
	kicked := make(chan struct{})
	go func() {
		for range 100_000 { // more than a pipe holds
			s.kick()
		}
		close(kicked)
	}()
	wait(t, kicked, "the kicks")
	if s.pause() {
		t.Error("a kick is taken for the end")
	}
}
