package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
)

func TestOutboxTakesBackOnlyWhatHasNotBegunToGoOut(t *testing.T) {
	p := newFakePipe(10)
	o := &outbox{sink: p}
	o.add(frame("first"), 1, nil)
	o.add(frame("second"), 2, nil)
	o.add(frame("third"), 3, nil)
	o.add(frame("untagged"), 0, nil)
	o.mu.Lock()
	o.writeSome() // "first", and a part of "second"
	o.mu.Unlock()
	for tag, want := range map[int64]bool{1: false, 2: false, 3: true, 4: false} {
		if got := o.takeBack(tag); got != want {
			t.Errorf("frame %d was taken back: %v, want %v", tag, got, want)
		}
	}
	if o.takeBack(3) {
		t.Error("a frame was taken back twice")
	}
	p.open(1<<20, nil)
	o.flush()
	if took, _ := p.state(); took != "first\nsecond\nuntagged\n" {
		t.Errorf("the other side got %q", took)
	}
	if n := o.queued.Load(); n != 0 {
		t.Errorf("%d bytes are believed to wait", n)
	}
}

// A frame that was taken back never goes out, and all others do, whole and in order, however large they are and wherever the pipe
// was full.
func TestOutboxTakesBackAnyFrameOfTheQueue(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			p := newFakePipe(r.IntN(4000))
			o := &outbox{sink: p}
			if seed%2 == 1 {
				o = &outbox{w: writerTo{p}}
			}
			var want strings.Builder
			frames := map[int64]string{}
			var order []int64
			for tag := int64(1); tag <= 60; tag++ {
				size := []int{1, 30, 3000, gatherLimit + 1, 3 * flushAt}[r.IntN(5)]
				frames[tag] = fmt.Sprint(tag, strings.Repeat("x", size))
				order = append(order, tag)
				o.add(frame(frames[tag][:1], frames[tag][1:]), tag, nil)
				switch r.IntN(4) {
				case 0:
					o.flush()
				case 1:
					p.open(r.IntN(100_000), nil)
				case 2:
					if back := 1 + r.Int64N(tag); o.takeBack(back) {
						if frames[back] == "" {
							t.Fatalf("frame %d was taken back twice", back)
						}
						frames[back] = ""
					}
				}
				if r.IntN(3) == 0 {
					synctest.Wait()
				}
			}
			for _, tag := range order {
				if frames[tag] != "" {
					want.WriteString(frames[tag] + "\n")
				}
			}
			p.open(1<<30, nil)
			o.flush()
			o.waitEmpty(flushStall, nil)
			synctest.Wait()
			if took, _ := p.state(); took != want.String() {
				t.Fatalf("seed %d: the other side got %d bytes, want %d", seed, len(took), want.Len())
			}
		})
	}
}

func TestOutboxTakesBackWhatABrokenPipeHasDropped(t *testing.T) {
	o := &outbox{sink: newFakePipe(0)}
	o.add(frame("lost"), 1, nil)
	o.abandon()
	if !o.takeBack(1) {
		t.Error("a frame that never goes out could not be taken back")
	}
	if unsent := o.unsent(); len(unsent) > 0 {
		t.Errorf("%v are unsent still", unsent)
	}
}

// writerTo is a writer that blocks as long as a pipe has no room.
type writerTo struct{ pipe *fakePipe }

func (w writerTo) Write(b []byte) (int, error) {
	for n := 0; ; {
		k, err := w.pipe.write([][]byte{b[n:]})
		if n += k; err != errFull {
			return n, err
		}
		w.pipe.wait(stillPoll)
	}
}
