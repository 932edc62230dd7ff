package policytest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// Side is one of two configs that are compared.
type Side struct {
	Config   *schema.Config
	Policies []*policy.Policy // of its servers, in their order
}

// ToolChange is a tool whose calls are treated otherwise.
type ToolChange struct {
	Server  string   `json:"server"`
	Tool    string   `json:"tool"`
	Changes []Change `json:"changes"`
}

// Change is a decision that comes out otherwise.
type Change struct {
	Decision schema.Decision `json:"decision"`
	After    []string        `json:"after,omitempty"` // what an attempt came to; none = before the call
	Old      string          `json:"old"`             // "" = nothing is stated
	OldRule  string          `json:"old_rule,omitempty"`
	New      string          `json:"new"`
	NewRule  string          `json:"new_rule,omitempty"`
}

// Difference is what becomes otherwise between two configs.
type Difference struct {
	Tools   []ToolChange   `json:"tools"`
	Servers []ServerChange `json:"servers,omitempty"`
	Added   []string       `json:"servers_added,omitempty"`
	Removed []string       `json:"servers_removed,omitempty"`
	Same    int            `json:"unchanged"` // how many tools are treated as before
}

// endings of an attempt after which decisions are compared.
var endingsOfAttempts = []struct {
	name   string
	answer schema.TestAnswer
}{
	{"success", schema.TestAnswer{Kind: "ok", Effect: true}},
	{"a timeout", schema.TestAnswer{Kind: "timeout"}},
	{"the end of the server", schema.TestAnswer{Kind: "exit"}},
	{"error -32603", schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":-32603,"message":"internal error"}`)}},
	{"error -32000", schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":-32000,"message":"busy"}`)}},
	{"error -32000 with retryAfter", schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":-32000,"message":"busy","data":{"retryAfter":2}}`)}},
	{"a tool error", schema.TestAnswer{Kind: "tool_error"}},
}

// Compare finds the tools whose calls are treated otherwise by the new config than by the old one: it asks both what they decide
// about a call of each tool, before it and after each kind of end of its first attempt. tools are those of each server, as it
// lists them. The arguments of the calls are made up from the tools' schemas, so what depends on arguments of a certain kind
// may be missed.
func Compare(old, now Side, tools func(server string) []json.RawMessage) *Difference {
	d := &Difference{Tools: []ToolChange{}}
	for i, server := range old.Config.Servers {
		j := slices.IndexFunc(now.Config.Servers, func(s *schema.Server) bool { return s.Name == server.Name })
		if j < 0 {
			d.Removed = append(d.Removed, server.Name)
			continue
		}
		if changed := compareSettings(server, now.Config.Servers[j]); changed != nil {
			d.Servers = append(d.Servers, ServerChange{Server: server.Name, Settings: changed})
		}
		for _, tool := range tools(server.Name) {
			change := compareTool(Question{Server: server, Policy: old.Policies[i]}, Question{Server: now.Config.Servers[j], Policy: now.Policies[j]}, tool)
			if change == nil {
				d.Same++
				continue
			}
			d.Tools = append(d.Tools, *change)
		}
	}
	for _, server := range now.Config.Servers {
		if old.Config.Server(server.Name) == nil {
			d.Added = append(d.Added, server.Name)
		}
	}
	return d
}

func compareTool(old, now Question, tool json.RawMessage) *ToolChange {
	var entry struct {
		Name        string `json:"name"`
		InputSchema struct {
			Properties map[string]sample `json:"properties"`
			Required   []string          `json:"required"`
		} `json:"inputSchema"`
	}
	if json.Unmarshal(tool, &entry) != nil || entry.Name == "" {
		return nil
	}
	args := map[string]any{}
	for _, name := range entry.InputSchema.Required {
		args[name] = entry.InputSchema.Properties[name].value()
	}
	made, err := json.Marshal(args)
	if err != nil {
		return nil
	}
	call := schema.TestCall{Tool: entry.Name, Args: made}
	change := &ToolChange{Server: now.Server.Name, Tool: entry.Name}
	for _, ending := range endingsOfAttempts {
		script := []schema.TestAnswer{ending.answer}
		before, after := old.decide(call, tool, script), now.decide(call, tool, script)
		for _, decision := range inOrder {
			a, b := before[decision], after[decision]
			switch {
			case a.value == b.value:
			case (!a.asked || !b.asked) && !comparable(decision, before, after):
				// It was not asked, for another decision came out otherwise: that says it.
			case a.after || b.after:
				change.note(Change{Decision: decision, Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule}, ending.name)
			case ending.name == endingsOfAttempts[0].name:
				change.Changes = append(change.Changes, Change{Decision: decision, Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule})
			}
		}
	}
	if a, b := old.decideStale(call, tool), now.decideStale(call, tool); a.asked && b.asked && a.value != b.value {
		change.note(Change{Decision: schema.StaleIfError, Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule}, "a failure once the cached result is too old")
	}
	if len(change.Changes) == 0 {
		return nil
	}
	return change
}

// comparable reports whether both sides came to where a decision is asked that only one of them states.
func comparable(d schema.Decision, old, now map[schema.Decision]settled) bool {
	a, b := old[schema.Retry], now[schema.Retry]
	return d == schema.RetryDelay && a.asked && b.asked && a.value == b.value
}

// note adds a change after one kind of end of an attempt, to that after others if it is the same.
func (t *ToolChange) note(c Change, ending string) {
	for i := range t.Changes {
		o := &t.Changes[i]
		if o.After != nil && o.Decision == c.Decision && o.Old == c.Old && o.OldRule == c.OldRule && o.New == c.New && o.NewRule == c.NewRule {
			o.After = append(o.After, ending)
			return
		}
	}
	c.After = []string{ending}
	t.Changes = append(t.Changes, c)
}

// sample is a property of a tool's arguments.
type sample struct {
	Type    any   `json:"type"`
	Enum    []any `json:"enum"`
	Default any   `json:"default"`
}

// value is one that the property may have.
func (s sample) value() any {
	switch {
	case s.Default != nil:
		return s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	}
	switch s.Type {
	case "number", "integer":
		return 1
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "text"
}

// settled is a decision in the terms of a comparison.
type settled struct {
	value, rule string
	after       bool // the attempt
	asked       bool
}

func settledBy(d *Decision) settled {
	s := settled{value: d.Value, rule: d.Rule, after: d.Attempt == 1, asked: true}
	if t, ok := d.value.(time.Duration); ok {
		s.value = short(t)
	}
	return s
}

// inOrder are all decisions in the order of the manual.
var inOrder = func() []schema.Decision {
	var all []schema.Decision
	for _, phase := range policy.Phases {
		all = append(all, phase.Decisions()...)
	}
	return all
}()

// decide plays a call and returns what was decided before it and after its first attempt.
func (q Question) decide(call schema.TestCall, tool json.RawMessage, script []schema.TestAnswer) map[schema.Decision]settled {
	q.Call, q.Script = call, script
	q.Tools = slices.Concat(json.RawMessage("["), tool, json.RawMessage("]"))
	e := Explain(q)
	decisions := map[schema.Decision]settled{}
	for _, d := range e.Call.Decisions {
		if d.Attempt > 1 {
			continue
		}
		decisions[d.Decision] = settledBy(&d)
	}
	if e.Call.Status == "denied" { // then nothing else matters
		why := decisions[schema.Deny]
		if why.rule == "" {
			why = settled{value: "denied", rule: e.Call.denyRule, asked: true}
		}
		return map[schema.Decision]settled{schema.Deny: why}
	}
	return decisions
}

// decideStale returns what is decided when a call fails whose cached result is too old; it is not asked where none is cached.
func (q Question) decideStale(call schema.TestCall, tool json.RawMessage) settled {
	q.Call, q.Tools = call, slices.Concat(json.RawMessage("["), tool, json.RawMessage("]"))
	w := q.world()
	first := w.play(&schema.TestStep{Call: &q.Call, At: []time.Duration{0}, Script: okAnswer})
	ttl := first.Calls[0].cacheTTL()
	if ttl == 0 {
		return settled{}
	}
	w.until(w.now.Add(ttl + time.Millisecond))
	lost := schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":-32603,"message":"internal error"}`)}
	again := w.play(&schema.TestStep{Call: &q.Call, At: []time.Duration{0}, Script: slices.Repeat([]schema.TestAnswer{lost}, 20)})
	if d := again.Calls[0].last(schema.StaleIfError); d != nil {
		return settledBy(d)
	}
	return settled{}
}
