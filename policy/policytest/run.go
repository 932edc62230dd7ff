package policytest

import (
	"fmt"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Result is what a row of a test came to.
type Result struct {
	File     string
	Test     string // name of the test
	Row      string // of a table: the name of the row, or its number from 1; "" = the test has no table
	Pos      schema.Pos
	Failures []Failure // empty = it passed
	Steps    []StepResult
	Events   []Event // the timeline, if the row failed
}

// Name is the name of the test, and of the row if there are several.
func (r *Result) Name() string {
	if r.Row == "" {
		return r.Test
	}
	return r.Test + " / " + r.Row
}

// Passed reports whether all expectations were met.
func (r *Result) Passed() bool { return len(r.Failures) == 0 }

// StepResult is what a step came to.
type StepResult struct {
	Step       *schema.TestStep
	Calls      []*Call // empty = the step is no call
	Executions int     // how often the server really did it
}

// Failure is an expectation that was not met.
type Failure struct {
	Pos  schema.Pos
	Step int    // from 0
	Call int    // from 0: which of the calls of the step
	Key  string // of the expectation, "attempts"; or "" for what is never expected
	Want string
	Got  string     // "" = nothing
	Text string     // of what is never expected, instead of Want and Got
	Why  []Decision // that led to it, if they are known

	Example string // a test that shows it, if exploring has found it: see [Violation]
}

// runRow plays a row. With trace, decisions are kept with their reasons.
func (s *Suite) runRow(t *schema.Test, index int, trace bool, coverage *Coverage) *Result {
	row := t.Rows[index]
	r := &Result{File: s.File.File, Test: t.Name, Row: rowLabel(t, index), Pos: row.Pos}
	w := &world{suite: s, start: s.File.Clock, now: s.File.Clock, trace: trace, coverage: coverage}
	for i, step := range row.Steps {
		from := len(w.events)
		result := w.play(step)
		for j := range w.events[from:] {
			w.events[from+j].Step = i
		}
		r.Steps = append(r.Steps, result)
		r.Failures = append(r.Failures, w.judge(i, &result)...)
	}
	r.Events = w.events
	return r
}

// rowLabel names a row among those of its test; "" = it is the only one.
func rowLabel(t *schema.Test, index int) string {
	switch row := t.Rows[index]; {
	case row.Name != "":
		return row.Name
	case len(t.Rows) > 1:
		return fmt.Sprintf("row %d", index+1)
	}
	return ""
}

// play carries out a step.
func (w *world) play(step *schema.TestStep) StepResult {
	result := StepResult{Step: step}
	switch {
	case step.Call != nil:
		w.playCalls(step, &result)
	case step.Restart == "server":
		for _, s := range w.sessions {
			w.note("the server is ended")
			s.server.die("ended by the test")
		}
		w.settle()
	case step.Restart == "proxy":
		w.note("mcp-retry starts again")
		w.sessions, w.coming = nil, nil
	case step.Notify != nil:
		for _, s := range w.started() {
			s.server.notify(step.Notify)
		}
		w.settle()
	default:
		w.note("%s pass", short(step.Advance))
		w.until(w.now.Add(step.Advance))
	}
	return result
}

// started returns the sessions, with that of an only server even if nothing has been called yet.
func (w *world) started() []*session {
	if len(w.sessions) == 0 && len(w.suite.setups) == 1 {
		w.session(w.suite.setups[0])
	}
	return w.sessions
}

func (w *world) playCalls(step *schema.TestStep, result *StepResult) {
	s := w.session(w.suite.setup(step.Call.Server))
	s.server.play(step.Script)
	w.settle()
	for _, at := range step.At {
		c := s.newCall(step.Call)
		result.Calls = append(result.Calls, c)
		w.plan(at, func() { c.make(step.Call) })
		if step.Cancels && len(result.Calls) == 1 {
			w.plan(at+step.Cancel, c.takeBack)
		}
	}
	for range maxEvents {
		if !waiting(result.Calls) || !w.next(w.now.Add(maxWait)) {
			break
		}
	}
	w.settle()
	result.Executions = s.server.executions
	for _, c := range result.Calls {
		c.state = c.breakerState()
	}
}

// maxWait is longer than anything that a call may wait for.
const maxWait = 31 * 24 * time.Hour

func waiting(calls []*Call) bool {
	for _, c := range calls {
		if !c.over {
			return true
		}
	}
	return false
}

// ofStep is the key of the only expectation that is about the step as a whole, whatever its calls.
const ofStep = "executions"

// judge holds what a step came to against what was expected.
func (w *world) judge(index int, r *StepResult) []Failure {
	var failures []Failure
	celErrors := false
	for _, e := range r.Step.Expect {
		celErrors = celErrors || e.Key == "cel_errors"
	}
	for n, c := range r.Calls {
		add := func(f Failure) {
			f.Step, f.Call = index, n
			failures = append(failures, f)
		}
		if !c.over {
			add(Failure{Pos: r.Step.Pos, Text: "the call never ended"})
			continue
		}
		if c.answers > 1 {
			add(Failure{Pos: r.Step.Pos, Text: fmt.Sprintf("the client got %d answers", c.answers)})
		}
		for _, e := range r.Step.Expect {
			if e.Key == ofStep && n > 0 {
				continue // told once
			}
			if have := c.look(e.Key, r.Executions); !meets(e.Want, have) {
				add(Failure{Pos: e.Pos, Key: e.Key, Want: e.Text, Got: have.text, Why: c.because(e.Key)})
			}
		}
		if !celErrors && len(c.CELErrors) > 0 {
			add(Failure{Pos: r.Step.Pos, Text: "an expression failed, and no cel_errors are expected:\n" + strings.Join(c.CELErrors, "\n")})
		}
	}
	if len(r.Calls) > 0 {
		if v := r.Calls[0].session.server; v.unscripted > 0 {
			failures = append(failures, Failure{Pos: r.Step.Pos, Step: index,
				Text: unscriptedText(v.length, v.length+v.unscripted)})
		}
	}
	return failures
}

// unscriptedText says that the server was asked more often than the script has answers.
func unscriptedText(scripted, asked int) string {
	if scripted == 0 {
		return fmt.Sprintf("the server was asked (%s), and the test does not say what it does then", plural(asked, "time"))
	}
	return fmt.Sprintf("the server was asked %s, and the test says what it does for %d only", plural(asked, "time"), scripted)
}
