package schema

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// parseJSON reads JSON with comments and trailing commas.
func parseJSON(src *source, r *report) *node {
	if at, deep := tooDeep(src.text); deep {
		r.errorAt(src.pos(at, at+1), "syntax", "", "values are nested more than %d deep", maxDepth)
		return nil
	}
	v, err := hujson.Parse([]byte(src.text))
	if err != nil { // to the parser, a comment ends with its line: not with the file
		if whole, inLines := hujson.Parse([]byte(src.text + "\n")); inLines == nil {
			v, err = whole, nil
		}
	}
	if err != nil {
		explainJSON(src, err, r)
		return nil
	}
	return (&jsonReader{src: src}).node(&v)
}

// tooDeep finds where brackets are nested deeper than we read: parsers that recurse have no such bound.
func tooDeep(s string) (at int, deep bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = quotedEnd(s, i) - 1
		case '/':
			i = commentEnd(s, i) - 1
		case '[', '{', '(':
			if depth++; depth > maxDepth {
				return i, true
			}
		case ']', '}', ')':
			depth--
		}
	}
	return 0, false
}

// commentEnd returns the offset past the comment that starts at i, or i+1 if none does.
func commentEnd(s string, i int) int {
	end, skip := -1, 0
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, "//"):
		end, skip = strings.IndexByte(rest, '\n'), 1
	case strings.HasPrefix(rest, "/*"):
		end, skip = strings.Index(rest, "*/"), 2
	default:
		return i + 1
	}
	if end < 0 {
		return len(s)
	}
	return i + end + skip
}

// jsonReader turns the parser's values into nodes.
type jsonReader struct{ src *source }

func (j *jsonReader) node(v *hujson.Value) *node {
	end := v.StartOffset + 1
	if _, scalar := v.Value.(hujson.Literal); scalar {
		end = v.EndOffset
	}
	n := &node{pos: j.src.next(v.StartOffset, end)}
	switch t := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		for i := range t.Members {
			m := &t.Members[i]
			n.fields = append(n.fields, field{key: j.node(&m.Name), value: j.node(&m.Value)})
		}
	case *hujson.Array:
		n.kind = list
		for i := range t.Elements {
			n.items = append(n.items, j.node(&t.Elements[i]))
		}
	case hujson.Literal:
		j.literal(n, t, v.StartOffset)
	}
	return n
}

func (j *jsonReader) literal(n *node, t hujson.Literal, start int) {
	n.text, n.plain = string(t), true
	switch t.Kind() {
	case 'n':
		n.kind, n.plain = null, false
	case 't', 'f':
		n.kind = boolean
	case '0':
		n.kind = number
	default:
		n.kind, n.plain = text, false
		raw := string(t)
		n.text = t.String()
		value := n.text
		n.at = j.src.mapped(n.pos, func() []int { return jsonOffsets(raw, start, value) })
	}
}

// jsonOffsets returns, for each byte of a decoded string and one past its end, the offset in the file of what it came from.
func jsonOffsets(raw string, start int, value string) []int {
	at := make([]int, 0, len(value)+1)
	p := 1
	for len(at) < len(value) && p < len(raw) {
		width := 1
		if raw[p] == '\\' {
			width = 2
			if strings.HasPrefix(raw[p:], `\u`) {
				width = 6
				if strings.HasPrefix(raw[min(p+6, len(raw)):], `\u`) && value[len(at)] >= 0xf0 { // two halves of one character
					width = 12
				}
			}
		}
		_, size := utf8.DecodeRuneInString(value[len(at):])
		if width == 1 {
			_, width = utf8.DecodeRuneInString(raw[p:])
		}
		for range size {
			at = append(at, start+p)
		}
		p += width
	}
	if len(at) != len(value) {
		return nil
	}
	return append(at, start+p)
}

var jsonErrorPlace = pattern(`line (\d+), column (\d+)`)

// explainJSON puts the parser's complaint in our words. Its column counts bytes.
func explainJSON(src *source, err error, r *report) {
	off := len(src.text)
	if m := jsonErrorPlace().FindStringSubmatch(err.Error()); m != nil {
		var line, col int
		_, _ = fmt.Sscan(m[1]+" "+m[2], &line, &col)
		if begin := nthLine(src.text, line); begin >= 0 {
			off = min(begin+col-1, len(src.text))
		}
	}
	msg := err.Error()
	pos := src.pos(off, off+1)
	switch {
	case strings.TrimSpace(src.text) == "":
		r.errorAt(Pos{File: src.file, Line: 1, Col: 1}, "missing-key", startHint, "the file states nothing")
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.errorAt(pos, "syntax", "close every bracket and quote", "the JSON text ends too early")
	case strings.Contains(msg, "after object value"):
		r.errorAt(pos, "syntax", "put a comma between two entries", "expected a comma or } here")
	case strings.Contains(msg, "after array value"):
		r.errorAt(pos, "syntax", "put a comma between two items", "expected a comma or ] here")
	case strings.Contains(msg, "object name"):
		r.errorAt(pos, "syntax", "a key stands in double quotes, and a colon follows it", "expected a key or a colon here")
	case strings.Contains(msg, "after top-level value"):
		r.errorAt(pos, "syntax", "a JSON file holds one object", "there is more text after the end of the JSON value")
	case strings.Contains(msg, "string") || strings.Contains(msg, "escape"):
		r.errorAt(pos, "syntax", `write a line break as \n and a backslash as \\`, "this text in quotes is not valid JSON")
	default:
		r.errorAt(pos, "syntax", "a value is text in double quotes, a number, true, false, null, a list or a map", "this is not a JSON value")
	}
}

// nthLine returns the offset of a line as the JSON parser counts lines, or -1.
func nthLine(s string, line int) int {
	off := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(s[off:], '\n')
		if i < 0 {
			return -1
		}
		off += i + 1
	}
	return off
}
