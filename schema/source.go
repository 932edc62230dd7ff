package schema

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// source is the text of a file and where its lines begin, as an editor counts them.
type source struct {
	file  string
	text  string
	lines []int // offset of the first byte of each line

	// The last place that was asked for: nodes come in the order of the text, and a file may be one long line.
	lastOff, lastLine, lastCol int
}

func newSource(file, text string) *source {
	s := &source{file: file, text: text, lines: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' || text[i] == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			s.lines = append(s.lines, i+1)
		}
	}
	return s
}

// pos returns the place of the bytes from off to end. The length ends with the first line.
func (s *source) pos(off, end int) Pos {
	off = min(max(off, 0), len(s.text))
	line, col := s.lineCol(off)
	return Pos{File: s.file, Line: line, Col: col, Len: s.width(off, end)}
}

// next is pos for a parser that walks through the text: it counts on from the place before.
func (s *source) next(off, end int) Pos {
	off = min(max(off, 0), len(s.text))
	if s.lastLine == 0 || off < s.lastOff || s.lastLine < len(s.lines) && off >= s.lines[s.lastLine] {
		s.lastLine, s.lastCol = s.lineCol(off)
	} else {
		s.lastCol += utf8.RuneCountInString(s.text[s.lastOff:off])
	}
	s.lastOff = off
	return Pos{File: s.file, Line: s.lastLine, Col: s.lastCol, Len: s.width(off, end)}
}

func (s *source) lineCol(off int) (line, col int) {
	line = sort.SearchInts(s.lines, off+1)
	return line, 1 + utf8.RuneCountInString(s.text[s.lines[line-1]:off])
}

// within is the place of some bytes of a line.
func (s *source) within(n, from, to int) Pos {
	line := s.line(n)
	return Pos{File: s.file, Line: n, Col: 1 + utf8.RuneCountInString(line[:from]), Len: max(1, utf8.RuneCountInString(line[from:to]))}
}

func (s *source) width(off, end int) int {
	end = min(max(end, off), len(s.text))
	span := s.text[off:end]
	if i := strings.IndexAny(span, "\r\n"); i >= 0 {
		span = span[:i]
	}
	return utf8.RuneCountInString(span)
}

// line returns a line without its end; lines count from 1.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimRight(s.text[s.lines[n-1]:end], "\r\n")
}
