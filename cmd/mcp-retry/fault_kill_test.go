package main

import (
	"fmt"
	"strings"
	"testing"
)

// exits waits until so many lives of the server have ended, by the log.
func (f *field) exits(n int) {
	f.t.Helper()
	f.until(fmt.Sprintf("the end of life %d", n), func() bool { return f.count("server_exit") >= n })
}

// count counts the records with a message. The lock is held.
func (f *field) count(msg string) int {
	n := 0
	for _, r := range f.records {
		if r.Msg == msg {
			n++
		}
	}
	return n
}

// TestFaultServerIsKilledAtAnyPointOfACall: what is safe to do again is done again, unseen; what is not is done at most once,
// and its caller is told what is known. Either way there is one answer, and the session goes on.
func TestFaultServerIsKilledAtAnyPointOfACall(t *testing.T) {
	t.Parallel()
	const key = `"_meta":{"idempotencyKey":"k"}`
	kinds := []struct {
		name, tool, key string
		safe            bool
	}{
		{"read-only", "reads", "", true},
		{"idempotent", "repeats", "", true},
		{"unannotated", "plain", "", true},
		{"unsafe", "pays", "", false},
		{"keyed", "plain", key, false},
		{"keyed and unsafe", "pays", key, false},
	}
	points := []struct {
		at       string
		pad      int // bytes of the call, beside its words
		size     int // bytes of its answer, likewise
		came     int // attempts that the server saw of the killed one
		done     int // executions in it
		answered bool
	}{
		{at: dieUnread},
		{at: dieUnread, pad: 1 << 20}, // more than a pipe holds: part of the frame was never written
		{at: dieRead, came: 1},
		{at: dieDone, came: 1, done: 1},
		{at: dieHalf, came: 1, done: 1},
		{at: dieHalf, size: 1 << 20, came: 1, done: 1},
		{at: dieUnended, came: 1, done: 1, answered: true},
		{at: dieAnswered, came: 1, done: 1, answered: true},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "retry: {base_delay: 0.01}\ncircuit_breaker: {failure_threshold: 100}\n")
			f.open()
			for i, p := range points {
				n, id := 10*(i+1), string(rune('a'+i))
				order := faultOrder{N: n, Fault: p.at, Size: p.size, Pad: strings.Repeat("z", p.pad)}
				more := []string(nil)
				if kind.key != "" {
					more = []string{strings.Replace(kind.key, `"k"`, `"k`+id+`"`, 1)}
				}
				if p.at == dieUnread {
					f.order(`"before `+id+`"`, "plain", faultOrder{N: n + 1, Fault: p.at})
					f.success(`"before ` + id + `"`)
					order.Fault = ""
				}
				f.order(`"`+id+`"`, kind.tool, order, more...)
				attempts, executions := p.came, p.done
				switch {
				case p.answered:
					f.success(`"`+id+`"`).done(t, n, 1)
				case kind.safe:
					attempts, executions = attempts+1, executions+1
					f.success(`"`+id+`"`).done(t, n, executions)
				default:
					if e := f.failure(`"`+id+`"`, -31004).Error; e.Data.MayHaveExecuted != "unknown" || e.Data.Attempts != 1 {
						t.Errorf("%s: the error is %q, %+v", p.at, e.Message, e.Data)
					}
				}
				f.exits(i + 1) // what comes before that may yet be the dying life's
				if kind.key != "" {
					f.order(`"again `+id+`"`, kind.tool, order, more...)
					if p.answered {
						f.success(`"again `+id+`"`).done(t, n, 1)
					} else {
						f.failure(`"again `+id+`"`, -31007)
					}
				}
				f.order(`"after `+id+`"`, kind.tool, faultOrder{N: n + 2})
				f.success(`"after `+id+`"`).done(t, n+2, 1)
				f.kept(n, attempts, executions)
			}
			if status := f.close(); status != exitFine {
				t.Errorf("exit status %d", status)
			}
			f.nothingElse()
			if lives := len(f.book.lives()); lives != len(points)+1 {
				t.Errorf("the server was started %d times, want %d", lives, len(points)+1)
			}
		})
	}
}
