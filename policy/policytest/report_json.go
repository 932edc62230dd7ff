package policytest

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
)

// The JSON report. Durations are in milliseconds. Fields may be added; none will change its meaning.
type (
	jsonReport struct {
		Passed   int           `json:"passed"`
		Failed   int           `json:"failed"`
		Tests    []jsonTest    `json:"tests"`
		Coverage *jsonCoverage `json:"coverage,omitempty"`
	}
	jsonTest struct {
		File     string        `json:"file"`
		Line     int           `json:"line"`
		Test     string        `json:"test"`
		Row      string        `json:"row,omitempty"`
		Passed   bool          `json:"passed"`
		Failures []jsonFailure `json:"failures,omitempty"`
		Timeline []jsonEvent   `json:"timeline,omitempty"`
	}
	jsonFailure struct {
		File    string         `json:"file"`
		Line    int            `json:"line"`
		Column  int            `json:"column"`
		Step    int            `json:"step"` // from 1
		Call    int            `json:"call"` // of the step, from 1
		Key     string         `json:"key,omitempty"`
		Want    string         `json:"want,omitempty"`
		Got     string         `json:"got,omitempty"`
		Message string         `json:"message"`
		Why     []jsonDecision `json:"why,omitempty"`
	}
	jsonEvent struct {
		AtMS float64 `json:"at_ms"`
		Step int     `json:"step"` // from 1
		Text string  `json:"text"`
	}
	jsonDecision struct {
		Decision string     `json:"decision"`
		Rule     string     `json:"rule,omitempty"`
		Value    string     `json:"value,omitempty"`
		Asked    []jsonRule `json:"asked,omitempty"`
	}
	jsonRule struct {
		Rule        string           `json:"rule"`
		Pos         string           `json:"pos,omitempty"`
		Fate        string           `json:"fate"`
		Expressions []jsonExpression `json:"expressions,omitempty"`
	}
	jsonExpression struct {
		Text  string     `json:"text"`
		Value string     `json:"value,omitempty"`
		Error string     `json:"error,omitempty"`
		Parts []jsonPart `json:"parts,omitempty"`
	}
	jsonPart struct {
		Text  string `json:"text"`
		Value string `json:"value,omitempty"` // none = it was not reached
	}
	jsonCoverage struct {
		Percent float64      `json:"percent"`
		Configs []jsonConfig `json:"configs"`
	}
	jsonConfig struct {
		File      string     `json:"file"`
		Rules     [2]int     `json:"rules"` // reached, all
		Decisions [2]int     `json:"decisions"`
		Outcomes  [2]int     `json:"outcomes"`
		Missed    []jsonMiss `json:"missed,omitempty"`
	}
	jsonMiss struct {
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Message string `json:"message"`
	}
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	out := jsonReport{Tests: []jsonTest{}}
	out.Passed, out.Failed = r.Count()
	for _, f := range r.Files {
		for _, result := range f.Results {
			out.Tests = append(out.Tests, jsonOf(result))
		}
	}
	for _, result := range r.faulty() {
		out.Tests = append(out.Tests, jsonOf(result))
	}
	if r.Coverage != nil {
		out.Coverage = r.Coverage.json()
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}

func jsonOf(r *Result) jsonTest {
	t := jsonTest{File: r.File, Line: r.Pos.Line, Test: r.Test, Row: r.Row, Passed: r.Passed()}
	for _, f := range r.Failures {
		out := jsonFailure{File: f.Pos.File, Line: f.Pos.Line, Column: f.Pos.Col, Step: f.Step + 1, Call: f.Call + 1,
			Key: f.Key, Want: f.Want, Got: f.Got, Message: f.Message()}
		for _, d := range f.Why {
			out.Why = append(out.Why, jsonOfDecision(d))
		}
		t.Failures = append(t.Failures, out)
	}
	for _, e := range r.Events {
		t.Timeline = append(t.Timeline, jsonEvent{AtMS: milliseconds(e.At), Step: e.Step + 1, Text: e.Text})
	}
	return t
}

func jsonOfDecision(d Decision) jsonDecision {
	out := jsonDecision{Decision: string(d.Decision), Rule: d.Rule, Value: d.Value}
	for _, c := range d.Considered {
		rule := jsonRule{Rule: c.Rule, Pos: c.Pos.String(), Fate: c.Fate.String()}
		if c.When != nil {
			rule.Expressions = append(rule.Expressions, jsonOfExpression(c.When))
		}
		for _, v := range c.Values {
			rule.Expressions = append(rule.Expressions, jsonOfExpression(v))
		}
		out.Asked = append(out.Asked, rule)
	}
	return out
}

func jsonOfExpression(e *policy.Evaluated) jsonExpression {
	out := jsonExpression{Text: strings.Join(strings.Fields(e.Expr.Text), " "), Value: e.Value, Error: e.Err}
	for _, p := range e.Parts {
		out.Parts = append(out.Parts, jsonPart{p.Text, p.Value})
	}
	return out
}

func (c *Coverage) json() *jsonCoverage {
	out := &jsonCoverage{Percent: c.Percent(), Configs: []jsonConfig{}}
	for _, config := range c.Configs {
		j := jsonConfig{File: config.File}
		for kind, to := range []*[2]int{&j.Rules, &j.Decisions, &j.Outcomes} {
			to[0], to[1] = config.Count(PointKind(kind))
		}
		for _, p := range config.Points {
			if p.Hits == 0 {
				j.Missed = append(j.Missed, jsonMiss{p.Pos.Line, p.Pos.Col, p.Missed()})
			}
		}
		out.Configs = append(out.Configs, j)
	}
	return out
}
