package main

import (
	"strings"
	"unicode"
)

// columns is how wide a text is on a terminal: a letter of East Asia and a picture take two columns, a mark on a letter none.
func columns(text string) (width int) {
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case r >= 0xff61 && r <= 0xffdc: // the half-width forms of such letters
			width++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul), unicode.Is(wide, r):
			width += 2
		default:
			width++
		}
	}
	return width
}

// wide are the other characters that take two columns: punctuation of East Asia, full-width forms, and pictures.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3000, Hi: 0x303e, Stride: 1}, {Lo: 0x30fb, Hi: 0x30fc, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1}, {Lo: 0x1f900, Hi: 0x1faff, Stride: 1}},
}

// padded is a text with blanks behind it up to a width.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}
