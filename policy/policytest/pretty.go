package policytest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/policy"
)

// Style says how a report for people looks.
type Style struct {
	Color   bool // a terminal reads it
	Verbose bool // tests that passed are listed too
}

// WritePretty writes the report for people: each failure with its place, want and got side by side, the timeline of the row,
// and the values of the expressions that decided; at the end how many passed. Of a file that could not be used it says no more than that:
// [Fault] has the rest.
func (r *Report) WritePretty(w io.Writer, style Style) error {
	p := &pretty{w: w, style: style}
	for _, f := range r.Files {
		for _, result := range f.Results {
			p.result(f.Suite, result)
		}
	}
	for _, result := range r.faulty() {
		p.printf("%s  %s\n      %s\n\n", p.paint("1;31", "FAIL"), p.paint("1", result.File), "the file cannot be used")
	}
	passed, failed := r.Count()
	verdict := p.paint("32", "PASS")
	if failed > 0 {
		verdict = p.paint("1;31", "FAIL")
	}
	p.printf("%s  %s in %s", verdict, plural(passed+failed-len(r.Faults), "test"), plural(len(r.Files), "file"))
	if failed > len(r.Faults) {
		p.printf(", %d failed", failed-len(r.Faults))
	}
	if len(r.Faults) > 0 {
		p.printf(", %s not usable", plural(len(r.Faults), "file"))
	}
	p.printf("\n")
	return p.err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type pretty struct {
	w        io.Writer
	style    Style
	commands bool // lines that are commands of a workflow are meant to be
	err      error
}

func (p *pretty) printf(format string, args ...any) {
	if p.err != nil {
		return
	}
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = harmless(s)
		}
	}
	text := fmt.Sprintf(format, args...)
	if !p.commands {
		text = inert(text)
	}
	_, p.err = io.WriteString(p.w, text)
}

func (p *pretty) paint(code, s string) ready {
	s = harmless(s)
	if !p.style.Color {
		return ready(s)
	}
	return ready("\x1b[" + code + "m" + s + "\x1b[0m")
}

func (p *pretty) result(s *Suite, r *Result) {
	if r.Passed() {
		if p.style.Verbose {
			p.printf("%s  %s: %s\n", p.paint("32", "ok  "), r.File, r.Name())
		}
		return
	}
	p.printf("%s  %s\n      %s\n\n", p.paint("1;31", "FAIL"), p.paint("1", r.Name()), r.Pos)
	p.failures(r)
	p.timeline(r)
	p.reasons(r)
	p.printf("\n")
}

// failures shows want and got side by side.
func (p *pretty) failures(r *Result) {
	key, want := len("expected"), 0
	for _, f := range r.Failures {
		key = max(key, utf8.RuneCountInString(f.Key))
		want = max(want, utf8.RuneCountInString(f.Want))
	}
	want = min(want, 48)
	for _, f := range r.Failures {
		where := p.paint("2", f.Pos.String())
		if f.Key == "" {
			p.printf("  %s\n      %s\n", where, harmlessLines(f.Text, "      "))
			if f.Example != "" {
				p.printf("\n%s\n", harmlessLines(f.Example, ""))
			}
			continue
		}
		have := f.Got
		if have == "" {
			have = "nothing"
		}
		whose := ""
		if calls := len(r.Steps[f.Step].Calls); calls > 1 && f.Key != ofStep {
			whose = fmt.Sprintf(" (call %d of %d)", f.Call+1, calls)
		}
		p.printf("  %s\n      %-*s  want %s  got %s%s\n", where, key, f.Key, p.paint("32", pad(f.Want, want)), p.paint("31", have), whose)
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// timeline shows what happened, up to the last step that failed: those that failed in full, the others on a line.
func (p *pretty) timeline(r *Result) {
	if len(r.Steps) == 0 { // the file could not be run
		return
	}
	failed := map[int]bool{}
	last := 0
	for _, f := range r.Failures {
		failed[f.Step] = true
		last = max(last, f.Step)
	}
	p.printf("\n  %s\n", p.paint("1", "what happened"))
	width := 0
	for _, e := range r.Events {
		if failed[e.Step] {
			width = max(width, len(moment(e.At)))
		}
	}
	for i, step := range r.Steps[:last+1] {
		if len(r.Steps) > 1 {
			p.printf("    %s\n", p.paint("2", fmt.Sprintf("step %d, line %d: %s", i+1, step.Step.Pos.Line, step.inShort())))
		}
		for _, e := range r.Events {
			if e.Step == i && failed[i] {
				p.printf("    %*s  %s\n", width, moment(e.At), clip(e.Text, 200))
			}
		}
	}
}

// moment is a time since the beginning, to the millisecond.
func moment(d time.Duration) string { return short(d.Round(time.Millisecond)) }

// inShort is what a step was and came to, on one line.
func (r *StepResult) inShort() string {
	step := r.Step
	switch {
	case step.Restart != "":
		return "restart of the " + step.Restart
	case step.Notify != nil:
		return "the server says " + step.Notify.Method
	case step.Call == nil:
		return short(step.Advance) + " pass"
	}
	var ends []string
	for _, c := range r.Calls {
		ends = append(ends, c.Status)
	}
	return step.Call.Tool + ": " + strings.Join(ends, ", ")
}

// reasons shows the decisions behind the failures, each once.
func (p *pretty) reasons(r *Result) {
	shown := map[string]bool{}
	last := "" // whose reasons were shown last, if several calls have some
	for _, f := range r.Failures {
		for _, d := range f.Why {
			if d.Rule == "" && len(d.Considered) == 0 {
				continue
			}
			id := fmt.Sprint(f.Step, f.Call, d.Decision)
			if shown[id] {
				continue
			}
			if len(shown) == 0 {
				p.printf("\n  %s\n", p.paint("1", "why"))
			}
			shown[id] = true
			if whose := r.whose(f); r.several() && whose != last {
				p.printf("    %s\n", p.paint("2", whose))
				last = whose
			}
			p.decision(d)
		}
	}
}

// several reports whether more than one call failed.
func (r *Result) several() bool {
	return slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Step != r.Failures[0].Step || f.Call != r.Failures[0].Call })
}

