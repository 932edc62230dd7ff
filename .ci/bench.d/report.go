package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// report is all that is measured.
type report struct {
	System      string             `json:"system"`
	Processors  int                `json:"processors"`
	Go          string             `json:"go"`
	Hops        []*hop             `json:"hops"`
	Starts      []startResult      `json:"starts"`
	Memory      []memoryResult     `json:"memory"`
	Allocations []allocationResult `json:"allocations"`
	Bars        []bar              `json:"bars"`
	Seconds     float64            `json:"seconds"`
}

func (r *report) machine() {
	r.System, r.Processors, r.Go = runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), runtime.Version()
	model := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, _ := strings.Cut(string(text), "model name\t: ")
		name, _, _ := strings.Cut(after, "\n")
		if name != "" {
			model = ", " + name
			r.System += model
		}
	}
	fmt.Printf("%s/%s, %d processors%s, %s\n\n", runtime.GOOS, runtime.GOARCH, r.Processors, model, r.Go)
}

func (r *report) write(file string) error {
	fmt.Printf("\n%.0f s\n", r.Seconds)
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func (h *hop) print(first bool) {
	if first {
		fmt.Printf("%-14s", "")
		for _, name := range h.order {
			fmt.Printf("  %-26s", name)
		}
		fmt.Println()
	}
	fmt.Printf("%-14s", load{bytes: h.Bytes, inFlight: h.InFlight})
	for _, name := range h.order {
		r := h.By[name]
		fmt.Printf("  %-26s", fmt.Sprintf("%.2f  %s, cpu %s", r.Ratio, microseconds(r.Microseconds), microseconds(r.CPUMicroseconds)))
	}
	fmt.Println()
}

func printStarts(list []startResult) {
	fmt.Print("\nfrom start to the first answer\n\n")
	for _, s := range list {
		fmt.Printf("%-16s %6.1f ms (least %.1f)\n", s.Name, s.Milliseconds, s.Least)
	}
}

func printMemory(list []memoryResult) {
	fmt.Print("\nmemory in use: idle; most while an answer of 50 MiB passes; 5 s later\n\n")
	for _, m := range list {
		fmt.Printf("%-16s %6.1f MiB  %6s  %6s\n", m.Name, m.Idle, orDash(m.Peak), orDash(m.After))
	}
}

func printAllocations(list []allocationResult) {
	fmt.Print("\nin the engine, for a call and its answer\n\n")
	for _, a := range list {
		fmt.Printf("%-16s %3d allocations, %d bytes\n", a.Name, a.Allocations, a.Bytes)
	}
}

func orDash(mib float64) string {
	if mib == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", mib)
}

func microseconds(us float64) string {
	switch {
	case us < 100:
		return fmt.Sprintf("%.1f µs", us)
	case us < 10_000:
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.0f ms", us/1e3)
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

// A bar is what should hold.
type bar struct {
	What  string  `json:"what"`
	Is    float64 `json:"is"`
	Limit float64 `json:"limit"`
	Least bool    `json:"least"` // the limit is the least that it should be, not the most
	Holds bool    `json:"holds"`
}

// bars compares what was measured with what should hold; what was not measured is left out.
func bars(r *report) (list []bar) {
	add := func(what string, is, limit float64, least bool) {
		if is != 0 {
			list = append(list, bar{what, is, limit, least, is == limit || (is > limit) == least})
		}
	}
	for _, h := range r.Hops {
		none, four := h.By["no policy"], h.By["four decisions"]
		switch {
		case h.Bytes != 64:
		case h.InFlight == 1:
			add("a call with four decisions, × relay", four.Ratio, 1.15, false)
			add("its CPU above the relay's, µs", four.ExtraCPU, 10, false)
		default:
			add(fmt.Sprintf("throughput without policy, %d in flight, × relay", h.InFlight), none.Throughput, 0.7, true)
			add(fmt.Sprintf("throughput with four decisions, %d in flight, × relay", h.InFlight), four.Throughput, 0.5, true)
		}
	}
	for _, s := range r.Starts {
		switch s.Name {
		case "four decisions":
			add("start to first answer with ten rules, ms", s.Milliseconds, 25, false)
		case "1000 rules":
			add("start to first answer with 1000 rules, ms", s.Milliseconds, 250, false)
		}
	}
	for _, m := range r.Memory {
		if m.Name == "four decisions" {
			add("memory idle, MiB", m.Idle, 30, false)
			add("memory while 50 MiB pass, MiB", m.Peak, 130, false)
			add("memory 5 s after 50 MiB, MiB", m.After, 55, false)
		}
	}
	for _, a := range r.Allocations {
		if a.Name == "four decisions" {
			add("allocations of a call with four decisions", float64(a.Allocations), 40, false)
		}
	}
	return list
}

func printBars(list []bar) {
	fmt.Print("\nwhat should hold\n\n")
	for _, b := range list {
		sign, verdict := "≤", ""
		if b.Least {
			sign = "≥"
		}
		if !b.Holds {
			verdict = "  MISSED"
		}
		fmt.Printf("%-56s %8.2f %s %g%s\n", b.What, b.Is, sign, b.Limit, verdict)
	}
}
