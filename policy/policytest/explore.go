package policytest

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// ExploreOptions bound an exploration.
type ExploreOptions struct {
	MaxSequences int // in all, the same number for each call; 0 = 10 000
}

// Exploration is what trying all that can happen came to.
type Exploration struct {
	Suite *Suite
	Calls []ExploredCall // in the order of the file, then those of tools that no test calls; empty = there is nothing to try
}

// ExploredCall is a call that was tried.
type ExploredCall struct {
	Call      *schema.TestCall
	Sequences int         // of outcomes, each different up to where the call ended
	Cut       bool        // there were more than allowed, and the longest were not tried
	Violated  []Violation // each for another reason
}

// Violation is a sequence of outcomes after which something does not hold that should, whatever the policy. Of several for the
// same call and reason it is a shortest.
type Violation struct {
	Script []schema.TestAnswer
	Reason string
	Test   string // a test that fails as long as it is so, for the list of tests: in YAML, or in JSON if the file is not YAML
}

// Explore tries what a call of each tool of each server comes to under every sequence of outcomes, up to the attempts that
// policy allows, and holds it against what should be true under any policy. The arguments are those with which the tests call
// a tool, {} if they do not.
func Explore(s *Suite, o ExploreOptions) *Exploration {
	if o.MaxSequences == 0 {
		o.MaxSequences = 10_000
	}
	e := &Exploration{Suite: s}
	for _, setup := range s.setups {
		for _, call := range s.sampleCalls(setup) {
			e.Calls = append(e.Calls, ExploredCall{Call: call})
		}
	}
	found := make([][]counterExample, len(e.Calls)) // by call
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(e.Calls)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(e.Calls); i = next.Add(1) - 1 {
				found[i] = e.Calls[i].explore(s, o.MaxSequences/len(e.Calls))
			}
		})
	}
	wg.Wait()
	names := s.testNames()
	for i := range e.Calls {
		for _, x := range found[i] {
			e.Calls[i].Violated = append(e.Calls[i].Violated, Violation{Script: x.script, Reason: x.shown.reason, Test: x.text(s.File.File, names)})
		}
	}
	return e
}

// Sequences is how many sequences of outcomes were tried.
func (e *Exploration) Sequences() int {
	n := 0
	for _, c := range e.Calls {
		n += c.Sequences
	}
	return n
}

// Cut is for how many calls there were more sequences than allowed.
func (e *Exploration) Cut() int {
	n := 0
	for _, c := range e.Calls {
		if c.Cut {
			n++
		}
	}
	return n
}

// testNames are the names that tests of the file have.
func (s *Suite) testNames() map[string]bool {
	names := map[string]bool{}
	for _, t := range s.File.Tests {
		names[t.Name] = true
	}
	return names
}

// sampleCalls are the calls to be tried: those of the tests, each once, and one of each tool that they do not call.
func (s *Suite) sampleCalls(setup *serverSetup) []*schema.TestCall {
	var calls []*schema.TestCall
	seen := map[string]bool{}
	called := map[string]bool{}
	for _, t := range s.File.Tests {
		for _, row := range t.Rows {
			for _, step := range row.Steps {
				c := step.Call
				if c == nil || s.setup(c.Server) != setup {
					continue
				}
				called[c.Tool] = true
				if id := c.Tool + string(c.Args) + string(c.Meta); !seen[id] {
					seen[id] = true
					calls = append(calls, c)
				}
			}
		}
	}
	server := ""
	if len(s.setups) > 1 {
		server = setup.server.Name
	}
	for _, tool := range setup.listed() {
		if !called[tool] {
			calls = append(calls, &schema.TestCall{Server: server, Tool: tool, Args: json.RawMessage("{}")})
		}
	}
	return calls
}

// alphabet is all that can become of an attempt.
var alphabet = []schema.TestAnswer{
	{Kind: "ok", Effect: true},
	{Kind: "tool_error"},
	{Kind: "error", Value: json.RawMessage(`{"code":-32603,"message":"internal error"}`)},
	{Kind: "error", Value: json.RawMessage(`{"code":-32602,"message":"invalid params"}`)},
	{Kind: "error", Value: json.RawMessage(`{"code":-32000,"message":"busy","data":{"retryAfterMs":200}}`)},
	{Kind: "timeout"},
	{Kind: "timeout", Effect: true},
	{Kind: "late", Effect: true}, // after: set for the call
	{Kind: "exit"},
	{Kind: "exit", Effect: true},
	{Kind: "spawn_failure"},
	{Kind: "malformed"},
}

// explore tries the call. Sequences are tried shortest first, and only lengthened where the call wants another attempt: so no
// two are equal up to where it ends.
func (c *ExploredCall) explore(s *Suite, limit int) (found []counterExample) {
	letters := slices.Clone(alphabet)
	letters[7].After = s.lateness(c.Call)
	seen := map[string]bool{}
	queue := [][]schema.TestAnswer{{}}
	for len(queue) > 0 {
		script := queue[0]
		queue = queue[1:]
		p := s.try(c.Call, script)
		if p.wants {
			if len(queue)+c.Sequences+len(letters) > limit && len(script) > 0 {
				c.Cut = true // what is in the queue is still tried, as far as it ends
				continue
			}
			for _, letter := range letters {
				queue = append(queue, append(slices.Clip(slices.Clone(script)), letter))
			}
			continue
		}
		c.Sequences++
		for _, b := range p.broken() {
			kind, _, _ := strings.Cut(b.reason, ":")
			if !seen[kind] {
				seen[kind] = true
				found = append(found, counterExample{c.Call, script, b})
			}
		}
	}
	return found
}

