package schema

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// testBuilder makes the tests of a checked tree.
type testBuilder struct {
	*report
}

// defaultClock is when tests begin if the file does not say.
var defaultClock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (b *testBuilder) file(name string, root *node) *TestFile {
	f := &TestFile{File: name, Clock: defaultClock, Seed: 1}
	if n := root.get("config"); n != nil {
		f.Config, f.ConfigPos = n.text, n.pos
	}
	switch n := root.get("tools"); {
	case n == nil:
	case n.kind == list:
		listed := map[string]bool{}
		for _, item := range n.items {
			if item.bad {
				continue
			}
			f.Tools = append(f.Tools, item.json())
			if name := item.get("name"); name != nil {
				if listed[name.text] {
					b.fault(name, "repeated-name", "list each tool once", "two tools are named %q", shorten(name.text))
				}
				listed[name.text] = true
			}
		}
	default:
		f.ToolsFile, f.ToolsPos = n.text, n.pos
	}
	if n := root.get("clock"); n != nil {
		at, err := time.Parse(time.RFC3339, n.text)
		if err != nil {
			b.fault(n, "bad-value", "write it as 2026-01-01T00:00:00Z", "\"clock\" must be a time, not %s", found(n))
		} else {
			f.Clock = at
		}
	}
	if n, ok := root.get("seed").int(); ok {
		f.Seed = uint64(n)
	}
	names := map[string]bool{}
	if n := root.get("tests"); n != nil {
		for _, item := range n.items {
			if item.bad {
				continue
			}
			t := b.test(item)
			if names[t.Name] && t.Name != "" {
				b.errorAt(t.Pos, "repeated-name", "give each test a name of its own", "two tests are named %q", shorten(t.Name))
			}
			names[t.Name] = true
			f.Tests = append(f.Tests, t)
		}
	}
	return f
}

func (b *testBuilder) test(n *node) *Test {
	t := &Test{Pos: n.pos}
	if name := n.get("name"); name != nil {
		t.Name, t.Pos = name.text, name.pos
	}
	steps, each := n.get("steps"), n.get("each")
	switch {
	case steps != nil && each != nil:
		b.errorAt(n.key("each").pos, "bad-value", "make two tests of it", "a test has either steps or each, not both")
	case steps != nil:
		for _, name := range []string{"call", "at", "cancel", "server", "expect"} {
			if k := n.key(name); k != nil {
				b.errorAt(k.pos, "bad-value", "put it in the step that it is about", "a test is either one call or steps: %q beside \"steps\" is about neither", name)
			}
		}
		row := &TestRow{Pos: t.Pos}
		for _, item := range steps.items {
			if !item.bad {
				row.Steps = append(row.Steps, b.step(item, nil))
			}
		}
		if len(row.Steps) == 0 {
			b.errorAt(t.Pos, "missing-key", "", "the test has no steps")
		}
		t.Rows = append(t.Rows, row)
	case each != nil:
		for _, item := range each.items {
			if item.bad {
				continue
			}
			row := &TestRow{Pos: item.pos, Steps: []*TestStep{b.step(item, n)}}
			if name := item.get("name"); name != nil {
				row.Name = name.text
			}
			t.Rows = append(t.Rows, row)
		}
		if len(t.Rows) == 0 {
			b.errorAt(t.Pos, "missing-key", "", "the table has no rows")
		}
	case n.key("steps") != nil || n.key("each") != nil: // which is no list, and told
	default:
		t.Rows = []*TestRow{{Pos: t.Pos, Steps: []*TestStep{b.step(n, nil)}}}
	}
	return t
}

// step reads a step, a row or a test that is a single call. What a row does not state comes from its test.
func (b *testBuilder) step(n, test *node) *TestStep {
	s := &TestStep{Pos: n.pos}
	kinds := 0
	for _, name := range []string{"advance", "restart", "notify"} {
		if n.key(name) != nil {
			kinds++
		}
	}
	s.Advance, _ = n.get("advance").duration()
	if r := n.get("restart"); r != nil {
		s.Restart = r.text
	}
	if m := n.get("notify"); m != nil {
		s.Notify = b.notification(m)
	}
	if kinds > 0 {
		if kinds > 1 || n.key("call") != nil {
			b.errorAt(n.pos, "bad-value", "make several steps of it", "a step is one thing: a call, advance, restart or notify")
		}
		for _, name := range []string{"expect", "server", "at", "cancel"} {
			if k := n.key(name); k != nil && n.key("call") == nil {
				b.errorAt(k.pos, "bad-value", "put it in the step of a call", "%q belongs to a call", name)
			}
		}
		return s
	}
	inherited := func(name string) *node {
		if own := n.get(name); own != nil || n.key(name) != nil {
			return own
		}
		return test.get(name)
	}
	call := inherited("call")
	switch {
	case call != nil:
		s.Call = b.call(call)
	case n.key("call") == nil && test.key("call") == nil:
		b.errorAt(n.pos, "missing-key", "write call: {tool: NAME, args: {…}}", "there is no call here, and none in the test to take over")
		return s
	}
	s.At = []time.Duration{0}
	if at := inherited("at"); at != nil && at.kind == list && len(at.items) == 0 {
		if test.get("at") == nil { // a row may take back what its test says
			b.errorAt(at.pos, "bad-value", "leave it out for one call at once", "\"at\" names no time, so there would be no call")
		}
	} else if at != nil && len(at.items) > 0 {
		s.At = nil
		for _, item := range at.items {
			if d, ok := item.duration(); ok {
				s.At = append(s.At, d)
			}
		}
	}
	s.Cancel, s.Cancels = inherited("cancel").duration()
	if script := inherited("server"); script != nil {
		for _, item := range script.items {
			if !item.bad {
				s.Script = append(s.Script, b.answers(item)...)
			}
		}
	}
	if expect := inherited("expect"); expect != nil {
		if own := n.get("expect"); own == nil || test.get("expect") == nil { // a row may take back what its test expects
			b.notEmpty("expect", expect)
		}
		s.Expect = b.expectations(expect)
	}
	return s
}

