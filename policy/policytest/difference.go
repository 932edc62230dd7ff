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
	Decision schema.Decision `json:"decision"`        // or "required", which stands beside idempotency_key
	After    []string        `json:"after,omitempty"` // what an attempt came to; none = before the call
	Old      string          `json:"old"`             // "" = nothing is stated
	OldRule  string          `json:"old_rule,omitempty"`
	New      string          `json:"new"`
	NewRule  string          `json:"new_rule,omitempty"`
}

// Difference is what becomes otherwise between two configs.
type Difference struct {
	Tools    []ToolChange    `json:"tools"`
	Servers  []ServerChange  `json:"servers,omitempty"`
	Settings []SettingChange `json:"settings,omitempty"` // of the file as a whole
	Added    []string        `json:"servers_added,omitempty"`
	Removed  []string        `json:"servers_removed,omitempty"`
	Same     int             `json:"unchanged"` // how many tools are treated as before
}

// Compare finds the tools whose calls are treated otherwise by the new config than by the old one: it asks both what they decide
// about a call of each tool, before it and after each kind of end of its first attempt, those included that their rules name by
// a code or a text. tools are those of each server, as it lists them. The arguments of the calls are made up from the tools'
// schemas, so what depends on arguments of a certain kind may be missed; so may what depends on certain results.
func Compare(old, now Side, tools func(server string) []json.RawMessage) *Difference {
	d := &Difference{Tools: []ToolChange{}, Settings: compareNames(old.Config, now.Config)}
	for i, server := range old.Config.Servers {
		j := slices.IndexFunc(now.Config.Servers, func(s *schema.Server) bool { return s.Name == server.Name })
		if j < 0 {
			d.Removed = append(d.Removed, server.Name)
			continue
		}
		if changed := compareSettings(server, now.Config.Servers[j]); changed != nil {
			d.Servers = append(d.Servers, ServerChange{Server: server.Name, Settings: changed})
		}
		endings := endingsFor(old.Policies[i], now.Policies[j])
		for _, tool := range tools(server.Name) {
			change := compareTool(Question{Server: server, Policy: old.Policies[i]}, Question{Server: now.Config.Servers[j], Policy: now.Policies[j]}, tool, endings)
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

func compareTool(old, now Question, tool json.RawMessage, endings []ending) *ToolChange {
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
	found := map[string][]Change{} // by the name of the ending
	for i, e := range endings {
		script := []schema.TestAnswer{e.answer}
		before, after := old.decide(call, tool, script), now.decide(call, tool, script)
		for _, decision := range inOrder {
			a, b := before[decision], after[decision]
			c := Change{Decision: decision, Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule}
			switch {
			case a.value == b.value:
			case (!a.asked || !b.asked) && !comparable(decision, before, after):
				// It was not asked, for another decision came out otherwise: that says it.
			case a.after || b.after:
				found[e.name] = append(found[e.name], c)
				if !slices.ContainsFunc(found[e.like], c.same) { // else it is so for all of its kind
					change.note(c, e.name)
				}
			case i == 0:
				change.Changes = append(change.Changes, c)
			}
		}
	}
	if a, b := old.decideStale(call, tool), now.decideStale(call, tool); a.asked && b.asked && a.value != b.value {
		change.note(Change{Decision: schema.StaleIfError, Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule}, "a failure once the cached result is too old")
	}
	if a, b := old.requiresKey(entry.Name), now.requiresKey(entry.Name); a != b {
		change.Changes = append(change.Changes, Change{Decision: "required", Old: a.value, OldRule: a.rule, New: b.value, NewRule: b.rule})
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

// same reports whether two changes differ in their moments at most.
func (c Change) same(o Change) bool {
	return c.Decision == o.Decision && c.Old == o.Old && c.OldRule == o.OldRule && c.New == o.New && c.NewRule == o.NewRule
}

// note adds a change after one kind of end of an attempt, to that after others if it is the same.
func (t *ToolChange) note(c Change, ending string) {
	for i := range t.Changes {
		o := &t.Changes[i]
		if o.After != nil && o.same(c) {
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
	q.Call, q.Script, q.brief = call, script, true
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
		if why.rule == "" { // it was no rule's deny
			why = settled{value: "denied", rule: e.Call.denyRule, asked: true}
			if len(e.Call.CELErrors) > 0 {
				why.value = "denied, for an expression fails"
			}
		}
		return map[schema.Decision]settled{schema.Deny: why}
	}
	return decisions
}

// requiresKey says whether a call of a tool whose idempotency key fails is refused: as the first rule that may make its key says.
func (q Question) requiresKey(tool string) settled {
	for _, r := range q.Server.Rules {
		if r.Tools != "" && !policy.Match(r.Tools, tool) {
			continue
		}
		for _, s := range r.Decides {
			if s.Decision == schema.IdempotencyKey && s.Required {
				return settled{value: "true", rule: r.Name}
			}
		}
	}
	return settled{value: "false"}
}

// decideStale returns what is decided when a call fails whose cached result is too old; it is not asked where none is cached.
func (q Question) decideStale(call schema.TestCall, tool json.RawMessage) settled {
	q.Call, q.Tools, q.brief = call, slices.Concat(json.RawMessage("["), tool, json.RawMessage("]")), true
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
