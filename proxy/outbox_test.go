package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A fakePipe is a sink that takes what a test lets it take.
type fakePipe struct {
	mu     sync.Mutex
	room   int
	err    error
	took   bytes.Buffer
	opened chan struct{} // has a value when there may be room
	closed bool
	writes int
}

func newFakePipe(room int) *fakePipe { return &fakePipe{room: room, opened: make(chan struct{}, 1)} }

func (p *fakePipe) write(pieces [][]byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	n := 0
	for _, b := range pieces {
		k := min(len(b), p.room)
		p.took.Write(b[:k])
		p.room -= k
		n += k
		if k < len(b) {
			if p.err != nil {
				return n, p.err
			}
			return n, errFull
		}
	}
	return n, nil
}

func (p *fakePipe) wait(d time.Duration) error {
	select {
	case <-p.opened:
	case <-time.After(d):
	}
	return nil
}

func (p *fakePipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *fakePipe) open(room int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room, p.err = room, err
	select {
	case p.opened <- struct{}{}:
	default:
	}
}

func (p *fakePipe) state() (took string, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.took.String(), p.closed
}

func frame(pieces ...string) [][]byte {
	var f [][]byte
	for _, p := range pieces {
		f = append(f, []byte(p))
	}
	return f
}

func TestOutboxGathersABurstIntoOneWrite(t *testing.T) {
	p := newFakePipe(1 << 20)
	o := &outbox{sink: p}
	for i := range 50 {
		o.add(frame(`{"id":`, fmt.Sprint(i), `}`), 0, nil)
	}
	o.flush()
	took, _ := p.state()
	if p.writes != 1 || strings.Count(took, "\n") != 50 || !strings.HasPrefix(took, "{\"id\":0}\n{\"id\":1}\n") {
		t.Errorf("%d writes of %q", p.writes, took)
	}
}

func TestOutboxWritesALargeFrameFromWhereItLies(t *testing.T) {
	p := newFakePipe(1 << 30)
	o := &outbox{sink: p}
	large := bytes.Repeat([]byte("x"), 1<<20)
	o.add(frame("before"), 0, nil)
	o.add([][]byte{[]byte("<"), large, []byte(">")}, 0, nil)
	o.add(frame("after"), 0, nil)
	o.flush()
	took, _ := p.state()
	if want := "before\n<" + string(large) + ">\nafter\n"; took != want {
		t.Errorf("got %d bytes, want %d", len(took), len(want))
	}
	if n := testing.AllocsPerRun(10, func() { o.add([][]byte{large}, 0, nil) }); n > 1 {
		t.Errorf("%v allocations for a large frame that fits", n)
	}
}

func TestOutboxKeepsWhatTheSinkDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePipe(5)
		o := &outbox{sink: p}
		scratch := []byte("0123456789")
		o.add([][]byte{scratch}, 0, nil)
		o.flush()
		copy(scratch, "XXXXXXXXXX") // the pieces are the caller's again
		large := bytes.Repeat([]byte("y"), gatherLimit+1)
		o.add([][]byte{large}, 0, nil)
		clear(large)
		synctest.Wait()
		if took, _ := p.state(); took != "01234" {
			t.Fatalf("took %q", took)
		}
		p.open(3, nil)
		synctest.Wait()
		if took, _ := p.state(); took != "01234567" {
			t.Fatalf("took %q", took)
		}
		p.open(1<<20, nil)
		if !o.waitEmpty(time.Hour, nil) {
			t.Error("not emptied")
		}
		if took, _ := p.state(); took != "0123456789\n"+strings.Repeat("y", gatherLimit+1)+"\n" {
			t.Errorf("took %d bytes, starting %.20q", len(took), took)
		}
		if n := o.queued.Load(); n != 0 {
			t.Errorf("%d bytes are said to wait", n)
		}
	})
}

func TestOutboxHoldsOnToPartsOfAnOwnedFrame(t *testing.T) {
	p := newFakePipe(0)
	o := &outbox{sink: p}
	large := bytes.Repeat([]byte("z"), 1<<20)
	id := []byte("7")
	o.add([][]byte{large[:100], id, large[101:]}, 0, large)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !within(o.chunks[0], large) || !within(o.chunks[2], large) {
		t.Error("parts of the owned frame were copied")
	}
	if within(o.chunks[1], large) || &o.chunks[1][0] == &id[0] {
		t.Error("a piece that is not the outbox's was kept")
	}
}

func TestOutboxTellsWhichFramesWereNotBegun(t *testing.T) {
	tests := []struct {
		name string
		room int
		want []int64
	}{
		{"nothing was written", 0, []int64{1, 2, 3}},
		{"one byte of the first was written", 1, []int64{2, 3}},
		{"the first was written without its newline", 5, []int64{2, 3}},
		{"exactly the first was written", 6, []int64{2, 3}},
		{"a byte of the second was written", 7, []int64{3}},
		{"everything but the last byte was written", 17, nil},
		{"everything was written", 18, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &outbox{sink: newFakePipe(tt.room)}
			for tag := range int64(3) {
				o.add(frame("hello"), tag+1, nil)
			}
			o.flush()
			if got := o.unsent(); !slices.Equal(got, tt.want) {
				t.Errorf("unsent: %v, want %v", got, tt.want)
			}
			o.abandon()
			o.add(frame("late"), 9, nil)
			if got := o.unsent(); !slices.Equal(got, append(tt.want, 9)) {
				t.Errorf("unsent after the end: %v, want %v and 9", got, tt.want)
			}
		})
	}
}

