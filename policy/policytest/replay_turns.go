package policytest

import (
	"cmp"
	"slices"
	"time"
)

// turns lets the calls of a recording be made in their order, each once those have ended that had ended when it was made.
type turns struct {
	ended   []*Call // those that ended in the recording, in the order in which they did
	over    int     // how many of them, from the first on, have ended again
	before  []int   // of each call: how many of them had ended when it was made
	waiting []turn
}

type turn struct {
	before int
	do     func()
}

func newTurns(recorded []*RecordedCall, calls []*Call) *turns {
	type end struct {
		at   time.Duration
		call int
	}
	var ends []end
	for i, r := range recorded {
		if at, ok := r.over(); ok {
			ends = append(ends, end{at, i})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	t := &turns{}
	for _, e := range ends {
		t.ended = append(t.ended, calls[e.call])
	}
	n := 0
	for i, r := range recorded {
		for n < len(ends) && ends[n].at <= r.At && ends[n].call < i { // those made later at the same moment wait for this one
			n++
		}
		t.before = append(t.before, n)
	}
	return t
}

// take is called when the time of a call has come.
func (t *turns) take(call int, do func()) {
	t.waiting = append(t.waiting, turn{t.before[call], do})
	t.next()
}

// next makes the calls whose turn it is.
func (t *turns) next() {
	for {
		for t.over < len(t.ended) && t.ended[t.over].over {
			t.over++
		}
		if len(t.waiting) == 0 || t.waiting[0].before > t.over {
			return
		}
		first := t.waiting[0]
		t.waiting = t.waiting[1:]
		first.do()
	}
}
