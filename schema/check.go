package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cuelang.org/go/cue"
)

// check holds a tree against a schema: it marks what cannot be used, and gives the rest its values. One fault hides no other,
// for each place is checked on its own: CUE, given the whole file, forgets unknown keys as soon as a value is wrong, and answers
// one bad word with a line per alternative.
func check(d *dialect, root *node, r *report) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := checker{dialect: d, report: r}
	c.node(d.config(), root, root.pos, path{})
}

type checker struct {
	dialect *dialect
	report  *report
}

// path is where a node stands.
type path []string

func (p path) join(s string) path { return append(slices.Clip(p), s) }

func (p path) last() string {
	if len(p) == 0 {
		return ""
	}
	return p[len(p)-1]
}

// subject is a node in a message: its key, or the list that it is an item of.
func (p path) subject() string {
	switch {
	case len(p) == 0:
		return "the file"
	case len(p) > 1 && isIndex(p.last()):
		return "an item of " + strconv.Quote(shorten(p[len(p)-2]))
	}
	return strconv.Quote(shorten(p.last()))
}

func isIndex(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

// node checks a node; entry is the place of the key, or of the item, that it belongs to.
func (c *checker) node(s *shape, n *node, entry Pos, p path) {
	if n.bad || s.kinds == cue.TopKind {
		return
	}
	switch n.kind {
	case object:
		if s.kinds&cue.StructKind == 0 {
			c.wrongKind(s, n, p)
			return
		}
		c.object(s, n, entry, p)
	case list:
		if s.kinds&cue.ListKind == 0 {
			c.wrongKind(s, n, p)
			return
		}
		s.fill()
		for i, item := range n.items {
			c.node(s.elem, item, item.pos, p.join(strconv.Itoa(i)))
		}
	default:
		c.scalar(s, n, p)
	}
}

func (c *checker) object(s *shape, n *node, entry Pos, p path) {
	s.fill()
	first := map[string]*node{}
	for i := range n.fields {
		f := &n.fields[i]
		if f.key.bad {
			continue
		}
		name := f.key.text
		if prev := first[name]; prev != nil && !f.merged {
			c.report.fault(f.key, "repeated-key", "keep one of the two", "key %q is given twice, first on line %d", shorten(name), prev.pos.Line)
			continue
		}
		first[name] = f.key
		sub := s.field(name)
		if sub == nil {
			if to := c.unknown(s, n, f.key, p); to != "" {
				c.node(s.field(to), f.value, f.key.pos, p.join(name)) // one fault hides no other
			} else {
				c.report.forget(f.value)
			}
			continue
		}
		c.node(sub, f.value, f.key.pos, p.join(name))
	}
	for _, name := range s.required {
		if first[name] == nil {
			c.missing(n, entry, p, name)
		}
	}
}

func (c *checker) missing(n *node, entry Pos, p path, name string) {
	hint := ""
	if len(p) == 0 && name == "servers" {
		hint = startHint
	}
	n.bad = n.bad || len(p) > 0
	if n.misspelt(name) {
		return
	}
	c.report.errorAt(entry, "missing-key", hint, "%s needs a key %q", p.subject(), name)
}

// misspelt reports whether a map has an unknown key that was meant for this one: the finding about that says it all.
func (n *node) misspelt(name string) bool {
	for i := range n.fields {
		if k := n.fields[i].key; k.bad && (commonNames[k.text] == name || nearest(k.text, []string{name}) == name) {
			return true
		}
	}
	return false
}

// scalar reads the value of a scalar and lets CUE judge it.
func (c *checker) scalar(s *shape, n *node, p path) {
	v, ok := c.read(s, n, p)
	if !ok {
		return
	}
	judged := v
	switch t := v.(type) {
	case quantity:
		judged, n.value = t.number, t.value
	default:
		n.value = v
	}
	if s.role&asCEL != 0 && n.kind == text && isExpression(n) {
		c.expression(s, n, p)
		return
	}
	if !s.accepts(c.dialect.ctx, judged) {
		c.badValue(s, n, p)
		return
	}
	if d, ok := n.value.(time.Duration); ok && n.kind == number && d > time.Hour && strings.HasSuffix(p.last(), "timeout") {
		c.report.warnAt(n.pos, "milliseconds", `write "`+n.text+`ms" if milliseconds are meant`, "%s is %s seconds, which is %v", p.subject(), n.text, d)
	}
}

// isExpression reports whether a text where CEL may stand was read as CEL, not as a literal.
func isExpression(n *node) bool { _, is := n.value.(string); return is }

// accepts asks CUE.
func (s *shape) accepts(ctx *cue.Context, v any) bool {
	if v == nil {
		return s.kinds&cue.NullKind != 0
	}
	return s.value.Unify(ctx.Encode(v)).Validate(cue.Concrete(true)) == nil
}

// quantity is a duration or a size: the number that the schema bounds, and what it is in Go.
type quantity struct {
	number any
	value  any
}

// read gives a scalar the type that its place wants. What is written without quotes is taken as written where text is wanted:
// no, 0123 and 12:30:00 are names of tools.
func (c *checker) read(s *shape, n *node, p path) (any, bool) {
	wantsText := s.kinds&cue.StringKind != 0
	switch n.kind {
	case null:
		switch {
		case s.kinds&cue.NullKind != 0:
			return nil, true
		case n.plain && n.text != "" && (s.def == "#Glob" || s.def == "#Invalidation"):
			return n.text, true // YAML's null is a tool's name as written
		}
		c.noValue(s, n, p)
		return nil, false
	case boolean:
		if s.kinds&cue.BoolKind != 0 {
			return n.bool(), true
		}
	case number:
		if s.kinds&cue.NumberKind != 0 {
			return c.number(s, n, p)
		}
	case text:
		if s.role&asDuration != 0 {
			return c.duration(s, n, p)
		}
		if s.role&asBytes != 0 {
			if f, ok := bytesOf(n.text); ok {
				return quantity{number: int64(f), value: int64(f)}, true
			}
			meant, hint := meantBytes(n.text)
			c.report.mendable(n, c.report.rewrite(n, meant), "bad-value", hint, "%s is a size, which %q is not", p.subject(), n.text)
			return nil, false
		}
		if wantsText {
			return n.text, true
		}
	}
	if wantsText && textual(s) {
		return n.text, true
	}
	c.wrongKind(s, n, p)
	return nil, false
}

// textual reports whether a place takes nothing but free text, so that a number or a word of YAML's means itself.
func textual(s *shape) bool {
	return s.kinds&^(cue.StringKind|cue.StructKind) == 0 && s.role == 0 && s.words() == nil
}

func (c *checker) number(s *shape, n *node, p path) (any, bool) {
	v, err := parseNumber(n.text)
	if err != nil { // too large for anything
		c.badValue(s, n, p)
		return nil, false
	}
	if s.role&asDuration == 0 {
		return v, true
	}
	n.value = v
	f := n.float()
	if f < 0 || f > maxSeconds {
		c.badValue(s, n, p)
		return nil, false
	}
	return quantity{number: v, value: toDuration(f)}, true
}

// maxSeconds is what a time.Duration holds; the schema's own bounds are far below.
const maxSeconds = math.MaxInt64 / 1e9

func (c *checker) duration(s *shape, n *node, p path) (any, bool) {
	f, ok := seconds(n.text)
	switch {
	case ok && f > maxSeconds:
		c.badValue(s, n, p)
		return nil, false
	case ok:
		return quantity{number: f, value: toDuration(f)}, true
	case s.role&asCEL != 0 && !likeDuration().MatchString(strings.TrimSpace(n.text)):
		return n.text, true
	}
	trimmed := strings.TrimSpace(n.text)
	if strings.HasPrefix(trimmed, "-") {
		c.report.fault(n, "bad-value", durationHint, "%s is a duration, which cannot be negative: %q", p.subject(), n.text)
		return nil, false
	}
	meant, hint := meantDuration(trimmed)
	if n.plain && leadingZero().MatchString(trimmed) {
		meant, hint = "", zeroHint
	}
	c.report.mendable(n, c.report.rewrite(n, meant), "bad-value", hint, "%s is a duration, which %q is not", p.subject(), n.text)
	return nil, false
}

// expression checks what is known of an expression without CEL.
func (c *checker) expression(s *shape, n *node, p path) {
	if strings.TrimSpace(n.text) == "" {
		if n.text == "" && s.accepts(c.dialect.ctx, "") {
			return
		}
		c.report.fault(n, "bad-value", "write an expression in CEL, or leave the key out", "%s is empty", p.subject())
		return
	}
	if n.cut.Line > 0 && unbalanced(n.text) {
		n.cut.Len = 1
		c.report.fault(&node{pos: n.cut}, "syntax", quoteHint, `the value of %s ends at " #", where a comment starts in YAML`, p.subject())
		n.bad = true
		return
	}
	if yes := yesNo[strings.ToLower(strings.TrimSpace(n.text))]; yes != "" && s.kinds&cue.BoolKind != 0 && s.accepts(c.dialect.ctx, yes == "true") {
		c.report.mendable(n, c.report.unquote(n, yes), "bad-value", "write "+yes, "%s must be %s, not %s", p.subject(), s.expects(), found(n))
		return
	}
	if s.kinds&cue.NumberKind != 0 && plainKind(n.text) == number { // a constant in CEL has the bounds of one outside
		if v, err := parseNumber(n.text); err != nil || !s.accepts(c.dialect.ctx, v) {
			c.badValue(s, n, p)
		}
		return
	}
	if words := s.words(); words != nil && !slices.Contains(words, n.text) && bareWord(n.text) {
		c.badValue(s, n, p)
	}
}

// unbalanced reports whether an expression ends inside a text in quotes or inside brackets.
func unbalanced(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'', '"':
			quote := s[i]
			for i++; i < len(s) && s[i] != quote; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			if i >= len(s) {
				return true
			}
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
	}
	return depth > 0
}

// bareWord reports whether a text is one word, which as CEL would be a variable.
func bareWord(s string) bool {
	for i, c := range s {
		if c != '_' && c != '-' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}
