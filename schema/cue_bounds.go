package schema

import (
	"runtime/metrics"
	"time"
)

// Bounds of what the evaluation of a file in CUE may take. Such a file is a program: a few lines can double a text forty times, or
// try a million combinations. Real ones take a thousandth of either.
const (
	maxCUETime   = 10 * time.Second
	maxCUEMemory = 256 << 20 // bytes that the heap grows by
	cueWatch     = 2 * time.Millisecond
)

// bounded runs the evaluation of a file and waits until it ends, or has taken more than it may: then it is given up, and ok is
// false. Nothing can stop the evaluator from outside; it goes on until it is done or the process ends, so evaluate must touch
// nothing that anybody else does.
func bounded[T any](evaluate func() T) (result T, ok bool) {
	done := make(chan T, 1)
	before := heapBytes()
	go func() { done <- evaluate() }()
	tick := time.NewTicker(cueWatch)
	defer tick.Stop()
	for deadline := time.Now().Add(maxCUETime); ; {
		select {
		case result = <-done:
			return result, true
		case now := <-tick.C:
			if now.After(deadline) || heapBytes() > before+maxCUEMemory {
				return result, false
			}
		}
	}
}

// heapBytes is what the objects on the heap take, including those that are dead and were not swept yet.
func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
