package policytest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// Question is a call to be explained, and what is to become of its attempts.
type Question struct {
	Server *schema.Server
	Policy *policy.Policy
	Tools  json.RawMessage // as the server lists them; nil = none: see [Suite] on tools that are not listed
	Call   schema.TestCall
	Script []schema.TestAnswer // attempts beyond it succeed

	brief bool // what is decided will do, without the rules that were asked
}

// Explanation is what policy decides about a call, and why.
type Explanation struct {
	Call   *Call
	Events []Event
}

// Explain plays a call and takes down every decision about it.
func Explain(q Question) *Explanation {
	w := q.world()
	r := w.play(&schema.TestStep{Call: &q.Call, At: []time.Duration{0}, Script: q.Script})
	return &Explanation{Call: r.Calls[0], Events: w.events}
}

// world is one that has only the server of the question.
func (q *Question) world() *world {
	if q.Tools == nil {
		q.Tools = json.RawMessage("[]")
	}
	q.Tools, q.Call.Args, q.Call.Meta = onOneLine(q.Tools), onOneLine(q.Call.Args), onOneLine(q.Call.Meta)
	s := &Suite{File: &schema.TestFile{Clock: time.Now(), Seed: 1}}
	setup := newSetup(q.Server, q.Policy, q.Tools)
	s.setups = []*serverSetup{setup}
	q.Call.Server = ""
	return &world{suite: s, start: s.File.Clock, now: s.File.Clock, trace: true, brief: q.brief}
}

// wait says between what the wait after an attempt lies, as policy has it: a hint of the server's own can make it longer. ok is
// false if no attempt follows.
func (e *Explanation) wait(after int) (shortest, longest time.Duration, ok bool) {
	if after == 0 || after >= len(e.Call.Attempts) {
		return 0, 0, false
	}
	for _, d := range e.Call.Decisions {
		if d.Attempt == after && d.Decision == schema.RetryDelay {
			delay, _ := d.value.(time.Duration)
			return delay, delay, true
		}
	}
	var b policy.Backoff
	values := e.Call.values
	b.Base, _ = values[schema.BaseDelay].(time.Duration)
	b.Max, _ = values[schema.MaxDelay].(time.Duration)
	b.Jitter, _ = values[schema.Jitter].(float64)
	b.Kind, _ = values[schema.Backoff].(string)
	shortest, longest = engine.WaitRange(b, after)
	return shortest, longest, true
}

// moments groups the decisions by when they were taken.
func (e *Explanation) moments() [][]Decision {
	var groups [][]Decision
	for _, d := range e.Call.Decisions {
		for len(groups) <= d.Attempt {
			groups = append(groups, nil)
		}
		groups[d.Attempt] = append(groups[d.Attempt], d)
	}
	return groups
}

// WriteText writes the explanation for people.
func (e *Explanation) WriteText(w io.Writer, style Style) error {
	p := &pretty{w: w, style: style}
	for attempt, decisions := range e.moments() {
		if len(decisions) == 0 {
			continue
		}
		title := "before the call"
		if attempt > 0 {
			title = fmt.Sprintf("after attempt %d: %s", attempt, e.outcome(attempt))
		}
		p.printf("%s\n", p.paint("1", title))
		for _, d := range decisions {
			p.decision(d)
		}
		if shortest, longest, ok := e.wait(attempt); ok {
			p.printf("    %s\n", waitText(attempt, shortest, longest))
		}
		p.printf("\n")
	}
	p.printf("%s\n", p.paint("1", "what it comes to"))
	for _, event := range e.Events {
		p.printf("    %8s  %s\n", moment(event.At), clip(event.Text, 200))
	}
	for _, bad := range e.Call.CELErrors {
		p.printf("    an expression failed: %s\n", bad)
	}
	return p.err
}

func waitText(attempt int, shortest, longest time.Duration) string {
	if shortest == longest {
		return fmt.Sprintf("attempt %d follows after %s", attempt+1, short(shortest))
	}
	return fmt.Sprintf("attempt %d follows after %s to %s", attempt+1, short(shortest), short(longest))
}

// outcome is what an attempt came to.
func (e *Explanation) outcome(attempt int) string {
	if attempt > len(e.Call.Attempts) {
		return "nothing yet"
	}
	return e.Call.Attempts[attempt-1].Outcome
}

// WriteJSON writes the explanation for programs.
func (e *Explanation) WriteJSON(w io.Writer) error {
	type moment struct {
		After     int            `json:"after_attempt"` // 0 = before the call
		Outcome   string         `json:"outcome,omitempty"`
		Decisions []jsonDecision `json:"decisions"`
		WaitMS    *[2]float64    `json:"wait_ms,omitempty"` // the shortest and the longest wait before the next attempt
	}
	out := struct {
		Server  string      `json:"server"`
		Tool    string      `json:"tool"`
		Moments []moment    `json:"moments"`
		Status  string      `json:"status"`
		Summary string      `json:"summary"`
		Events  []jsonEvent `json:"timeline"`
		Errors  []string    `json:"cel_errors,omitempty"`
	}{Server: e.Call.Server, Tool: e.Call.Tool, Status: e.Call.Status, Summary: strings.TrimSpace(e.Call.summary()), Errors: e.Call.CELErrors}
	for attempt, decisions := range e.moments() {
		if len(decisions) == 0 {
			continue
		}
		m := moment{After: attempt}
		for _, d := range decisions {
			m.Decisions = append(m.Decisions, jsonOfDecision(d))
		}
		if attempt > 0 {
			m.Outcome = e.outcome(attempt)
			if shortest, longest, ok := e.wait(attempt); ok {
				m.WaitMS = &[2]float64{milliseconds(shortest), milliseconds(longest)}
			}
		}
		out.Moments = append(out.Moments, m)
	}
	for _, event := range e.Events {
		out.Events = append(out.Events, jsonEvent{milliseconds(event.At), event.Step + 1, event.Text})
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
