package policy

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// memo is what a [Call] keeps between expressions.
type memo struct {
	args, meta             object
	argsReady, metaReady   bool
	now                    ref.Val
	failure                *Failure // of the phase; nil = none
	data, result           ref.Val  // of the phase, once decoded
	rawResult              []byte   // of the phase; nil = none
	attempt                int
	elapsed                time.Duration
	plan                   *Plan     // that decides
	table                  *table    // of plan, for the tool as it is in this phase
	whenBefore, whenOfThis []verdict // of conditions, by their slots in table: for the whole call, and for the phase
	effects                string    // that the answers in whenBefore saw
	boxes                  boxes
	deciders               []*rule // by question, if somebody observes: what decided before the call
}

// verdict is what a when came to.
type verdict uint8

const (
	unasked verdict = iota
	holds
	fails
)

// Reset makes the call ready for reuse. Buffers stay, everything else goes.
func (c *Call) Reset() {
	m := &c.memo
	m.args.reset(nil)
	m.meta.reset(nil)
	clear(c.Errors)
	*c = Call{
		Errors: c.Errors[:0],
		memo: memo{
			args: m.args, meta: m.meta, boxes: m.boxes,
			whenBefore: m.whenBefore[:0], whenOfThis: m.whenOfThis[:0],
		},
	}
}

// begin forgets what expressions of an earlier decision before the call have left.
func (c *Call) begin(slots int) {
	m := &c.memo
	m.argsReady, m.metaReady, m.now = false, false, nil
	m.whenBefore = sized(m.whenBefore, slots)
	c.enter(slots, nil, nil, 0, 0)
}

// enter begins a phase.
func (c *Call) enter(slots int, f *Failure, result []byte, attempt int, elapsed time.Duration) {
	m := &c.memo
	m.failure, m.rawResult, m.attempt, m.elapsed = f, result, attempt, elapsed
	m.data, m.result = nil, nil
	m.whenOfThis = sized(m.whenOfThis, slots)
	if len(m.whenBefore) != slots || m.effects != c.Tool.Effects {
		m.whenBefore, m.effects = sized(m.whenBefore, slots), c.Tool.Effects
	}
}

// sized returns s with n cleared elements.
func sized(s []verdict, n int) []verdict {
	if cap(s) < n {
		return make([]verdict, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// activation is a [Call] as CEL resolves variables from it.
type activation Call

// ResolveName implements interpreter.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	m := &a.memo
	switch name {
	case "args":
		if !m.argsReady {
			m.args.reset(a.Args)
			m.argsReady = true
		}
		return &m.args, true
	case "tool":
		return (*toolView)(a), true
	case "error":
		return (*errorView)(a), true
	case "result":
		if m.result == nil {
			if m.rawResult == nil {
				m.result = types.NullValue
			} else {
				v := decodeText(m.rawResult)
				if types.IsError(v) {
					return v, true
				}
				m.result = v
			}
		}
		return m.result, true
	case "meta":
		if !m.metaReady {
			m.meta.reset(a.Meta)
			m.metaReady = true
		}
		return &m.meta, true
	case "server":
		return (*serverView)(a), true
	case "client":
		return (*clientView)(a), true
	case "attempt":
		return types.Int(m.attempt), true
	case "elapsed":
		return types.Duration{Duration: m.elapsed}, true
	case "now":
		if m.now == nil {
			m.now = types.Timestamp{Time: a.Now}
		}
		return m.now, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (a *activation) Parent() interpreter.Activation { return nil }

// decodeText is decode for a text that may have white space around it.
func decodeText(b []byte) ref.Val {
	start := skipSpace(b, 0)
	end := len(b)
	for end > start && (b[end-1] == ' ' || b[end-1] == '\n' || b[end-1] == '\t' || b[end-1] == '\r') {
		end--
	}
	return decode(b[start:end], 0)
}
