package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	gatherLimit = 32 << 10    // a frame up to this size is copied to the frames before it; a larger one is written from where it is
	flushAt     = 64 << 10    // gathered bytes that are written without waiting for the reader to run dry
	leastGather = 4 << 10     // size of a fresh gather buffer
	keptGather  = 2 * flushAt // the largest gather buffer that is used again
	maxPieces   = 64          // pieces per writev; far below the limit of any system
)

// errFull says that a descriptor takes no more for now.
var errFull = errors.New("would block")

// A sink is a descriptor that can be written to without blocking.
type sink interface {
	// write writes as much as fits. The error is errFull if that is not all.
	write(pieces [][]byte) (int, error)
	// wait blocks until the sink may take more, but no longer than about the given time.
	wait(time.Duration) error
	// close releases the descriptor.
	close()
}

// An outbox is the way out to one side: an ordered queue of frames that never blocks whoever adds to it.
//
// Frames are gathered by add and written by flush. What does not fit is drained by a goroutine that ends when the queue is
// empty. With a sink, flush itself writes, in the ideal case with a single system call per burst; with a plain io.Writer,
// which may block, only the draining goroutine does.
type outbox struct {
	sink  sink      // nil: w is used
	w     io.Writer // written to by the draining goroutine only
	owned io.Closer // closed with the outbox, if w is used; nil = somebody else's
	// broken is called once, without the lock, by the goroutine that finds out; nil = nobody cares.
	broken func(error)
	// drained is called whenever the queue has shrunk to half of high after having been longer; it must not block.
	drained func()
	high    int64

	queued  atomic.Int64 // bytes that wait, for those who only want to know whether to read on
	writing atomic.Bool  // whoever holds the lock is writing all that waits

	mu       sync.Mutex
	chunks   [][]byte
	gathers  bool   // the last chunk is the gather buffer, open for appending
	spare    []byte // a gather buffer to use again
	written  int64  // bytes that the other side's pipe has taken, or may have taken
	end      int64  // written plus all that waits
	marks    []mark
	draining bool
	above    bool // the queue was longer than high
	closing  bool // close the sink when the queue is empty
	gone     bool // abandoned: nothing is written any more, and the sink is closed or being closed
	err      error
	idle     chan struct{} // closed when draining ends; nil if nobody waits
}

// A mark says where in the stream a tagged frame lies.
type mark struct{ tag, start, end int64 }

// add appends a frame, made of pieces, and its newline. The pieces are used during the call only, but for those that lie
// within keep, which the outbox may hold on to. A tag other than 0 names the frame for unsent and takeBack.
func (o *outbox) add(pieces [][]byte, tag int64, keep []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := int64(1)
	for _, p := range pieces {
		size += int64(len(p))
	}
	if tag != 0 {
		o.mark(tag, size)
	}
	o.end += size
	if o.err != nil || o.gone {
		return
	}
	o.queued.Add(size)
	if size <= gatherLimit {
		buf := o.openGather()
		for _, p := range pieces {
			buf = append(buf, p...)
		}
		o.chunks[len(o.chunks)-1] = append(buf, '\n')
		if o.end-o.written >= flushAt {
			o.push()
		}
	} else {
		o.addLarge(pieces, keep)
	}
	if o.high > 0 && o.queued.Load() > o.high {
		o.above = true
	}
}

// addLarge writes a frame from where it lies and copies only what is left over.
func (o *outbox) addLarge(pieces [][]byte, keep []byte) {
	o.gathers = false
	o.chunks = append(o.chunks, pieces...)
	o.chunks = append(o.chunks, newline)
	if o.sink != nil {
		o.push()
	}
	// Pieces stand at the end of the queue, so those that were written, wholly or in part, are not in it any more.
	for i := max(0, len(o.chunks)-len(pieces)-1); i < len(o.chunks); i++ {
		if c := o.chunks[i]; !within(c, keep) && !within(c, newline) {
			o.chunks[i] = append(make([]byte, 0, len(c)), c...)
		}
	}
}

var newline = []byte{'\n'}

// openGather returns the gather buffer at the end of the queue.
func (o *outbox) openGather() []byte {
	if o.gathers {
		if last := o.chunks[len(o.chunks)-1]; len(last) < flushAt {
			return last
		}
	}
	buf := o.spare
	o.spare = nil
	if buf == nil {
		buf = make([]byte, 0, leastGather)
	}
	o.chunks = append(o.chunks, buf)
	o.gathers = true
	return buf
}

