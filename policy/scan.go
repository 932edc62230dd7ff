package policy

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxDepth bounds the nesting that expressions can reach into, so that no recursion over a value can exhaust the stack.
const maxDepth = 512

// skipSpace returns the index of the first byte at or after i that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// scanString returns the index behind the string that starts at b[i], which is a quote, and whether it holds an escape.
// It looks at each byte once, however many escapes there are.
func scanString(b []byte, i int) (end int, escaped, ok bool) {
	i++
	for i <= len(b) {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return 0, false, false
		}
		q += i
		for i <= q {
			e := bytes.IndexByte(b[i:q], '\\')
			if e < 0 {
				return q + 1, escaped, true
			}
			escaped = true
			i += e + 2 // past q if it is the quote that is escaped
		}
	}
	return 0, false, false
}

// scanValue returns the index behind the value that starts at b[i]. It trusts that the text is valid JSON: what it
// promises for other texts is only that it ends.
func scanValue(b []byte, i int) (end int, ok bool) {
	if i >= len(b) {
		return 0, false
	}
	switch b[i] {
	case '"':
		end, _, ok = scanString(b, i)
		return end, ok
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i, _, ok = scanString(b, i); !ok {
					return 0, false
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1, true
				}
			}
			i++
		}
		return 0, false
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] != ':' && b[i] > ' ' {
		i++
	}
	return i, i > start
}

// unquote decodes a JSON string with its quotes.
func unquote(b []byte) (string, bool) {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return "", false
	}
	inner := b[1 : len(b)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return "", false
	}
	return s, true
}
