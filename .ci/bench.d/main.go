// Command bench measures what mcp-retry costs: whole processes, in turns with a relay that copies bytes between two pipes, and
// the medians of the ratios. Absolute times say more about the machine than about either.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "answer":
		answerAll()
		return
	case len(os.Args) == 2 && os.Args[1] == "relay":
		relay()
		return
	}
	quick := flag.Bool("quick", false, "fewer rounds, and no 50 MiB")
	command := flag.String("command", "mcp-retry", "the mcp-retry to measure")
	output := flag.String("json", "", "`FILE` to write the numbers to")
	flag.Parse()
	if err := run(*command, *output, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(command, output string, quick bool) error {
	command, err := filepath.Abs(command)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	contenders, err := newContenders(command, dir)
	if err != nil {
		return err
	}
	began := time.Now()
	var r report
	r.machine()
	fmt.Print("payload and calls in flight, as multiples of the bare relay's time\n\n")
	for _, load := range loads(quick) {
		row, err := race(contenders.hops(), load)
		if err != nil {
			return fmt.Errorf("%s: %w", load, err)
		}
		r.Hops = append(r.Hops, row)
		row.print(len(r.Hops) == 1)
	}
	if r.Starts, err = raceStarts(contenders.starts(), rounds(quick, 8, 25)); err != nil {
		return err
	}
	printStarts(r.Starts)
	if r.Memory, err = weigh(contenders.hops(), quick); err != nil {
		return err
	}
	printMemory(r.Memory)
	if r.Allocations, err = allocations(); err != nil {
		return err
	}
	printAllocations(r.Allocations)
	r.Bars = bars(&r)
	printBars(r.Bars)
	r.Seconds = time.Since(began).Seconds()
	return r.write(output)
}

func rounds(quick bool, few, many int) int {
	if quick {
		return few
	}
	return many
}
