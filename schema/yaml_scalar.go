package schema

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// scalarOffsets returns, for each byte of a scalar's value and one past its end, the offset in src of what it came from.
// start is the scalar's first byte in src: its quote, or the | or > of a block. It walks value and source together; nil
// means that they do not fit, so the place of the whole scalar must do.
func scalarOffsets(src string, start int, value string, style yaml.Style) []int {
	w := scalarWalk{src: src, p: start, value: value, at: make([]int, 0, len(value)+1)}
	var ok bool
	switch {
	case style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		ok = w.block(style&yaml.FoldedStyle != 0)
	case style&yaml.DoubleQuotedStyle != 0:
		w.p++
		ok = w.flow('"')
	case style&yaml.SingleQuotedStyle != 0:
		w.p++
		ok = w.flow('\'')
	default:
		ok = w.flow(0)
	}
	if !ok {
		return nil
	}
	return append(w.at, w.p)
}

// scalarWalk is a position in a scalar's source (p) and, by the length of at, in its value.
type scalarWalk struct {
	src   string
	p     int
	value string
	at    []int
}

func (w *scalarWalk) done() bool { return len(w.at) == len(w.value) }

// take says that the next n bytes of the value come from the source at p.
func (w *scalarWalk) take(n int) {
	for range n {
		w.at = append(w.at, w.p)
	}
}

// breakAt returns the length of the line break at offset i; 0 if there is none.
func (w *scalarWalk) breakAt(i int) int {
	switch {
	case strings.HasPrefix(w.src[i:], "\r\n"):
		return 2
	case i < len(w.src) && (w.src[i] == '\n' || w.src[i] == '\r'):
		return 1
	}
	return 0
}

func (w *scalarWalk) blanks(i int) int {
	for i < len(w.src) && (w.src[i] == ' ' || w.src[i] == '\t') {
		i++
	}
	return i
}

// flow walks a plain or quoted scalar, whose line breaks fold: one is a space, each further one is a newline.
func (w *scalarWalk) flow(quote byte) bool {
	for !w.done() {
		if w.p >= len(w.src) {
			return false
		}
		c := w.src[w.p]
		switch {
		case quote == '"' && c == '\\':
			if !w.escape() {
				return false
			}
		case quote == '\'' && c == '\'':
			if !strings.HasPrefix(w.src[w.p:], "''") || w.value[len(w.at)] != '\'' {
				return false
			}
			w.take(1)
			w.p += 2
		case w.breakAt(w.blanks(w.p)) > 0:
			if !w.fold() {
				return false
			}
		default:
			if w.value[len(w.at)] != c {
				return false
			}
			w.take(1)
			w.p++
		}
	}
	return true
}

// escape walks one escape of a double-quoted scalar.
func (w *scalarWalk) escape() bool {
	if w.p+1 >= len(w.src) {
		return false
	}
	if n := w.breakAt(w.p + 1); n > 0 { // a backslash at the end of a line joins it with the next
		w.p = w.blanks(w.p + 1 + n)
		return true
	}
	width := 2
	switch w.src[w.p+1] {
	case 'x':
		width = 4
	case 'u':
		width = 6
	case 'U':
		width = 10
	}
	_, size := utf8.DecodeRuneInString(w.value[len(w.at):])
	w.take(size)
	w.p += width
	return w.p <= len(w.src)
}

// fold walks line breaks and the blanks around them.
func (w *scalarWalk) fold() bool {
	q, breaks := w.blanks(w.p), 0
	for n := w.breakAt(q); n > 0; n = w.breakAt(q) {
		q = w.blanks(q + n)
		breaks++
	}
	want, n := "\n", breaks-1
	if breaks == 1 {
		want, n = " ", 1
	}
	if !strings.HasPrefix(w.value[len(w.at):], strings.Repeat(want, n)) {
		return false
	}
	w.take(n)
	w.p = q
	return true
}

// block walks a scalar after | or >.
func (w *scalarWalk) block(folded bool) bool {
	w.skipLine()
	indent := w.indentation()
	for !w.done() {
		if w.p >= len(w.src) {
			return false
		}
		for n := 0; n < indent && w.p < len(w.src) && w.src[w.p] == ' '; n++ {
			w.p++
		}
		for w.p < len(w.src) && w.breakAt(w.p) == 0 {
			if w.done() || w.value[len(w.at)] != w.src[w.p] {
				return w.done()
			}
			w.take(1)
			w.p++
		}
		if w.done() {
			return true
		}
		if !w.blockBreak(folded) {
			return false
		}
	}
	return true
}

// blockBreak walks one line break of a block. In a folded one a single break is a space, and of several all but the first are
// kept, unless a line beside them is indented further; so each break takes a newline of the value while there are any.
func (w *scalarWalk) blockBreak(folded bool) bool {
	n := w.breakAt(w.p)
	if n == 0 {
		return false
	}
	switch c := w.value[len(w.at)]; {
	case c == '\n', folded && c == ' ':
		w.take(1)
	case !folded:
		return false
	}
	w.p += n
	return true
}

func (w *scalarWalk) skipLine() {
	for w.p < len(w.src) {
		if n := w.breakAt(w.p); n > 0 {
			w.p += n
			return
		}
		w.p++
	}
}

// indentation is that of the block's first line with text, less what its value keeps of it.
func (w *scalarWalk) indentation() int {
	lead := func(s string) int {
		for line := range strings.Lines(s) {
			if t := strings.TrimLeft(line, " "); strings.TrimRight(t, "\r\n") != "" {
				return len(line) - len(t)
			}
		}
		return 0
	}
	return max(0, lead(w.src[w.p:])-lead(w.value))
}

// quotedEnd returns the offset past the closing quote of the scalar that starts at start.
func quotedEnd(src string, start int) int {
	if start >= len(src) {
		return start
	}
	quote := src[start]
	for i := start + 1; i < len(src); i++ {
		switch {
		case quote == '"' && src[i] == '\\':
			i++
		case src[i] == quote && quote == '\'' && i+1 < len(src) && src[i+1] == '\'':
			i++
		case src[i] == quote:
			return i + 1
		}
	}
	return len(src)
}
