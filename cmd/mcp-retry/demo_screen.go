package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// playedScene is a scene and what it came to on both sides.
type playedScene struct {
	scene         demoScene
	without, with facts
}

// columnWidth is how many characters the left column takes.
const columnWidth = 42

// screen prints the demo: two columns, without and with.
type screen struct {
	out   io.Writer
	color bool
	err   error // of the first write that failed
}

// Colours and their codes.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s *screen) paint(code, text string) string {
	if !s.color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s *screen) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = fmt.Fprintf(s.out, format+"\n", args...)
	}
}

func (s *screen) head() {
	s.line("  %s   One flaky MCP server, the same calls twice. Every count and time is measured.", s.paint(bold, "mcp-retry demo"))
	s.line("")
	s.row(line{{bold, "WITHOUT"}}, line{{bold, "WITH MCP-RETRY"}})
}

// scene prints a scene.
func (s *screen) scene(p playedScene) {
	s.line("")
	s.line("  %s", s.paint(cyan, p.scene.title))
	left, right := p.without.lines(p.scene.tool), p.with.lines(p.scene.tool)
	for n := range max(len(left), len(right)) {
		var l, r line
		if n < len(left) {
			l = left[n]
		}
		if n < len(right) {
			r = right[n]
		}
		s.row(l, r)
	}
}

func (s *screen) foot(took time.Duration) {
	s.line("")
	s.line("  %s", s.paint(cyan, "The policy that made the difference, all of it:"))
	for _, text := range shownConfig() {
		s.line("%s", s.paint(dim, text))
	}
	s.line("")
	s.line("  Counts are from the server's own ledger, attempts from the log of mcp-retry. It took %.1fs.", took.Seconds())
	s.line("  Next: %s puts it in front of a server of yours.", s.paint(bold, "mcp-retry wrap -- COMMAND"))
}

// line is a line of a column: pieces of text with their colours.
type line []struct{ color, text string }

// row prints a line of both columns.
func (s *screen) row(left, right line) {
	pad := columnWidth - left.width()
	s.line("%s", strings.TrimRight("    "+s.render(left)+strings.Repeat(" ", max(pad, 1))+s.render(right), " "))
}

func (l line) width() int {
	n := 0
	for _, piece := range l {
		n += utf8.RuneCountInString(piece.text)
	}
	return n
}

func (s *screen) render(l line) string {
	var b strings.Builder
	for _, piece := range l {
		b.WriteString(s.paint(piece.color, piece.text))
	}
	return b.String()
}

// lines are what a column says of a scene.
func (f facts) lines(tool string) []line {
	switch tool {
	case "get_forecast":
		return []line{f.calls[0].sentence(""), note(f.attemptsNote())}
	case "charge_card":
		return []line{
			f.calls[0].sentence(""), f.calls[1].sentence("asked again: "),
			note("charged " + times(f.executions) + f.joined()),
		}
	case "get_rates":
		return []line{f.marksWithTimes(), note("the server worked " + times(f.executions) + f.cached())}
	default:
		lines := []line{f.marks(), note(f.outageNote())}
		if states := f.breakerStates(); states != "" {
			lines = append(lines, note("breaker: "+states))
		}
		return lines
	}
}

func note(text string) line { return line{{"", "  " + text}} }

// mark is a call in one character, with its colour.
func (c called) mark() (color, text string) {
	switch {
	case c.err == nil:
		return green, "✓"
	case c.refused:
		return yellow, "⊘"
	default:
		return red, "✗"
	}
}

// sentence is a call in words.
func (c called) sentence(lead string) line {
	color, mark := c.mark()
	words := "answered in " + span(c.took)
	switch {
	case c.lost():
		words = "no answer in " + span(c.took)
	case c.err != nil:
		words = c.err.Error()
	}
	return line{{color, mark}, {"", " " + lead + words}}
}

// marks are all calls, one character each, the last apart.
func (f facts) marks() line {
	var l line
	for n, c := range f.calls {
		color, mark := c.mark()
		if n == len(f.calls)-1 {
			mark = "  " + mark
		}
		l = append(l, struct{ color, text string }{color, mark + " "})
	}
	return l
}

func (f facts) marksWithTimes() line {
	var l line
	for _, c := range f.calls {
		color, mark := c.mark()
		l = append(l, struct{ color, text string }{color, mark}, struct{ color, text string }{"", " " + span(c.took) + "  "})
	}
	return l
}

// attemptsNote says how many attempts there were and, where a log says so, what they came to.
func (f facts) attemptsNote() string {
	text := fmt.Sprintf("%d attempts", f.attempts)
	if f.attempts == 1 {
		text = "1 attempt"
	}
	var ends []string
	for _, record := range f.log {
		if record.Event == "attempt_end" {
			ends = append(ends, record.describe())
		}
	}
	if len(ends) > 0 {
		text += ": " + strings.Join(ends, ", ")
	}
	return text
}

// joined says how the proxy answered a repeated call without the server.
func (f facts) joined() string {
	for _, record := range f.log {
		switch record.Dedup {
		case "joined":
			return ": the repeat joined the first call"
		case "replayed":
			return ": the repeat got the first result"
		}
	}
	return ""
}

// cached says how often the cache answered.
func (f facts) cached() string {
	hits := 0
	for _, record := range f.log {
		if record.Cache == "hit" {
			hits++
		}
	}
	if hits == 0 {
		return ""
	}
	return fmt.Sprintf(", the cache answered %s", times(hits))
}

// outageNote says what became of the calls while the backend was down.
func (f facts) outageNote() string {
	var failed, refused int
	var waited, quick time.Duration
	for _, c := range f.calls {
		switch {
		case c.refused:
			refused++
			quick += c.took
		case c.err != nil:
			failed++
			waited += c.took
		}
	}
	text := fmt.Sprintf("%d calls waited %s for a dead backend", failed, span(waited))
	if refused > 0 {
		text = fmt.Sprintf("%d calls waited %s, %d were refused in %s", failed, span(waited), refused, span(quick))
	}
	return text
}

// breakerStates are the states that a breaker went through.
func (f facts) breakerStates() string {
	var states []string
	for _, record := range f.log {
		if record.Event != "circuit_breaker_state_change" {
			continue
		}
		if len(states) == 0 {
			states = append(states, record.From)
		}
		states = append(states, record.To)
	}
	return strings.ReplaceAll(strings.Join(states, " → "), "_", "-")
}

// times is a count as an adverb.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// span is a duration with as many digits as matter.
func span(d time.Duration) string {
	switch ms := float64(d.Microseconds()) / 1000; {
	case ms < 1:
		return fmt.Sprintf("%dµs", d.Microseconds())
	case ms < 10:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0fms", ms)
	default:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
}
