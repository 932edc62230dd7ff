package policytest

import (
	"slices"
	"time"
)

// world is what surrounds the engines of a row: a clock, and what is going to happen.
type world struct {
	suite    *Suite
	start    time.Time
	now      time.Time
	coming   []happening // by time, then in the order they were planned
	sessions []*session  // in the order they were needed
	trace    bool        // whether decisions are explained
	brief    bool        // but without the rules that were asked
	coverage *Coverage   // nil = nobody counts
	events   []Event
}

// happening is something that is going to happen.
type happening struct {
	at time.Time
	do func()
}

// plan lets something happen after a while.
func (w *world) plan(after time.Duration, do func()) {
	h := happening{w.now.Add(after), do}
	i, _ := slices.BinarySearchFunc(w.coming, h.at, func(o happening, at time.Time) int {
		if o.at.After(at) {
			return 1
		}
		return -1 // what was planned before goes first
	})
	w.coming = slices.Insert(w.coming, i, h)
}

// next lets the next thing happen, unless nothing does until end. The clock jumps to it.
func (w *world) next(end time.Time) bool {
	var wakes *session
	at := end
	for _, s := range w.sessions {
		if wake, ok := s.engine.NextWake(); ok && !wake.After(at) && (wakes == nil || wake.Before(at)) {
			wakes, at = s, wake
		}
	}
	if len(w.coming) > 0 && !w.coming[0].at.After(at) {
		h := w.coming[0]
		w.coming = w.coming[1:]
		w.jump(h.at)
		h.do()
		return true
	}
	if wakes == nil {
		return false
	}
	w.jump(at)
	wakes.tick()
	return true
}

func (w *world) jump(to time.Time) {
	if to.After(w.now) {
		w.now = to
	}
}

// settle lets happen what happens now.
func (w *world) settle() { w.until(w.now) }

// until lets everything happen up to a moment, and moves the clock there.
func (w *world) until(end time.Time) {
	for range maxEvents {
		if !w.next(end) {
			break
		}
	}
	w.jump(end)
}

// maxEvents bounds what may happen in a step: more is an engine that turns in circles.
const maxEvents = 100_000

// Event is a line of the timeline of a row.
type Event struct {
	At   time.Duration // from the beginning of the row
	Step int           // from 0
	Text string
}
