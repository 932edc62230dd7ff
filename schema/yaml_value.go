package schema

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file says what a scalar is: its kind, by how it is written or by its tag, and its place.

var (
	yamlNumber = pattern(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)
	// A number with a leading zero is octal to some readers and decimal to others: it stays text, and where a number is
	// wanted, it is refused.
	leadingZero = pattern(`^[-+]?0[0-9_]`)
)

// plainKind is what a scalar without quotes is: the JSON-like core of YAML 1.2, so that yes, no, on, off, 0123, 12:30:00
// and 2026-01-01 are text.
func plainKind(s string) kind {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return null
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return boolean
	}
	if yamlNumber().MatchString(s) && !leadingZero().MatchString(s) {
		return number
	}
	return text
}

func (y *yamlReader) scalar(out *node, n *yaml.Node, off int, key string) {
	out.text = n.Value
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	start := skipProperties(y.src.text, off)
	if start != off {
		out.pos = y.src.next(start, start+1)
	}
	if y.foreignTag(out, n, off, key) {
		return
	}
	out.plain = !quoted
	out.kind = text
	if out.plain && n.Style&yaml.TaggedStyle == 0 {
		out.kind = plainKind(n.Value)
	} else if n.Style&yaml.TaggedStyle != 0 {
		switch n.ShortTag() {
		case "!!int", "!!float":
			out.kind = number
		case "!!bool":
			out.kind = boolean
		case "!!null":
			out.kind = null
		}
		if out.kind != text && plainKind(n.Value) != out.kind {
			y.report.fault(out, "bad-value", "", "%q is not %s, as its tag %s says", n.Value, out.kind, n.ShortTag())
			return
		}
	}
	out.pos.Len = max(1, len([]rune(n.Value)))
	end := start + len(n.Value)
	if simple := end <= len(y.src.text) && y.src.text[start:end] == n.Value && out.plain; simple {
		whole := out.pos
		out.at = func(i int) Pos {
			p := whole
			i = min(max(i, 0), len(n.Value))
			p.Col += len([]rune(n.Value[:i]))
			p.Len = 1
			return p
		}
		out.cut = y.comment(n, end)
		return
	}
	text, value, style := y.src.text, n.Value, n.Style
	find := func() []int { return scalarOffsets(text, start, value, style) }
	if quoted && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		out.pos.Len = max(1, y.src.width(start, quotedEnd(text, start)))
	} else if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		out.pos.Len = 1
	} else if i := strings.IndexAny(text[start:], "\r\n"); i >= 0 {
		out.pos.Len = max(1, len([]rune(strings.TrimRight(text[start:start+i], " \t"))))
	}
	out.at = y.src.mapped(out.pos, find)
}

// comment returns the place of a comment that ends the line of a plain scalar, for an expression may have been meant to go on.
func (y *yamlReader) comment(n *yaml.Node, end int) Pos {
	if n.LineComment == "" {
		return Pos{}
	}
	i := strings.IndexByte(y.src.text[end:], '#')
	if i < 0 || strings.TrimLeft(y.src.text[end:end+i], " \t") != "" {
		return Pos{}
	}
	return y.src.pos(end+i, end+i+1)
}

// foreignTag complains of a tag that is not YAML's own: nearly always an expression that begins with an exclamation mark.
func (y *yamlReader) foreignTag(out *node, n *yaml.Node, off int, key string) bool {
	if n.Style&yaml.TaggedStyle == 0 {
		return false
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!":
		return false
	}
	out.pos = y.src.pos(off, off+len(n.Tag))
	fix := Fix{}
	if !y.report.full() {
		fix = y.src.quoted(off)
	}
	y.report.mendable(out, fix, "syntax", quoteHint, "the value of %s begins with %q, which is a tag in YAML", named(key), "!")
	return true
}

const quoteHint = "put the whole value in single quotes, or on the next line after a |"

// named is a key in a message.
func named(key string) string {
	if key == "" {
		return "this entry"
	}
	return `"` + key + `"`
}

// skipProperties returns the offset of a scalar whose anchor or tag stands before it.
func skipProperties(s string, off int) int {
	for off < len(s) && (s[off] == '&' || s[off] == '!') {
		i := strings.IndexAny(s[off:], " \t\r\n,]}")
		if i < 0 {
			return off
		}
		next := off + i
		for next < len(s) && (s[next] == ' ' || s[next] == '\t') {
			next++
		}
		if next == off+i {
			return off
		}
		off = next
	}
	return off
}
