package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// diffContext is how many lines around a change are shown.
const diffContext = 3

// writeDiff prints the difference of two texts in the unified format, as patch takes it.
func writeDiff(w io.Writer, file string, before, after []byte) {
	steps := diffLines(splitLines(before), splitLines(after))
	fmt.Fprintf(w, "--- %s\n+++ %s\n", file, file)
	oldLine, newLine := 1, 1 // of the step at from
	for from := 0; from < len(steps); {
		if steps[from].sign == ' ' && !changesWithin(steps[from:], diffContext) {
			from, oldLine, newLine = from+1, oldLine+1, newLine+1
			continue
		}
		end := hunkEnd(steps, from)
		removed, added := 0, 0
		for _, s := range steps[from:end] {
			removed += btoi(s.sign != '+')
			added += btoi(s.sign != '-')
		}
		fmt.Fprintf(w, "@@ -%s +%s @@\n", hunkRange(oldLine, removed), hunkRange(newLine, added))
		for _, s := range steps[from:end] {
			writeDiffLine(w, s)
		}
		from, oldLine, newLine = end, oldLine+removed, newLine+added
	}
}

// changesWithin reports whether a change follows after at most n lines that are the same.
func changesWithin(steps []diffStep, n int) bool {
	return slices.ContainsFunc(steps[:min(n+1, len(steps))], func(s diffStep) bool { return s.sign != ' ' })
}

// hunkEnd is the end of the hunk that begins at from: it takes in what is near enough to share its lines of context.
func hunkEnd(steps []diffStep, from int) int {
	end := from
	for i := from; i < len(steps) && i <= end+2*diffContext; i++ {
		if steps[i].sign != ' ' {
			end = i + 1
		}
	}
	return min(end+diffContext, len(steps))
}

// hunkRange is where a side of a hunk begins and how many lines it has; one without lines names the line before.
func hunkRange(line, n int) string {
	if n == 0 {
		line--
	}
	return fmt.Sprintf("%d,%d", line, n)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func writeDiffLine(w io.Writer, s diffStep) {
	text, ended := bytes.CutSuffix(s.line, []byte("\n"))
	fmt.Fprintf(w, "%c%s\n", s.sign, text)
	if !ended {
		fmt.Fprintln(w, `\ No newline at end of file`)
	}
}

// splitLines are the lines of a text with their ends.
func splitLines(text []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}

// diffStep is a line that stays (' '), goes ('-') or comes ('+').
type diffStep struct {
	sign byte
	line []byte
}

// maxDiffEdits bounds the search for the least difference; beyond it all goes and all comes.
const maxDiffEdits = 1000

// diffLines makes the new lines of the old ones in the least number of steps (E. Myers, "An O(ND) Difference Algorithm and Its
// Variations", 1986). Of changes side by side, what goes stands before what comes.
func diffLines(old, now [][]byte) []diffStep {
	reach := map[int]int{1: 0} // by diagonal, how far into old it leads
	var history []map[int]int
	for edits := 0; edits <= maxDiffEdits; edits++ {
		history = append(history, copied(reach, edits))
		for k := -edits; k <= edits; k += 2 {
			x := reach[k-1] + 1
			if k == -edits || k != edits && reach[k-1] < reach[k+1] {
				x = reach[k+1]
			}
			for x < len(old) && x-k < len(now) && bytes.Equal(old[x], now[x-k]) {
				x++
			}
			reach[k] = x
			if x >= len(old) && x-k >= len(now) {
				return tidied(walkBack(old, now, history))
			}
		}
	}
	steps := make([]diffStep, 0, len(old)+len(now))
	for _, line := range old {
		steps = append(steps, diffStep{'-', line})
	}
	for _, line := range now {
		steps = append(steps, diffStep{'+', line})
	}
	return steps
}

// copied are the diagonals that a number of edits can have come from.
func copied(reach map[int]int, edits int) map[int]int {
	out := make(map[int]int, 2*edits+3)
	for k := -edits - 1; k <= edits+1; k++ {
		if x, ok := reach[k]; ok {
			out[k] = x
		}
	}
	return out
}

// walkBack follows the search from the end to the beginning.
func walkBack(old, now [][]byte, history []map[int]int) []diffStep {
	var steps []diffStep
	x, y := len(old), len(now)
	for edits := len(history) - 1; edits >= 0; edits-- {
		reach, k := history[edits], x-y
		from := k - 1
		if k == -edits || k != edits && reach[k-1] < reach[k+1] {
			from = k + 1
		}
		fromX := reach[from]
		fromY := fromX - from
		for x > fromX && y > fromY && x > 0 && y > 0 {
			x, y = x-1, y-1
			steps = append(steps, diffStep{' ', old[x]})
		}
		switch {
		case edits == 0:
		case from == k+1:
			y--
			steps = append(steps, diffStep{'+', now[y]})
		default:
			x--
			steps = append(steps, diffStep{'-', old[x]})
		}
	}
	slices.Reverse(steps)
	return steps
}

// tidied puts, of changes side by side, what goes before what comes.
func tidied(steps []diffStep) []diffStep {
	for from := 0; from < len(steps); {
		end := from
		for end < len(steps) && steps[end].sign != ' ' {
			end++
		}
		slices.SortStableFunc(steps[from:end], func(a, b diffStep) int { return int(b.sign) - int(a.sign) })
		from = end + 1
	}
	return steps
}
