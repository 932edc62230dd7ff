package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// counterExample is a call, what the server does, and what does not hold then.
type counterExample struct {
	call   *schema.TestCall
	script []schema.TestAnswer
	shown  breach
}

// member is a part of a test, in the order in which a person writes them. A value of another kind than []member or []any is put
// down as JSON, which YAML reads too.
type member struct {
	name  string
	value any
}

func expecting(key string, value any) []member { return []member{{key, value}} }

// text is the example as an item for the list of tests of a file: in YAML, or JSON, which CUE reads too. Its name is none of those
// given, and added to them.
func (x *counterExample) text(file string, names map[string]bool) string {
	reason, _, _ := strings.Cut(x.shown.reason, ":")
	name := fmt.Sprintf("found by exploring: %s, %s", x.call.Tool, reason)
	for n := 2; names[name]; n++ {
		name = fmt.Sprintf("found by exploring: %s, %s (%d)", x.call.Tool, reason, n)
	}
	names[name] = true
	call := member{"call", callParts(x.call)}
	script := []any{}
	for _, a := range x.script {
		script = append(script, answerParts(a))
	}
	parts := []member{{"name", name}, call, {"server", script}}
	if x.shown.repeat {
		again := []member{call, {"server", []any{"ok x3"}}}
		if x.shown.expect != nil {
			again = append(again, member{"expect", x.shown.expect})
		}
		parts = []member{{"name", name}, {"steps", []any{
			[]member{call, {"server", script}}, []member{{"advance", "1m"}}, again,
		}}}
	} else if x.shown.expect != nil {
		parts = append(parts, member{"expect", x.shown.expect})
	}
	if !isYAML(file) {
		return "    " + inline(parts, false) + "\n"
	}
	var out strings.Builder
	for i, p := range parts {
		lead := "    "
		if i == 0 {
			lead = "  - "
		}
		if p.name != "steps" {
			fmt.Fprintf(&out, "%s%s: %s\n", lead, p.name, inline(p.value, true))
			continue
		}
		fmt.Fprintf(&out, "%ssteps:\n", lead)
		for _, step := range p.value.([]any) {
			fmt.Fprintf(&out, "      - %s\n", inline(step, true))
		}
	}
	return out.String()
}

// callParts is a call as a test file has it.
func callParts(call *schema.TestCall) []member {
	var parts []member
	if call.Server != "" {
		parts = append(parts, member{"server", call.Server})
	}
	parts = append(parts, member{"tool", call.Tool})
	if call.Args != nil {
		parts = append(parts, member{"args", call.Args})
	}
	if call.Meta != nil {
		parts = append(parts, member{"meta", call.Meta})
	}
	return parts
}

// answerParts is an answer as a test file has it: a word, or a map.
func answerParts(a schema.TestAnswer) any {
	parts := []member{{a.Kind, nil}}
	switch {
	case a.Kind == "late":
		return []member{{a.Kind, short(a.After)}}
	case a.Value != nil:
		parts[0].value = a.Value
	case !a.Effect || a.Kind == "ok":
		return a.Kind
	}
	if a.Effect {
		parts = append(parts, member{"effect", "yes"})
	}
	return parts
}

// inline is a part on one line.
func inline(v any, yaml bool) string {
	var list []string
	switch v := v.(type) {
	case []member:
		for _, m := range v {
			name := m.name
			if !yaml {
				name = string(quoted(name))
			}
			list = append(list, name+": "+inline(m.value, yaml))
		}
		return "{" + strings.Join(list, ", ") + "}"
	case []any:
		for _, item := range v {
			list = append(list, inline(item, yaml))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case string:
		if yaml && unquoted(v) {
			return v
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // only a float that is none has no JSON form
		return "null"
	}
	return strings.TrimSpace(text.String())
}
