package schema

import (
	"strings"
	"unicode/utf8"

	"cuelang.org/go/cue/literal"
)

// cueOffsets returns, for each byte of a decoded string and one past its end, the offset in the file of what it came from; nil if
// the literal is not that string.
func cueOffsets(raw string, start int, value string) []int {
	q, open, _, err := literal.ParseQuotes(raw, raw)
	if err != nil {
		return nil
	}
	hashes := len(raw) - len(strings.TrimLeft(raw, "#"))
	escape := `\` + strings.Repeat("#", hashes)
	w := scalarWalk{src: raw, p: open, value: value}
	if q.IsMulti() {
		w.skipBlankLine()
	}
	indent := ""
	if q.IsMulti() {
		body := strings.TrimRight(raw, "#")
		body = body[:len(body)-3]
		indent = body[strings.LastIndexByte(body, '\n')+1:]
		w.p += commonPrefix(raw[w.p:], indent)
	}
	for !w.done() {
		if w.p >= len(raw) {
			return nil
		}
		switch n := w.breakAt(w.p); {
		case n > 0 && q.IsMulti():
			if value[len(w.at)] != '\n' {
				return nil
			}
			w.take(1)
			w.p += n
			w.p += commonPrefix(raw[w.p:], indent)
		case strings.HasPrefix(raw[w.p:], escape):
			if !w.cueEscape(len(escape)) {
				return nil
			}
		case raw[w.p] == value[len(w.at)]:
			w.take(1)
			w.p++
		default:
			return nil
		}
	}
	at := append(w.at, w.p)
	for i := range at {
		at[i] += start
	}
	return at
}

func (w *scalarWalk) skipBlankLine() {
	if n := w.breakAt(w.p); n > 0 {
		w.p += n
	}
}

// cueEscape walks one escape, whose mark is intro bytes long.
func (w *scalarWalk) cueEscape(intro int) bool {
	i := w.p + intro
	if i >= len(w.src) {
		return false
	}
	width, ok := map[byte]int{
		'a': 1, 'b': 1, 'f': 1, 'n': 1, 'r': 1, 't': 1, 'v': 1, '/': 1, '\\': 1, '\'': 1, '"': 1, 'u': 5, 'U': 9, 'x': 3,
	}[w.src[i]]
	if !ok {
		return false
	}
	_, size := utf8.DecodeRuneInString(w.value[len(w.at):])
	w.take(size)
	w.p = i + width
	return w.p <= len(w.src)
}

func commonPrefix(s, prefix string) int {
	n := 0
	for n < len(prefix) && n < len(s) && s[n] == prefix[n] {
		n++
	}
	return n
}
