package compose

import "bytes"

// Bounds of what a client may send before its initialize is answered, and of what may wait for one server that is not there yet.
const (
	maxHeld      = 1000     // messages
	maxHeldBytes = 64 << 20 // of their frames; a single one may be larger
)

// mayWait reports whether a frame may join so many others, of that size together, in waiting.
func mayWait(others, size int, frame []byte) bool {
	return others < maxHeld && (others == 0 || size+len(frame) <= maxHeldBytes)
}

// holdBack keeps a frame of the client until initialize is answered; false = there are too many.
func (b *Board) holdBack(frame []byte) bool {
	size := 0
	for _, held := range b.held {
		size += len(held)
	}
	if !mayWait(len(b.held), size, frame) {
		return false
	}
	b.held = append(b.held, bytes.Clone(frame))
	return true
}

// sizeOf is the size of the frames of requests that wait, in bytes.
func sizeOf(waiting []waiter) (size int) {
	for _, w := range waiting {
		size += len(w.frame)
	}
	return size
}