// mark notes where the next frame will lie, and forgets the marks of frames that have begun to go out.
func (o *outbox) mark(tag, size int64) {
	if len(o.marks) > 0 && o.written == o.end {
		o.marks = o.marks[:0]
	} else if len(o.marks) == cap(o.marks) {
		o.marks = o.marks[:copy(o.marks, o.marks[o.firstUnsent():])]
	}
	o.marks = append(o.marks, mark{tag, o.end, o.end + size})
}

// firstUnsent returns the index of the first mark of which nothing was written.
func (o *outbox) firstUnsent() int {
	for i, m := range o.marks {
		if m.start >= o.written {
			return i
		}
	}
	return len(o.marks)
}

// unsent returns the tags of frames of which not one byte was written.
func (o *outbox) unsent() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var tags []int64
	for _, m := range o.marks[o.firstUnsent():] {
		tags = append(tags, m.tag)
	}
	return tags
}

// flush sends what was added on its way. It does not block, and does not wait for a write of somebody else: if there is
// one, it has begun after the caller's last add, so it writes that too.
func (o *outbox) flush() {
	if o.queued.Load() == 0 || o.writing.Load() {
		return
	}
	o.mu.Lock()
	o.push()
	o.mu.Unlock()
}

// push writes what it can, and leaves the rest to a draining goroutine.
func (o *outbox) push() {
	if o.draining || len(o.chunks) == 0 || o.err != nil || o.gone {
		return
	}
	if o.sink == nil {
		o.draining = true
		go o.drainBlocking()
		return
	}
	switch err := o.writeSome(); {
	case err == errFull:
		o.draining = true
		go o.drain()
	case err != nil && o.broken != nil:
		go o.broken(err)
	}
}

// writeSome writes until the queue is empty (nil) or the sink takes no more.
func (o *outbox) writeSome() error {
	o.writing.Store(true)
	defer o.writing.Store(false)
	for len(o.chunks) > 0 {
		n, err := o.sink.write(o.chunks[:min(len(o.chunks), maxPieces)])
		o.took(n)
		if err != nil {
			if err != errFull {
				o.fail(err)
			}
			return err
		}
	}
	return nil
}

// took removes the first n bytes of the queue.
func (o *outbox) took(n int) {
	o.written += int64(n)
	o.queued.Add(-int64(n))
	i := 0
	for ; i < len(o.chunks) && n >= len(o.chunks[i]); i++ {
		n -= len(o.chunks[i])
	}
	if i == len(o.chunks) {
		if o.gathers {
			if buf := o.chunks[i-1]; cap(buf) >= leastGather && cap(buf) <= keptGather {
				o.spare = buf[:0]
			}
			o.gathers = false
		}
		clear(o.chunks)
		o.chunks = o.chunks[:0]
		return
	}
	if i > 0 {
		rest := copy(o.chunks, o.chunks[i:])
		clear(o.chunks[rest:])
		o.chunks = o.chunks[:rest]
	}
	o.chunks[0] = o.chunks[0][n:]
}

// fail drops the queue. What was in it stays marked as unsent.
func (o *outbox) fail(err error) {
	if o.err == nil {
		o.err = err
	}
	o.drop()
}

// drop forgets the queue.
func (o *outbox) drop() {
	o.chunks, o.spare, o.gathers = nil, nil, false
	o.queued.Store(0)
	o.tellDrained()
}

// finish closes the sink once all that waits is written.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.push()
	o.closing = true
	if !o.draining {
		o.closeSink()
	}
}

// abandon drops what waits and closes the sink.
func (o *outbox) abandon() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	o.drop()
	if !o.draining {
		o.closeSink()
	}
}

// deaf reports whether the other side is known to have closed its end, so that nothing can reach it any more.
func (o *outbox) deaf() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, tells := o.sink.(interface{ deaf() bool })
	return tells && !o.gone && s.deaf()
}

// closeSink closes the descriptor; nobody is using it.
func (o *outbox) closeSink() {
	o.gone = true
	if o.sink != nil {
		o.sink.close()
		o.sink = nil
	}
	if o.owned != nil {
		o.owned.Close()
		o.owned = nil
	}
}
