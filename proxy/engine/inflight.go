package engine

import (
	"bytes"
	"hash/maphash"
	"iter"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// inFlight finds the operation that a call repeats, if there is one: that of the same explicit key, or of the same tool and
// arguments. Of the latter the fingerprint comes first, so that the digest of the arguments is not even computed for a call that
// repeats none.
type inFlight struct {
	seed     maphash.Seed
	explicit map[digest]*operation
	implicit map[uint64]*operation // a list of those of one fingerprint
}

func newInFlight() inFlight {
	return inFlight{seed: maphash.MakeSeed(), explicit: map[digest]*operation{}, implicit: map[uint64]*operation{}}
}

// fingerprint is the same for calls of a tool with equal arguments.
func (f *inFlight) fingerprint(tool string, args []byte) uint64 {
	sum := maphash.String(f.seed, tool)
	if len(args) > largeArguments {
		return sum + maphash.Bytes(f.seed, args)
	}
	return sum + jsonrpc.Fingerprint(f.seed, args)
}

// find returns the operation in flight that is the same as another one, which may be that itself; nil = there is none.
func (f *inFlight) find(e *Engine, op *operation) *operation {
	switch op.keyed {
	case explicit:
		return f.explicit[op.key]
	case implicit:
		for other := f.implicit[op.print]; other != nil; other = other.alike {
			if other == op || other.tool.Name == op.tool.Name &&
				(bytes.Equal(other.arguments(), op.arguments()) || e.keyOfOperation(other) == e.keyOfOperation(op)) {
				return other
			}
		}
	}
	return nil
}

// add makes an operation the one that is found, in the place of another one.
func (f *inFlight) add(e *Engine, op *operation) {
	if op.keyed == unkeyed {
		return
	}
	if former := f.find(e, op); former != nil {
		f.remove(former)
	}
	op.found = true
	if op.keyed == explicit {
		f.explicit[op.key] = op
		return
	}
	op.alike = f.implicit[op.print]
	f.implicit[op.print] = op
}

// remove sees to it that an operation is not found any more.
func (f *inFlight) remove(op *operation) {
	if !op.found {
		return
	}
	op.found = false
	if op.keyed == explicit {
		delete(f.explicit, op.key)
		return
	}
	first := f.implicit[op.print]
	if first == op {
		if op.alike == nil {
			delete(f.implicit, op.print)
		} else {
			f.implicit[op.print] = op.alike
		}
	} else {
		for first.alike != op {
			first = first.alike
		}
		first.alike = op.alike
	}
	op.alike = nil
}

// all yields the operations in flight, in no order.
func (f *inFlight) all() iter.Seq[*operation] {
	return func(yield func(*operation) bool) {
		for _, op := range f.explicit {
			if !yield(op) {
				return
			}
		}
		for _, first := range f.implicit {
			for op := first; op != nil; op = op.alike {
				if !yield(op) {
					return
				}
			}
		}
	}
}

// count is how many operations are in flight.
func (f *inFlight) count() (n int) {
	for range f.all() {
		n++
	}
	return n
}
