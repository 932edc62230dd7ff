package schema

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Render writes the findings for people, each with its line of src, a caret under what is meant, what to do, and
// the number by which explain knows more of it:
//
//	bad.yaml:7:30: error[unknown-key]: unknown key "backof" in "retry" (MR001)
//	    7 |     retry: {max_retries: 3, backof: linear}
//	      |                             ^^^^^^ did you mean "backoff"?
//
// src is the text of the file that the findings are about. color adds terminal colours.
func (fs Findings) Render(w io.Writer, src []byte, color bool) {
	paint := painter(color)
	text := newSource("", string(stripBOM(src)))
	for _, f := range fs {
		level := f.Level.String()
		code := f.Code()
		if code != "" {
			code = paint.dim(" (" + code + ")")
		}
		_, _ = fmt.Fprintf(w, "%s: %s: %s%s\n", paint.bold(f.Pos.String()), paint.level(f.Level, level+"["+f.ID+"]"), visible(f.Message), code)
		hint := visible(f.Hint)
		if f.Pos.Line < 1 || f.Pos.Line > len(text.lines) {
			if hint != "" {
				_, _ = fmt.Fprintf(w, "      = %s\n", hint)
			}
			continue
		}
		line, pad, carets := excerpt(text.line(f.Pos.Line), f.Pos)
		if hint != "" {
			hint = " " + hint
		}
		_, _ = fmt.Fprintf(w, "%5d | %s\n      | %s%s%s\n", f.Pos.Line, line, pad, paint.level(f.Level, carets), hint)
	}
}

// Bounds of an excerpt: a file may be one long line.
const (
	excerptWidth = 120
	excerptLead  = 40 // characters kept before the place when the line is cut
)

// excerpt returns a line, cut around the place if it is long, what stands before the caret, and the caret itself.
func excerpt(line string, p Pos) (shown, pad, carets string) {
	runes := []rune(line)
	from, to := 0, len(runes)
	start := min(max(p.Col-1, 0), len(runes))
	if len(runes) > excerptWidth {
		from = max(0, min(start-excerptLead, len(runes)-excerptWidth))
		to = min(len(runes), from+excerptWidth)
	}
	var out, before strings.Builder
	if from > 0 {
		out.WriteString("...")
		before.WriteString("   ")
	}
	for i, c := range runes[from:to] {
		if c == '\t' {
			c = ' '
		}
		if !unicode.IsPrint(c) {
			c = '\uFFFD'
		}
		out.WriteRune(c)
		if i+from < start {
			before.WriteString(strings.Repeat(" ", columns(c)))
		}
	}
	if to < len(runes) {
		out.WriteString("...")
	}
	width := 0
	for _, c := range runes[start:min(start+max(p.Len, 1), max(to, start))] {
		width += columns(c)
	}
	return out.String(), before.String(), strings.Repeat("^", max(width, 1))
}

// columns is how many columns of a terminal a character takes, near enough: the wide ones of East Asia and emoji take two, marks
// that combine take none.
func columns(c rune) int {
	switch {
	case unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case c >= 0x1100 && (c <= 0x115f || c >= 0x2e80 && c <= 0xa4cf || c >= 0xac00 && c <= 0xd7a3 || c >= 0xf900 && c <= 0xfaff ||
		c >= 0xfe30 && c <= 0xfe6f || c >= 0xff00 && c <= 0xff60 || c >= 0x1f300 && c <= 0x1faff || c >= 0x20000 && c <= 0x3fffd):
		return 2
	}
	return 1
}

// visible replaces what would act on a terminal: a finding quotes the user's file.
func visible(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, s)
}

// painter adds terminal colours, or does not.
type painter bool

func (p painter) dim(s string) string { return p.with("2", s) }

func (p painter) bold(s string) string { return p.with("1", s) }

func (p painter) level(l Level, s string) string {
	return p.with([...]string{Error: "1;31", Warning: "1;33", Note: "1;36"}[min(l, Note)], s)
}

func (p painter) with(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
