package engine

import "time"

// timer is a moment at which something is due. It is embedded in the thing that waits, so that setting, moving and
// stopping it allocates nothing and a stopped timer leaves nothing behind.
type timer struct {
	at   time.Time
	fire func(*Engine) // what is due; set once, when the thing that waits is made
	slot int           // index in the heap + 1; 0 = not set
}

// set reports whether the timer runs.
func (t *timer) set() bool { return t.slot != 0 }

// timers is a binary heap, soonest first, whose entries know their places.
type timers []*timer

// arm sets or moves a timer.
func (h *timers) arm(t *timer, at time.Time) {
	t.at = at
	if t.slot == 0 {
		*h = append(*h, t)
		t.slot = len(*h)
	}
	h.up(t.slot - 1)
	h.down(t.slot - 1)
}

// stop takes a timer out; stopping one that is not set does nothing.
func (h *timers) stop(t *timer) {
	if t.slot == 0 {
		return
	}
	i, last := t.slot-1, len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	t.slot = 0
	if i < last {
		h.up(i)
		h.down((*h)[i].slot - 1)
	}
}

// clear stops all timers.
func (h *timers) clear() {
	for _, t := range *h {
		t.slot = 0
	}
	*h = nil
}

// due takes out and returns the soonest timer if its time has come, else nil.
func (h *timers) due(now time.Time) *timer {
	if len(*h) == 0 || (*h)[0].at.After(now) {
		return nil
	}
	t := (*h)[0]
	h.stop(t)
	return t
}

func (h timers) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i+1, j+1
}

func (h timers) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].at.Before(h[parent].at) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h timers) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].at.Before(h[least].at) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
