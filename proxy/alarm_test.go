package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAlarmRingsAtTheEarliestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		rang := make(chan time.Duration, 10)
		a := &alarm{ring: func() { rang <- time.Since(start) }}
		set := func(d time.Duration) { a.set(time.Now(), start.Add(d)) }
		set(30 * time.Second)
		set(40 * time.Second) // not earlier: nothing to do
		set(10 * time.Second)
		time.Sleep(20 * time.Second)
		set(25 * time.Second)
		time.Sleep(20 * time.Second)
		set(35 * time.Second) // in the past
		time.Sleep(time.Second)
		for _, want := range []time.Duration{10 * time.Second, 25 * time.Second, 40 * time.Second} {
			if got := <-rang; got != want {
				t.Errorf("rang at %v, want %v", got, want)
			}
		}
		if len(rang) > 0 {
			t.Errorf("rang again at %v", <-rang)
		}
	})
}

func TestAlarmDoesNotRingAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &alarm{ring: func() { t.Error("rang") }}
		a.set(time.Now(), time.Now().Add(time.Second))
		a.stop()
		a.set(time.Now(), time.Now().Add(time.Second))
		time.Sleep(time.Minute)
	})
}
