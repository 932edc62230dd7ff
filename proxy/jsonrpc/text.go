package jsonrpc

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text of a JSON string token. ok is false if raw is anything but one valid string. A half of a
// surrogate pair that stands alone, which no UTF-8 can express, becomes U+FFFD.
func Text(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	if end, why := scanString(raw, 0); why != "" || end != len(raw) {
		return "", false
	}
	return string(decoded(raw)), true
}

// decoded returns the text of a valid string token: a part of raw if it has no escapes.
func decoded(raw []byte) []byte {
	text := raw[1 : len(raw)-1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	return appendUnescaped(make([]byte, 0, len(text)), text, false)
}

// appendUnescaped appends the text between the quotes of a valid string token. A lone surrogate becomes U+FFFD, or,
// if keep is set, the three bytes that UTF-8 would have for it, which can stand for nothing else.
func appendUnescaped(dst, text []byte, keep bool) []byte {
	for {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:n]...)
		c := text[n+1]
		if c != 'u' {
			dst = append(dst, unescaped(c))
			text = text[n+2:]
			continue
		}
		r := hex4(text, n+2)
		text = text[n+6:]
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
				pair = utf16.DecodeRune(r, hex4(text, 2))
			}
			if pair != utf8.RuneError {
				r, text = pair, text[6:]
			} else if keep {
				dst = append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
				continue
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// unescaped returns the byte that a backslash with c stands for.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string and returns the extended slice. It escapes only what must be: the quote, the
// backslash and control characters. The result is always valid UTF-8: each invalid byte of s becomes U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !plain[c] {
				dst = append(dst, s[done:i]...)
				dst = appendEscape(dst, c)
				done = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[done:i]...)
			dst = append(dst, "\uFFFD"...)
			done = i + 1
		}
		i += n
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// appendEscape appends the shortest escape of c, a byte that may not stand for itself in a string.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// Repair replaces each run of bytes of frame that is not valid UTF-8 by U+FFFD, for peers that write text in some
// other encoding. It reports whether there were any; if not, it returns frame itself. The input is never changed.
func Repair(frame []byte) ([]byte, bool) {
	if utf8.Valid(frame) {
		return frame, false
	}
	return bytes.ToValidUTF8(frame, []byte("\uFFFD")), true
}