func TestOutboxDoesNotCollectMarks(t *testing.T) {
	o := &outbox{sink: newFakePipe(1 << 30)}
	for tag := range int64(10000) {
		o.add(frame("hello"), tag+1, nil)
		if tag%3 == 0 {
			o.flush()
		}
	}
	if len(o.marks) > 100 {
		t.Errorf("%d marks are kept", len(o.marks))
	}
}

func TestOutboxReportsABrokenSinkOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePipe(3)
		broken := make(chan error, 10)
		o := &outbox{sink: p, broken: func(err error) { broken <- err }}
		o.add(frame("hello"), 1, nil)
		o.add(frame("again"), 2, nil)
		o.flush()
		why := errors.New("broken pipe")
		p.open(0, why)
		synctest.Wait()
		o.add(frame("more"), 3, nil)
		o.flush()
		synctest.Wait()
		if len(broken) != 1 || <-broken != why {
			t.Errorf("%d reports", len(broken))
		}
		if got := o.unsent(); !slices.Equal(got, []int64{2, 3}) {
			t.Errorf("unsent: %v", got)
		}
		if o.waitEmpty(time.Hour, nil) {
			t.Error("a broken outbox says that all was written")
		}
	})
}

func TestOutboxGivesUpOnlyWhenNothingMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePipe(0)
		o := &outbox{sink: p}
		o.add(frame(strings.Repeat("a", 9)), 0, nil)
		go func() {
			for range 4 { // slowly, but it moves
				time.Sleep(4 * time.Second)
				p.open(1, nil)
			}
		}()
		start := time.Now()
		if o.waitEmpty(5*time.Second, nil) {
			t.Error("everything was written")
		}
		if took := time.Since(start); took < 20*time.Second || took > 30*time.Second {
			t.Errorf("gave up after %v", took)
		}
		o.abandon()
		time.Sleep(2 * stillPoll) // for the drain to notice
	})
}

func TestOutboxClosesItsSinkWhenAllIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePipe(2)
		o := &outbox{sink: p}
		o.add(frame("hello"), 0, nil)
		o.finish()
		synctest.Wait()
		if _, closed := p.state(); closed {
			t.Fatal("closed too early")
		}
		p.open(100, nil)
		synctest.Wait()
		if took, closed := p.state(); took != "hello\n" || !closed {
			t.Errorf("took %q, closed %v", took, closed)
		}
	})
}

func TestOutboxTellsWhenItHasDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePipe(0)
		calls := 0
		o := &outbox{sink: p, high: 100, drained: func() { calls++ }}
		for range 30 {
			o.add(frame("hello"), 0, nil)
		}
		o.flush()
		p.open(100, nil)
		synctest.Wait()
		if calls != 0 {
			t.Error("told while more than half of high waits")
		}
		p.open(100, nil)
		synctest.Wait()
		if calls != 1 {
			t.Errorf("told %d times", calls)
		}
	})
}

// slowWriter takes what it gets when a test lets it.
type slowWriter struct {
	gate chan struct{}
	mu   sync.Mutex
	took bytes.Buffer
}

func (w *slowWriter) Write(p []byte) (int, error) {
	<-w.gate
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.took.Write(p)
}

func TestOutboxOverABlockingWriterNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{gate: make(chan struct{})}
		o := &outbox{w: w}
		for tag := range int64(5) {
			o.add(frame(fmt.Sprint("frame ", tag)), tag+1, nil)
			o.flush()
			synctest.Wait()
		}
		o.add([][]byte{bytes.Repeat([]byte("x"), 200<<10)}, 6, nil)
		o.flush()
		synctest.Wait()
		// The first frame is being written, so nobody knows.
		if got := o.unsent(); !slices.Equal(got, []int64{2, 3, 4, 5, 6}) {
			t.Errorf("unsent: %v", got)
		}
		close(w.gate)
		if !o.waitEmpty(time.Hour, nil) {
			t.Error("not emptied")
		}
		want := "frame 0\nframe 1\nframe 2\nframe 3\nframe 4\n" + strings.Repeat("x", 200<<10) + "\n"
		if w.took.String() != want {
			t.Errorf("took %d bytes, want %d", w.took.Len(), len(want))
		}
	})
}

// TestB19ConcurrentWritersDoNotInterleave has many goroutines write frames of all sizes into a real pipe that is read in
// sips.
func TestB19ConcurrentWritersDoNotInterleave(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := ownOutbox(w)
	const writers, frames = 20, 30
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for n := range frames {
				body := strings.Repeat(string(rune('a'+i)), rnd.IntN(100<<10))
				o.add(frame(fmt.Sprintf("%d %d ", i, n), body), 0, nil)
				o.flush()
			}
		})
	}
	go func() {
		wg.Wait()
		o.finish()
	}()
	all, err := io.ReadAll(&sips{r})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(all), "\n"), "\n")
	if len(lines) != writers*frames {
		t.Errorf("%d lines", len(lines))
	}
	var next [writers]int
	for _, line := range lines {
		var i, n int
		var body string
		fmt.Sscanf(line, "%d %d %s", &i, &n, &body)
		if n != next[i] || strings.Trim(body, string(rune('a'+i))) != "" {
			t.Fatalf("writer %d: frame %d where %d was due, starting %.40q", i, n, next[i], line)
		}
		next[i]++
	}
}

// sips reads at most 1 KiB at a time.
type sips struct{ r io.Reader }

func (s *sips) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), 1<<10)]) }
