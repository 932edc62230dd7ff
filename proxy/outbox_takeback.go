package proxy

import "slices"

// takeBack takes the frame of that tag out of the queue, if not one byte of it was written. It reports whether it has: then the
// frame never goes out. A frame that is unknown, or under way, stays what it is.
func (o *outbox) takeBack(tag int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.firstUnsent()
	i := slices.IndexFunc(o.marks[first:], func(m mark) bool { return m.tag == tag })
	if i < 0 {
		return false
	}
	i += first
	frame := o.marks[i]
	o.marks = slices.Delete(o.marks, i, i+1)
	if o.err != nil || o.gone {
		return true // it was dropped with all the rest
	}
	size := frame.end - frame.start
	o.cut(int(frame.start-o.progress()), int(size)) // and not from written, which runs ahead of the queue during a write
	for j := i; j < len(o.marks); j++ {
		o.marks[j].start -= size
		o.marks[j].end -= size
	}
	o.end -= size
	o.queued.Add(-size)
	o.tellDrained()
	return true
}

// cut takes size bytes out of the queue, from an offset on. Chunks are parted, and no byte is moved: one of them may be on its way.
func (o *outbox) cut(from, size int) {
	var kept [][]byte
	add := func(part []byte) {
		if len(part) > 0 {
			kept = append(kept, part)
		}
	}
	at := 0
	for i, c := range o.chunks {
		a, b := min(max(from-at, 0), len(c)), min(max(from+size-at, 0), len(c))
		at += len(c)
		if a == b { // nothing of it is cut
			add(c)
			continue
		}
		add(c[:a:a])
		add(c[b:])
		if i == len(o.chunks)-1 && b == len(c) {
			o.gathers = false // what is left at the end must not grow over what follows in memory
		}
	}
	o.chunks = kept
}
