package policytest

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/bentabol/mcp-retry/schema"
)

// ExploreReport is what exploring came to.
type ExploreReport struct {
	Files  []*Exploration
	Faults []*Fault // of files that could not be explored: each counts as a failure
}

// nothingExplored is why a file fails in which there is nothing to explore: it would look like one in which all is well.
const nothingExplored = "nothing was explored: the file has no tools, and no test calls one"

// Count returns how many calls were tried, how many sequences of outcomes in all, and how many counter-examples were found. idle
// are the files in which there was nothing to try.
func (r *ExploreReport) Count() (calls, sequences, counterExamples, idle int) {
	for _, e := range r.Files {
		calls += len(e.Calls)
		sequences += e.Sequences()
		if len(e.Calls) == 0 {
			idle++
		}
		for _, c := range e.Calls {
			counterExamples += len(c.Violated)
		}
	}
	return calls, sequences, counterExamples, idle
}

// Write writes the report in one of the [Formats]. The style is for pretty. In the formats that know but tests, each call is one,
// and what was found are its failures.
func (r *ExploreReport) Write(w io.Writer, format string, style Style) error {
	switch format {
	case "pretty":
		return r.writePretty(w, style)
	case "json":
		return r.writeJSON(w)
	}
	if err := r.asTests().Write(w, format, style); err != nil {
		return err
	}
	if format != "github" {
		return nil
	}
	_, err := fmt.Fprintln(w, r.summary())
	return err
}

// summary is the report on one line.
func (r *ExploreReport) summary() string {
	calls, sequences, found, idle := r.Count()
	text := plural(sequences, "sequence") + " of outcomes, " + plural(calls, "call") + ": "
	switch {
	case found > 0:
		text += plural(found, "counter-example")
	case idle+len(r.Faults) > 0:
		text += "not every file was explored"
	default:
		text += "all is as it should be"
	}
	return text
}

func (r *ExploreReport) writePretty(w io.Writer, style Style) error {
	p := &pretty{w: w, style: style}
	for _, e := range r.Files {
		for _, c := range e.Calls {
			for _, v := range c.Violated {
				p.printf("%s: %s: %s\n%s\n", e.Suite.File.File, p.paint("1", c.Call.Tool), v.Reason, harmlessLines(v.Test, ""))
			}
		}
	}
	p.printf("%s\n", r.summary())
	return p.err
}

// writeJSON writes the report for programs. Fields may be added; none will change its meaning.
func (r *ExploreReport) writeJSON(w io.Writer) error {
	type counterExample struct {
		Reason string   `json:"reason"`
		Server []string `json:"server"` // what it does, attempt by attempt
		Test   string   `json:"test"`
	}
	type call struct {
		File            string           `json:"file"`
		Line            int              `json:"line,omitempty"` // none = no test calls the tool
		Server          string           `json:"server,omitempty"`
		Tool            string           `json:"tool"`
		Args            json.RawMessage  `json:"args,omitempty"`
		Sequences       int              `json:"sequences"`
		Cut             bool             `json:"cut"`
		CounterExamples []counterExample `json:"counter_examples"`
	}
	out := struct {
		Calls           int      `json:"calls"`
		Sequences       int      `json:"sequences"`
		CounterExamples int      `json:"counter_examples"`
		Idle            []string `json:"idle,omitempty"`   // files in which there is nothing to explore
		Faulty          []string `json:"faulty,omitempty"` // files that cannot be used
		Explored        []call   `json:"explored"`
	}{Explored: []call{}}
	out.Calls, out.Sequences, out.CounterExamples, _ = r.Count()
	for _, e := range r.Files {
		if len(e.Calls) == 0 {
			out.Idle = append(out.Idle, e.Suite.File.File)
		}
		for _, c := range e.Calls {
			explored := call{
				File: e.Suite.File.File, Line: c.Call.Pos.Line, Server: c.Call.Server, Tool: c.Call.Tool, Args: c.Call.Args,
				Sequences: c.Sequences, Cut: c.Cut, CounterExamples: []counterExample{},
			}
			for _, v := range c.Violated {
				x := counterExample{Reason: v.Reason, Server: []string{}, Test: v.Test}
				for _, a := range v.Script {
					x.Server = append(x.Server, answerText(a))
				}
				explored.CounterExamples = append(explored.CounterExamples, x)
			}
			out.Explored = append(out.Explored, explored)
		}
	}
	for _, f := range r.Faults {
		out.Faulty = append(out.Faulty, f.File)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

// asTests is the report as one of tests: each call is one.
func (r *ExploreReport) asTests() *Report {
	tests := &Report{Faults: r.Faults}
	for _, e := range r.Files {
		file := FileReport{Suite: e.Suite}
		for i := range e.Calls {
			file.Results = append(file.Results, e.asTest(&e.Calls[i]))
		}
		if len(e.Calls) == 0 {
			top := schema.Pos{File: e.Suite.File.File, Line: 1, Col: 1}
			file.Results = []*Result{{File: top.File, Test: "explore", Pos: top, Failures: []Failure{{Pos: top, Text: nothingExplored}}}}
		}
		tests.Files = append(tests.Files, file)
	}
	return tests
}

func (e *Exploration) asTest(c *ExploredCall) *Result {
	r := &Result{File: e.Suite.File.File, Test: "explore " + c.Call.Tool, Row: string(c.Call.Args), Pos: c.Call.Pos}
	if c.Call.Server != "" {
		r.Test = "explore " + c.Call.Server + ": " + c.Call.Tool
	}
	if r.Pos.Line == 0 { // no test calls the tool
		if r.Pos = e.Suite.File.ToolsPos; r.Pos.Line == 0 {
			r.Pos = schema.Pos{File: r.File, Line: 1, Col: 1}
		}
	}
	for _, v := range c.Violated {
		r.Failures = append(r.Failures, Failure{Pos: r.Pos, Text: v.Reason, Example: v.Test})
	}
	return r
}