// whose names the call of a failure.
func (r *Result) whose(f Failure) string {
	var parts []string
	step := r.Steps[f.Step]
	if len(r.Steps) > 1 {
		parts = append(parts, fmt.Sprintf("step %d, line %d", f.Step+1, step.Step.Pos.Line))
	}
	if len(step.Calls) > 1 {
		parts = append(parts, fmt.Sprintf("call %d of %d", f.Call+1, len(step.Calls)))
	}
	return strings.Join(parts, ", ")
}

func (p *pretty) decision(d Decision) {
	who := "no rule decided"
	if d.Rule != "" {
		who = "decided by rule " + d.Rule
	}
	value := ""
	if d.Value != "" {
		value = " = " + d.Value
	}
	p.printf("    %s%s, %s\n", p.paint("1", string(d.Decision)), value, who)
	for _, c := range d.Considered {
		if c.Fate == policy.OtherTool || c.Fate == policy.Took && !tells(&c) {
			continue
		}
		var place ready
		if c.Pos.Line > 0 {
			place = p.paint("2", " ("+c.Pos.String()+")")
		}
		p.printf("      %s: %s%s\n", c.Rule, c.Fate, place)
		if c.When != nil {
			p.expression("when", c.When)
		}
		for _, v := range c.Values {
			p.expression(string(d.Decision), v)
		}
	}
}

// tells reports whether a rule has expressions that depend on the call.
func tells(c *policy.Considered) bool {
	return c.When != nil || slices.ContainsFunc(c.Values, func(v *policy.Evaluated) bool { return len(v.Parts) > 0 })
}

// expression shows an expression and the values of its parts.
func (p *pretty) expression(label string, e *policy.Evaluated) {
	if len(e.Parts) == 0 {
		return // it is always the same
	}
	value := e.Value
	if e.Err != "" {
		value = "failed: " + e.Err
	}
	p.printf("        %s: %s  %s\n", label, strings.Join(strings.Fields(e.Expr.Text), " "), p.paint("36", "→ "+value))
	parts := slices.DeleteFunc(slices.Clone(e.Parts), func(part policy.Part) bool { return part.Whole })
	width := 0
	for _, part := range parts {
		width = max(width, utf8.RuneCountInString(part.Text))
	}
	width = min(width, 60)
	seen := map[string]bool{}
	for _, part := range parts {
		value := part.Value
		if value == "" {
			if !part.Boolean {
				continue
			}
			value = "(not reached)"
		}
		line := pad(part.Text, width) + "  " + value
		if !seen[line] {
			seen[line] = true
			p.printf("          %s\n", line)
		}
	}
}
