package engine

import (
	"encoding/binary"
	"testing"
	"time"
)

// TestFactsThatHaveExpiredAreForgotten although nobody asks for them again: else a busy session would hold the most there may be.
func TestFactsThatHaveExpiredAreForgotten(t *testing.T) {
	var f facts
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := func(n int) (k digest) {
		binary.LittleEndian.PutUint64(k[:], uint64(n))
		return k
	}
	const ttl, each = time.Second, time.Millisecond
	for n := range 10_000 {
		f.remember(now, key(n), fact{expires: now.Add(ttl)})
		now = now.Add(each)
	}
	if most := int(ttl/each) + 1; len(f.known) > most || len(f.order) > most {
		t.Errorf("%d facts are known and %d are in order, of which %d have not expired", len(f.known), len(f.order), most)
	}
	if _, ok := f.recall(key(9_999), now); !ok {
		t.Errorf("the last fact is not known")
	}
	f.forget(key(9_999))
	f.remember(now, key(9_999), fact{expires: now.Add(ttl)}) // leaves its old place behind
	if _, ok := f.recall(key(9_500), now); !ok {
		t.Errorf("a fact that has not expired is not known")
	}
	f.remember(now.Add(2*ttl), key(1), fact{}) // even one that has expired when it comes
	if len(f.known) != 0 || len(f.order) != 0 {
		t.Errorf("%d facts are known and %d are in order, after the last has expired", len(f.known), len(f.order))
	}
}
