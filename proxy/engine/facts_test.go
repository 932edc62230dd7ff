package engine

import (
	"encoding/binary"
	"testing"
	"time"
)

func TestKeysOfWhichOnlyTheFactIsKnownAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := func(i int) (d digest) {
		binary.BigEndian.PutUint64(d[:], uint64(i))
		return d
	}
	var f facts
	const n = 3 * maxFacts
	for i := range n {
		f.remember(now, key(i), fact{expires: now.Add(time.Hour)})
		f.remember(now, key(i/2), fact{expires: now.Add(time.Hour), ambiguous: true}) // some are remembered anew
		if i%3 == 0 {
			f.forget(key(i))
		}
	}
	if len(f.known) > maxFacts || len(f.order) > 2*maxFacts {
		t.Errorf("%d keys are known, %d listed", len(f.known), len(f.order))
	}
	if _, ok := f.recall(key(n-1), now); !ok {
		t.Error("the latest key is forgotten")
	}
	if _, ok := f.recall(key(n-1), now.Add(time.Hour)); ok {
		t.Error("a key is remembered after its time")
	}
	if _, ok := f.recall(key(0), now); ok {
		t.Error("the oldest key is remembered")
	}
}

// A fact that lasts long holds up the places of all that are remembered anew behind it, and not without end.
func TestKeysThatAreRememberedAnewAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var f facts
	f.remember(now, digest{1}, fact{expires: now.Add(time.Hour)})
	for range 3 * maxFacts {
		f.remember(now, digest{2}, fact{expires: now.Add(time.Second)})
	}
	if len(f.known) > 2 || len(f.order) > 2*maxFacts {
		t.Errorf("%d keys are known, %d listed", len(f.known), len(f.order))
	}
}
