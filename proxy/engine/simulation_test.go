package engine_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

var (
	simSeeds = flag.Int("seeds", 2000, "histories that the simulation runs")
	simFast  = flag.Bool("fast", false, "the simulation stops at the first failure and does not shrink it")
	simSeed  = flag.Uint64("seed", 0, "the one history that the simulation runs and shows; 0 = as many as -seeds says")
)

// A history is all that happens to an engine: moves of the client, the server and the clock. A move names what it is about by
// small numbers, which are taken modulo what there is when it is made, so that a history with moves left out is one too.
type history struct {
	seed  uint64 // of the engine's randomness
	setup int    // which config
	era   int    // 0 = without a handshake
	end   int    // how it ends
	moves []move
}

// move is one thing that happens.
type move struct {
	what    moveKind
	a, b, c uint16
}

type moveKind uint8

const (
	moveCall moveKind = iota
	movePass
	moveCancel
	moveClientAnswer
	moveBadFrame
	moveAnswer
	moveEffect
	moveQuestion
	moveServerCancel
	moveProgress
	moveNoise
	moveListChanged
	moveDie
	moveUp
	moveSpawnFails
	moveMood
	moveWait
	moveEOF
	moveReload
	moveClog
	moveUnclog
	moveGreet
	moveBatch
	moveKinds
)

func (k moveKind) String() string {
	return [...]string{"call", "pass", "cancel", "client answers", "bad frame", "answer", "effect", "question", "server cancels", "progress", "noise",
		"list changed", "die", "up", "spawn fails", "mood", "wait", "EOF", "reload",
		"clog", "unclog", "greet", "batch"}[k]
}

// weights say how often each kind of move is made.
var weights = [moveKinds]int{
	moveCall: 60, movePass: 8, moveCancel: 10, moveClientAnswer: 8, moveBadFrame: 1, moveAnswer: 70, moveEffect: 10, moveQuestion: 4, moveServerCancel: 1,
	moveProgress: 16, moveNoise: 2, moveListChanged: 2, moveDie: 6, moveUp: 6, moveSpawnFails: 1, moveMood: 3, moveWait: 60, moveReload: 2, moveClog: 3, moveUnclog: 6, moveGreet: 1, moveBatch: 8,
}

// newHistory makes up the history of a seed.
func newHistory(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for _, w := range weights {
		total += w
	}
	h := history{seed: seed, setup: r.IntN(len(setups)), era: r.IntN(5), end: r.IntN(4)}
	for range 20 + r.IntN(380) {
		pick, kind := r.IntN(total), moveKind(0)
		for pick >= weights[kind] {
			pick -= weights[kind]
			kind++
		}
		h.moves = append(h.moves, move{kind, uint16(r.Uint32()), uint16(r.Uint32()), uint16(r.Uint32())})
	}
	if h.end == 3 {
		h.moves = append(h.moves, move{what: moveEOF})
	}
	return h
}

// play runs a history to its end and returns the first invariant that it breaks.
func (h history) play(trace *strings.Builder) (err error) {
	s := newSim(h, trace)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	s.begin(h.seed%8 != 1)
	for i := 0; i < len(h.moves) && s.err == nil && !s.finished; i++ {
		s.move(h.moves[i])
	}
	if s.err == nil {
		s.conclude(h.end)
	}
	return s.err
}

// shrink leaves out moves as long as the history still fails.
func (h history) shrink() history {
	for size := len(h.moves) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(h.moves); {
			less := h
			less.moves = append(append([]move{}, h.moves[:from]...), h.moves[from+size:]...)
			if less.play(nil) != nil {
				h = less
			} else {
				from += size
			}
		}
	}
	return h
}

// TestSimulation runs made-up histories against an engine and checks after every step that what may never happen has not. A
// failing history is shrunk and shown.
//
//	go test ./proxy/engine -run Simulation -seeds 100000
//	go test ./proxy/engine -run Simulation -seed 4711
func TestSimulation(t *testing.T) {
	first, last := uint64(1), uint64(*simSeeds)
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	if testing.Short() {
		last = min(last, first+200)
	}
	failures := 0
	for seed := first; seed <= last; seed++ {
		h := newHistory(seed)
		if h.play(nil) == nil {
			continue
		}
		if !*simFast {
			h = h.shrink()
		}
		var trace strings.Builder
		err := h.play(&trace)
		t.Errorf("seed %d, shrunk to %d moves:\n%s%v", seed, len(h.moves), trace.String(), err)
		if failures++; failures == 3 || *simFast {
			t.Fatal("more seeds may fail")
		}
	}
	if *simSeed != 0 {
		var trace strings.Builder
		newHistory(*simSeed).play(&trace)
		fmt.Fprintln(os.Stderr, trace.String())
	}
}

// The same seed and the same events give the same actions: a history is reproduced by its events alone.
func TestSimulationIsReproducible(t *testing.T) {
	for seed := uint64(1); seed <= 100; seed++ {
		var a, b strings.Builder
		newHistory(seed).play(&a)
		newHistory(seed).play(&b)
		if a.String() != b.String() {
			t.Fatalf("seed %d went\n%s\nand then\n%s", seed, a.String(), b.String())
		}
	}
}
