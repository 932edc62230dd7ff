package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A load is what all contenders are put under.
type load struct {
	bytes    int // that a call carries, and its answer
	inFlight int
	rounds   int
	calls    int // of each contender in each round
}

func (l load) String() string { return fmt.Sprintf("%s × %d", size(int64(l.bytes)), l.inFlight) }

// loads are short rounds, so that all contenders see the same machine, and many of them.
func loads(quick bool) []load {
	if quick {
		return []load{
			{64, 1, 20, 100}, {64, 16, 8, 1000}, {64, 64, 8, 1000}, {4 << 10, 1, 10, 100}, {4 << 10, 64, 6, 500},
			{1 << 20, 1, 6, 2}, {1 << 20, 64, 2, 64},
		}
	}
	return []load{
		{64, 1, 100, 100}, {64, 16, 40, 1000}, {64, 64, 40, 1000}, {4 << 10, 1, 60, 100}, {4 << 10, 64, 30, 500},
		{1 << 20, 1, 25, 4}, {1 << 20, 64, 5, 64}, {50 << 20, 1, 7, 1},
	}
}

// A hop is what a load costs.
type hop struct {
	Bytes    int                   `json:"bytes"`
	InFlight int                   `json:"inFlight"`
	By       map[string]*hopResult `json:"by"`
	order    []string
}

// hopResult is what a call under a load costs with one contender.
type hopResult struct {
	Microseconds    float64 `json:"microseconds"`           // a call takes, median of the rounds
	Ratio           float64 `json:"timesRelay"`             // to the relay's time in the same round, median
	CPUMicroseconds float64 `json:"cpuMicroseconds"`        // of the contender's own process
	CallsPerSecond  float64 `json:"callsPerSecond"`         // median
	Throughput      float64 `json:"throughputOfRelay"`      // inverse of the ratio
	ExtraCPU        float64 `json:"cpuMicrosecondsOfRelay"` // above the relay's
}

// race puts all contenders under a load, in turns. The first is what the others are compared with.
func race(list []contender, l load) (*hop, error) {
	clients := make([]*client, len(list))
	for i, c := range list {
		p, err := start(c)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		if err := p.fill(l.bytes, 1); err != nil {
			return nil, err
		}
		if _, err := p.calls(min(l.calls, 200), l.inFlight); err != nil { // warm
			return nil, err
		}
		clients[i] = p
	}
	times, ratios := make([][]float64, len(list)), make([][]float64, len(list))
	began := make([]time.Duration, len(list))
	for i, p := range clients {
		began[i] = cpu(p.cmd.Process.Pid)
	}
	for round := range l.rounds {
		took := make([]float64, len(list))
		for i := range clients {
			i = (i + round) % len(clients) // nobody always comes after the same one
			d, err := clients[i].calls(l.calls, l.inFlight)
			if err != nil {
				return nil, err
			}
			took[i] = float64(d) / 1e3 / float64(l.calls)
		}
		for i, t := range took {
			times[i] = append(times[i], t)
			ratios[i] = append(ratios[i], t/took[0])
		}
	}
	h := &hop{Bytes: l.bytes, InFlight: l.inFlight, By: map[string]*hopResult{}}
	for i, p := range clients {
		spent := float64(cpu(p.cmd.Process.Pid)-began[i]) / 1e3 / float64(l.rounds*l.calls)
		t, ratio := median(times[i]), median(ratios[i])
		h.order = append(h.order, list[i].name)
		h.By[list[i].name] = &hopResult{Microseconds: t, Ratio: ratio, CPUMicroseconds: spent, CallsPerSecond: 1e6 / t, Throughput: 1 / ratio}
	}
	for _, r := range h.By {
		r.ExtraCPU = r.CPUMicroseconds - h.By[list[0].name].CPUMicroseconds
	}
	return h, nil
}

// startResult is how long a contender takes from its start to the answer to the first message.
type startResult struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"milliseconds"` // median
	Least        float64 `json:"leastMilliseconds"`
}

func raceStarts(list []contender, rounds int) ([]startResult, error) {
	times := make([][]float64, len(list))
	for range rounds {
		for i, c := range list {
			began := time.Now()
			p, err := start(c)
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], float64(time.Since(began))/1e6)
			p.stop()
		}
	}
	var results []startResult
	for i, c := range list {
		results = append(results, startResult{c.name, median(times[i]), slices.Min(times[i])})
	}
	return results, nil
}

// memoryResult is what a contender's process holds.
type memoryResult struct {
	Name  string  `json:"name"`
	Idle  float64 `json:"idleMiB"`     // some seconds after its first call
	Peak  float64 `json:"peakMiB"`     // while an answer of 50 MiB passes
	After float64 `json:"afterBigMiB"` // five seconds after that
}

func weigh(list []contender, quick bool) ([]memoryResult, error) {
	const mib = 1 << 20
	var results []memoryResult
	for _, c := range list {
		p, err := start(c)
		if err != nil {
			return nil, err
		}
		defer p.stop()
		if err := p.fill(64, 1); err != nil {
			return nil, err
		}
		time.Sleep(3 * time.Second)
		idle, _ := resident(p.cmd.Process.Pid)
		r := memoryResult{Name: c.name, Idle: float64(idle) / mib}
		if !quick {
			if err := p.fill(50, 1<<20); err != nil {
				return nil, err
			}
			time.Sleep(5 * time.Second)
			after, most := resident(p.cmd.Process.Pid)
			r.Peak, r.After = float64(most)/mib, float64(after)/mib
		}
		results = append(results, r)
	}
	return results, nil
}

// allocationResult is what a call allocates in the engine, from frame to frame.
type allocationResult struct {
	Name        string `json:"name"`
	Allocations int    `json:"allocations"`
	Bytes       int    `json:"bytes"`
}

var benchmarkLine = regexp.MustCompile(`(?m)^BenchmarkCall/(\S+?)(?:-\d+)?\s.*?(\d+) B/op\s+(\d+) allocs/op`)

func allocations() ([]allocationResult, error) {
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkCall$", "-benchtime", "5000x", "./proxy/engine").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var results []allocationResult
	for _, m := range benchmarkLine.FindAllStringSubmatch(string(out), -1) {
		bytes, _ := strconv.Atoi(m[2])
		count, _ := strconv.Atoi(m[3])
		results = append(results, allocationResult{strings.ReplaceAll(m[1], "-", " "), count, bytes})
	}
	slices.SortFunc(results, func(a, b allocationResult) int { return strings.Compare(a.Name, b.Name) })
	return results, nil
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
