package proxy

import "time"

// stillPoll is how soon a draining goroutine notices that the outbox was abandoned.
const stillPoll = 50 * time.Millisecond

// drain writes the queue as the sink takes it, until it is empty.
func (o *outbox) drain() {
	for {
		err := o.sink.wait(stillPoll)
		o.mu.Lock()
		if err == nil && !o.gone {
			err = o.writeSome()
		} else if err != nil {
			o.fail(err)
		}
		if err != errFull || o.gone {
			o.endDrain(err)
			return
		}
		o.tellDrained()
		o.mu.Unlock()
	}
}

// drainBlocking writes the queue to a writer that may block, until it is empty.
func (o *outbox) drainBlocking() {
	o.mu.Lock()
	for {
		if len(o.chunks) == 0 || o.gone || o.err != nil {
			o.endDrain(o.err)
			return
		}
		chunk := o.chunks[0][:min(len(o.chunks[0]), flushAt)]
		if len(o.chunks) == 1 {
			o.gathers = false // it is being read: nothing may be appended in place
		}
		before := o.written
		o.written += int64(len(chunk)) // nobody knows how much of it has gone out while Write runs
		o.mu.Unlock()
		n, err := o.w.Write(chunk)
		o.mu.Lock()
		o.written = before
		if o.gone {
			o.written += int64(n)
			o.endDrain(nil)
			return
		}
		o.took(n)
		if err != nil {
			o.fail(err)
		}
		o.tellDrained()
	}
}

// endDrain ends a draining goroutine: it releases the lock, and closes the sink if that was waiting for it.
func (o *outbox) endDrain(err error) {
	o.draining = false
	closing := o.closing || o.gone
	o.tellDrained()
	if o.idle != nil {
		close(o.idle)
		o.idle = nil
	}
	if closing {
		o.closeSink()
	}
	o.mu.Unlock()
	if err != nil && err != errFull && o.broken != nil {
		o.broken(err)
	}
}

// tellDrained tells whoever waits for the queue to become short again that it has.
func (o *outbox) tellDrained() {
	if o.above && o.queued.Load() <= o.high/2 {
		o.above = false
		o.drained()
	}
}

// waitEmpty blocks until the queue is empty, or broken, or no byte was taken for the time given, or stop is closed.
// It reports whether all was written.
func (o *outbox) waitEmpty(stall time.Duration, stop <-chan struct{}) bool {
	timer := time.NewTimer(stall)
	defer timer.Stop()
	o.mu.Lock()
	o.push()
	for before := o.progress(); o.draining && o.err == nil; {
		if o.idle == nil {
			o.idle = make(chan struct{})
		}
		idle := o.idle
		o.mu.Unlock()
		stalled := false
		select {
		case <-idle:
		case <-timer.C:
			stalled = true
		case <-stop:
			o.mu.Lock()
			defer o.mu.Unlock()
			return !o.draining && o.err == nil
		}
		o.mu.Lock()
		if stalled {
			if o.progress() == before {
				break
			}
			before = o.progress()
			timer.Reset(stall)
		}
	}
	defer o.mu.Unlock()
	return !o.draining && o.err == nil
}

// progress is a number that changes whenever bytes are taken.
func (o *outbox) progress() int64 { return o.end - o.queued.Load() }
