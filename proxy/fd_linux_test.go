package proxy

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// The number of a closed descriptor is soon that of another file: of another session in this process, say.
func TestAClosedSourceLeavesItsNumberAlone(t *testing.T) {
	r, w := pipe(t)
	defer w.Close()
	s, ok := ownSource(r).(*fdSource)
	if !ok {
		t.Fatal("a pipe is not read by its descriptor")
	}
	theirs, _ := pipe(t)
	other, err := duplicate(theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	s.close()
	if err := unix.Dup3(other, s.fd, unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s.fd)
	if err := unix.SetNonblock(other, true); err != nil {
		t.Fatal(err)
	}
	s.finish()
	var got [16]byte
	if n, err := unix.Read(other, got[:]); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("what had nothing to do with it got %q (%v)", got[:max(n, 0)], err)
	}
}