func (b *testBuilder) call(n *node) *TestCall {
	c := &TestCall{Pos: n.pos}
	if s := n.get("server"); s != nil {
		c.Server, c.ServerPos = s.text, s.pos
	}
	if t := n.get("tool"); t != nil {
		c.Tool = t.text
	}
	if args := n.get("args"); args != nil {
		c.Args = args.json()
	}
	if meta := n.get("meta"); meta != nil {
		c.Meta = meta.json()
	}
	return c
}

func (b *testBuilder) notification(n *node) *Notification {
	if n.kind == text {
		return &Notification{Method: n.text}
	}
	note := &Notification{}
	if m := n.get("method"); m != nil {
		note.Method = m.text
	}
	if p := n.get("params"); p != nil {
		note.Params = p.json()
	}
	return note
}

// outcomes are what an answer may be, in the order of the manual.
var outcomes = []string{"ok", "result", "tool_error", "error", "timeout", "hang", "late", "exit", "spawn_failure", "malformed"}

// answers reads one item of a script, which may stand for several.
func (b *testBuilder) answers(n *node) []TestAnswer {
	a := TestAnswer{Pos: n.pos}
	times := 1
	if n.kind != object {
		word, count, counted := strings.Cut(n.text, " ")
		if counted {
			times, _ = strconv.Atoi(strings.Trim(count, " x"))
		}
		a.Kind = word
		a.Effect = a.Kind == "ok"
		return slices.Repeat([]TestAnswer{a}, times)
	}
	for _, name := range outcomes {
		key := n.key(name)
		if key == nil {
			continue
		}
		if a.Kind != "" {
			b.errorAt(key.pos, "bad-value", "make two items of it", "an attempt has one outcome: %q or %q", a.Kind, name)
			return nil
		}
		a.Kind = name
	}
	if a.Kind == "" {
		b.errorAt(n.pos, "missing-key", "one of "+strings.Join(outcomes, ", "), "this item does not say what the server does")
		return nil
	}
	value := n.get(a.Kind)
	a.After, _ = n.get("after").duration()
	switch a.Kind {
	case "ok":
		a.Effect = true
	case "result", "error":
		if value != nil {
			a.Value = value.json()
			isError := value.get("isError")
			a.Effect = a.Kind == "result" && (isError == nil || isError.kind != boolean || !isError.bool())
		}
	case "tool_error":
		if value != nil && value.kind == text {
			a.Value = value.json()
		}
	case "hang", "late":
		a.After, _ = value.duration()
		a.Effect = a.Kind == "late"
	}
	if e := n.get("effect"); e != nil {
		a.Effect = e.text == "yes"
	}
	if i, ok := n.get("times").int(); ok {
		times = int(i)
	}
	return slices.Repeat([]TestAnswer{a}, times)
}

// patternOf returns the text between slashes, and what is wrong with it as a regular expression.
func patternOf(s string) (p Pattern, ok bool, err error) {
	if len(s) < 2 || s[0] != '/' || s[len(s)-1] != '/' {
		return "", false, nil
	}
	_, err = regexp.Compile(s[1 : len(s)-1])
	return Pattern(s[1 : len(s)-1]), true, err
}

// int returns the value of a checked whole number.
func (n *node) int() (int64, bool) {
	if n == nil {
		return 0, false
	}
	i, ok := n.value.(int64)
	return i, ok
}

// duration returns the value of a checked duration.
func (n *node) duration() (time.Duration, bool) {
	if n == nil {
		return 0, false
	}
	d, ok := n.value.(time.Duration)
	return d, ok
}

// json returns the value of a node as JSON, its keys in the order of the file. Of a repeated key the first counts.
func (n *node) json() json.RawMessage { return n.appendJSON(nil) }

func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case null:
		return append(b, "null"...)
	case boolean:
		return strconv.AppendBool(b, n.bool())
	case number:
		if json.Valid([]byte(n.text)) {
			return append(b, n.text...)
		}
		if v, err := parseNumber(n.text); err == nil {
			if text, err := json.Marshal(v); err == nil {
				return append(b, text...)
			}
		}
	case list:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		seen := map[string]bool{}
		for i := range n.fields {
			f := &n.fields[i]
			if seen[f.key.text] {
				continue
			}
			if len(seen) > 0 {
				b = append(b, ',')
			}
			seen[f.key.text] = true
			b = appendText(b, f.key.text)
			b = f.value.appendJSON(append(b, ':'))
		}
		return append(b, '}')
	}
	return appendText(b, n.text)
}

func appendText(b []byte, s string) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // people read it
	if e.Encode(s) != nil {
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
}
