package proxy

import (
	"sync"
	"time"
)

// An alarm rings once at the earliest of the times that were set since it last rang, or later than a time that has been
// superseded. Setting a time that is not earlier costs a comparison, so deadlines that are set with every call and hardly
// ever come cost next to nothing: the alarm rings for one of them now and then, and is set anew.
type alarm struct {
	ring func() // called on a goroutine of its own

	mu    sync.Mutex
	timer *time.Timer
	at    time.Time // zero = not set
	ended bool
}

// set has the alarm ring at the given time, if it would ring later.
func (a *alarm) set(now, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(at.Sub(now), a.fire)
		return
	}
	a.timer.Reset(at.Sub(now))
}

func (a *alarm) fire() {
	a.mu.Lock()
	ended := a.ended
	a.at = time.Time{}
	a.mu.Unlock()
	if !ended {
		a.ring()
	}
}

// stop ends the alarm for good.
func (a *alarm) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
