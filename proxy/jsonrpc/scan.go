package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest; encoding/json draws the same line.
const maxDepth = 10000

// Reasons for which a scan stops. They are completed with the offset by syntaxError.
const (
	whyEnd     = "unexpected end of JSON"
	whyByte    = "unexpected character"
	whyUTF8    = "invalid UTF-8"
	whyControl = "unescaped control character in a string"
	whyEscape  = "invalid escape in a string"
	whyNumber  = "invalid number"
	whyDepth   = "arrays and objects nest too deep"
	whyBreak   = "raw line break inside the frame"
)

// Masks for the eight bytes of a word.
const (
	ones    = 0x0101010101010101
	tops    = 0x80 * ones
	spaces  = ' ' * ones
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// plain holds the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// scanString checks the string whose opening quote is b[i] and returns the offset after its closing quote. If it is
// not a valid JSON string in valid UTF-8, it returns the offset of the fault and the reason.
func scanString(b []byte, i int) (int, string) {
	first := i + 1
	i = first
	var high uint64 // gathers the top bits of all bytes: set if any is not ASCII
	for {
		special := false
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			// Each term borrows only out of a byte that is itself a hit, so the lowest marked byte is always exact.
			m := ((x - spaces) | ((x ^ quotes) - ones) | ((x ^ slashes) - ones)) & ^x & tops
			if m != 0 {
				n := bits.TrailingZeros64(m) &^ 7
				high |= x & (1<<n - 1)
				i += n >> 3
				special = true
				break
			}
			high |= x
			i += 8
		}
		if !special {
			for i < len(b) && plain[b[i]] {
				high |= uint64(b[i])
				i++
			}
			if i == len(b) {
				return i, whyEnd
			}
		}
		switch b[i] {
		case '"':
			if high&tops != 0 && !utf8.Valid(b[first:i]) {
				return invalidUTF8(b, first), whyUTF8
			}
			return i + 1, ""
		case '\\':
			n := escapeLen(b, i)
			if n == 0 {
				return i, whyEscape
			}
			i += n
		case '\n', '\r':
			return i, whyBreak
		default:
			return i, whyControl
		}
	}
}

// escapeLen returns the length of the escape sequence at b[i], a backslash, or 0 if it is not one.
func escapeLen(b []byte, i int) int {
	if i+1 >= len(b) {
		return 0
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(b, i+2) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 returns the number that four hexadecimal digits at b[i] spell, or -1.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// invalidUTF8 returns the offset of the first byte at or after i that does not belong to valid UTF-8.
func invalidUTF8(b []byte, i int) int {
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return i
}

// scanNumber checks the number that begins at b[i] and returns the offset after it.
func scanNumber(b []byte, i int) (int, string) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else {
		n := digits(b, i)
		if n == i {
			return i, whyNumber
		}
		i = n
	}
	if i < len(b) && b[i] == '.' {
		n := digits(b, i+1)
		if n == i+1 {
			return n, whyNumber
		}
		i = n
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := digits(b, i)
		if n == i {
			return n, whyNumber
		}
		i = n
	}
	return i, ""
}

// digits returns the offset after the decimal digits at b[i].
func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// skipSpace returns the offset of the first byte at or after i that is no white space. Line breaks count as white
// space only if breaks is set.
func skipSpace(b []byte, i int, breaks bool) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t':
		case '\n', '\r':
			if !breaks {
				return i
			}
		default:
			return i
		}
		i++
	}
	return i
}

// unexpected is the reason for which a scan stops at b[i], where the grammar allows something else.
func unexpected(b []byte, i int) (int, string) {
	switch {
	case i >= len(b):
		return len(b), whyEnd
	case b[i] == '\n' || b[i] == '\r':
		return i, whyBreak
	}
	return i, whyByte
}

// scanValue checks the JSON value that begins at or after b[i], past white space, and returns its first offset and
// the one after it. depth is the number of containers around it. If there is no valid value, why holds the reason and
// end the offset of the fault. It keeps its own stack, one bit a level, so that depth costs no recursion.
func scanValue(b []byte, i, depth int, breaks bool) (start, end int, why string) {
	var small [4]uint64
	stack := small[:]
	level := 0        // containers opened here
	inObject := false // whether the innermost of them is an object

	i = skipSpace(b, i, breaks)
	start = i
	for {
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i, breaks)
		}
		if i >= len(b) {
			return start, len(b), whyEnd
		}
		switch c := b[i]; c {
		case '"':
			if i, why = scanString(b, i); why != "" {
				return start, i, why
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if i, why = scanNumber(b, i); why != "" {
				if i >= len(b) {
					why = whyEnd
				}
				return start, i, why
			}
		case 't', 'f', 'n':
			n := literal(b, i)
			if n == 0 {
				i, why = unexpected(b, i)
				return start, i, why
			}
			i += n
		case '{', '[':
			if depth+level >= maxDepth {
				return start, i, whyDepth
			}
			if level>>6 >= len(stack) {
				stack = append(stack, 0)
			}
			bit := uint64(1) << (level & 63)
			if inObject {
				stack[level>>6] |= bit
			} else {
				stack[level>>6] &^= bit
			}
			level++
			inObject = c == '{'
			i = skipSpace(b, i+1, breaks)
			if i < len(b) && b[i] == c+2 { // '}' and ']' follow their openers by two
				break
			}
			if inObject {
				if i, why = scanKey(b, i, breaks); why != "" {
					return start, i, why
				}
			}
			continue
		default:
			i, why = unexpected(b, i)
			return start, i, why
		}

		// A value has ended, or a container is about to: close what ends here, then go to the next value.
		for {
			if level == 0 {
				return start, i, ""
			}
			if i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i, breaks)
			}
			if i >= len(b) {
				return start, len(b), whyEnd
			}
			c := b[i]
			if c == ',' {
				i++
				if inObject {
					i = skipSpace(b, i, breaks)
					if i, why = scanKey(b, i, breaks); why != "" {
						return start, i, why
					}
				}
				break
			}
			if inObject && c != '}' || !inObject && c != ']' {
				i, why = unexpected(b, i)
				return start, i, why
			}
			i++
			level--
			inObject = stack[level>>6]&(1<<(level&63)) != 0
		}
	}
}

// scanKey checks the member name at b[i] with the colon behind it and returns the offset after the colon.
func scanKey(b []byte, i int, breaks bool) (int, string) {
	if i >= len(b) || b[i] != '"' {
		return unexpected(b, i)
	}
	i, why := scanString(b, i)
	if why != "" {
		return i, why
	}
	if i < len(b) && b[i] <= ' ' {
		i = skipSpace(b, i, breaks)
	}
	if i >= len(b) || b[i] != ':' {
		return unexpected(b, i)
	}
	return i + 1, ""
}

// literal returns the length of the true, false or null at b[i], or 0.
func literal(b []byte, i int) int {
	rest := b[i:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "null", len(rest) >= 4 && string(rest[:4]) == "true":
		return 4
	case len(rest) >= 5 && string(rest[:5]) == "false":
		return 5
	}
	return 0
}