// lateness is a time that is just longer than an attempt of the call may take.
func (s *Suite) lateness(call *schema.TestCall) time.Duration {
	p := s.try(call, []schema.TestAnswer{{Kind: "ok", Effect: true}})
	timeout, _ := p.call.values[schema.CallTimeout].(time.Duration)
	return timeout + time.Second
}

// played is what a call came to under a script, and what a repeat of it came to.
type played struct {
	world      *world
	script     []schema.TestAnswer
	call       *Call
	executions int
	wants      bool // it was asked for more than the script has
	again      *Call
}

// try plays a call under a script in a world of its own, and if that ended it, a repeat.
func (s *Suite) try(call *schema.TestCall, script []schema.TestAnswer) *played {
	w := &world{suite: s, start: s.File.Clock, now: s.File.Clock}
	first := w.play(&schema.TestStep{Call: call, At: []time.Duration{0}, Script: script})
	p := &played{world: w, script: script, call: first.Calls[0], executions: first.Executions}
	v := &p.call.session.server
	p.wants = v.unscripted > 0
	if p.wants || !p.call.over {
		return p
	}
	w.until(w.now.Add(time.Minute)) // late answers come
	again := w.play(&schema.TestStep{Call: call, At: []time.Duration{0}, Script: slices.Repeat(okAnswer, 3)})
	p.again = again.Calls[0]
	return p
}

var okAnswer = []schema.TestAnswer{{Kind: "ok", Effect: true}}

// breach is something that does not hold and should.
type breach struct {
	reason string
	expect []member // what a test expects of the call that shows it; none = that it ends, with one answer
	repeat bool     // the repeat of the call shows it
}

// broken lists what does not hold and should.
func (p *played) broken() []breach {
	c := p.call
	if !c.over {
		return []breach{{reason: "no answer: the call never ended"}}
	}
	var list []breach
	add := func(expect []member, format string, args ...any) {
		list = append(list, breach{reason: fmt.Sprintf(format, args...), expect: expect})
	}
	if c.answers != 1 {
		add(nil, "one answer: the client got %d", c.answers)
	}
	retries, _ := c.values[schema.MaxRetries].(int)
	if c.Sends > retries+1 {
		add(expecting("attempts", retries+1), "attempts: %d were made, and max_retries is %d", c.Sends, retries)
	}
	total, _ := c.values[schema.TotalTimeout].(time.Duration)
	if c.Took > total {
		add(expecting("took", "<="+total.String()), "time: it took %s, and total_timeout is %s", short(c.Took), short(total))
	}
	if b := c.session.setup.server.Budget; b != nil && float64(c.Sends-1) > b.Burst {
		add(expecting("attempts", int(b.Burst)+1), "budget: %d retries, and the budget holds %g", c.Sends-1, b.Burst)
	}
	forwards, _ := c.values[schema.ForwardKey].(string)
	if effects := c.values[schema.Effects]; effects == policy.EffectsUnsafe && p.executions > 1 && (forwards == "" || c.key == nil) {
		add(expecting("executions", 1), "unsafe: the tool was executed %d times by one call", p.executions)
	}
	p.checkEnd(add)
	if b := p.checkRepeat(); b != nil {
		list = append(list, *b)
	}
	return list
}

// checkEnd holds the answer against the last thing that the server said.
func (p *played) checkEnd(add func(expect []member, format string, args ...any)) {
	c := p.call
	if len(p.script) == 0 || c.Sends == 0 {
		return
	}
	last := p.script[len(p.script)-1]
	switch last.Kind {
	case "ok":
		if c.Status != "success" {
			add(expecting("status", "ok"), "real result: the server answered, and the client got %s", c.Status)
		}
	case "tool_error":
		if c.Status != "tool_error" && c.Status != "success" {
			add(expecting("status", "tool_error"), "real error: the tool failed, and the client got %s", c.Status)
		}
	case "error":
		var e struct{ Code int64 }
		if json.Unmarshal(last.Value, &e) == nil && c.Status == "error" && (c.failure == nil || c.failure.Code != e.Code) {
			add(expecting("error", map[string]int64{"code": e.Code}), "real error: the server said %d, and the client got %s", e.Code, c.summary())
		}
	}
}

// checkRepeat sees to it that no failure is given to a repeat as if it were a result.
func (p *played) checkRepeat() *breach {
	c, again := p.call, p.again
	if again == nil || !again.over {
		return &breach{reason: "repeat: a repeat of the call never ended", repeat: true}
	}
	succeeded := c.Status == "success" || slices.ContainsFunc(p.script, func(a schema.TestAnswer) bool { return a.Kind == "late" })
	given := again.Cache == "hit" || again.Dedup == "replayed"
	if !succeeded && given && again.Status != "refused" {
		return &breach{repeat: true, expect: append(expecting("cached", false), expecting("deduplicated", false)...),
			reason: fmt.Sprintf("failures are not kept: the call came to %s, and its repeat got %s", c.Status, again.summary())}
	}
	return nil
}
