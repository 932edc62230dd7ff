package proxy

import (
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	largeFrame   = 8 << 20     // frames from this size on have their memory returned to the system
	releaseDelay = time.Second // after such a frame; at most one release per delay
)

// A releaser gives the memory of large frames back to the system. The runtime would do so too, but only in minutes.
type releaser struct {
	letGo func() // has the engine forget the frame; called on a goroutine of its own
	armed atomic.Bool
}

// passed notes that a frame of that size was handled.
func (r *releaser) passed(size int) {
	if size < largeFrame || r.armed.Swap(true) {
		return
	}
	time.AfterFunc(releaseDelay, func() {
		r.armed.Store(false)
		r.letGo()
		debug.FreeOSMemory()
	})
}

// afterStart gives back, soon, what loading and compiling the config took: a proxy may live for days with little to do.
func afterStart() (stop func() bool) {
	return time.AfterFunc(releaseDelay, func() {
		debug.FreeOSMemory()
		dropCode()
	}).Stop
}

// within reports whether piece is a part of frame's memory. An empty piece is a part of anything.
func within(piece, frame []byte) bool {
	if len(piece) == 0 || len(frame) == 0 {
		return len(piece) == 0
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(frame)))
	p := uintptr(unsafe.Pointer(unsafe.SliceData(piece)))
	return p >= start && p+uintptr(len(piece)) <= start+uintptr(len(frame))
}
