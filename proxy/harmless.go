package proxy

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainText takes the escape sequences of terminals out of a line (colours, cursor movements, titles) and makes the rest
// harmless.
func plainText(s string) string {
	if strings.IndexByte(s, '\x1b') < 0 {
		return harmless(s, false)
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\x1b')
		if i < 0 {
			b.WriteString(s)
			return harmless(b.String(), false)
		}
		b.WriteString(s[:i])
		s = s[i+escapeLen(s[i:]):]
	}
}

// escapeLen returns the length of the escape sequence at the start of s (ECMA-48: CSI up to its final byte, OSC and the
// other strings up to their terminator, else the escape with the byte that follows).
func escapeLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_':
		for i := 2; i < len(s); i++ {
			if s[i] == '\a' {
				return i + 1
			}
			if s[i] == '\x1b' && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return len(s)
	}
	_, n := utf8.DecodeRuneInString(s[1:])
	return 1 + n
}

// harmless replaces what could change the look of a terminal, forge a line or hide text by visible escapes: control
// characters, invisible and direction-changing ones, invalid UTF-8. Newlines are kept if asked for; a tab becomes a space.
func harmless(s string, newlines bool) string {
	i := 0
	for i < len(s) && s[i] >= ' ' && s[i] < 0x7f {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for _, r := range s[i:] {
		switch {
		case r == '\n' && newlines || r == utf8.RuneError || unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\t' || unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case r == '\n':
			b.WriteString(`\n`)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
