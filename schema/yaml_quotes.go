package schema

import "strings"

// This file finds the bounds of values that need quotes in YAML and have none, and says whether they may be given them.

// quoted is the correction that puts what begins with an exclamation mark, up to the end of its line or a comment, in single
// quotes. There is none if the value may go on elsewhere, or ends before the line does.
func (s *source) quoted(off int) Fix {
	if off > maxQuoted {
		return Fix{}
	}
	value, _, _ := strings.Cut(s.text[off:], "\n")
	if i := strings.Index(value, " #"); i >= 0 {
		value = value[:i]
	}
	value = strings.TrimRight(value, " \t\r")
	before := s.text[strings.LastIndexByte(s.text[:off], '\n')+1 : off]
	if strings.Contains(value+" ", ": ") { // it is a key, or has one
		return Fix{}
	}
	if !negation().MatchString(value) || !blockBefore().MatchString(before) || strings.Contains(value, "'") || unbalanced(value) || s.continues(off) || openBracket(s.text[:off]) >= 0 {
		return Fix{}
	}
	return Fix{Pos: s.pos(off, off+len(value)), Text: "'" + value + "'"}
}

// maxQuoted is the offset from which no value is put in quotes: to see that it stands in no bracket takes a look at all before it.
const maxQuoted = 1 << 16

// blockBefore is what stands before a value of a block map or list: indentation, dashes, a key.
var blockBefore = pattern(`^ *((- +)+|(- +)*[A-Za-z_][A-Za-z0-9_]*: +)$`)

// negation is how an expression in CEL begins that YAML takes for a tag.
var negation = pattern(`^!!? ?[A-Za-z_(][^\r\x{85}\x{2028}\x{2029}]*$`)

// entryLine is a line that starts an entry of a block map or list.
var entryLine = pattern(`^\s*(- |[A-Za-z_][A-Za-z0-9_]*:(\s|$))`)

// continues reports whether the value at the offset may go on in the next line: YAML takes one that is indented more deeply for a
// part of it.
func (s *source) continues(off int) bool {
	from := strings.LastIndexByte(s.text[:off], '\n') + 1
	indent := len(s.text[from:]) - len(strings.TrimLeft(s.text[from:], " -"))
	_, after, _ := strings.Cut(s.text[off:], "\n")
	for next := range strings.Lines(after) {
		if strings.TrimSpace(next) != "" {
			return len(next)-len(strings.TrimLeft(next, " ")) > indent || !entryLine().MatchString(next)
		}
	}
	return false
}

// bareVariable returns the bounds of a text in brackets that is not quoted and has a variable, ${NAME}, at offset i.
func bareVariable(v string, i int) (begin, end int, ok bool) {
	closing := strings.IndexByte(v[i:], '}')
	if closing < 0 || strings.Contains(v[i:i+closing], "\n") {
		return 0, 0, false
	}
	begin = strings.LastIndexAny(v[:i], " \t\n[{,") + 1
	end = i + closing + 1
	for end < len(v) && !strings.ContainsRune(" \t\r\n,]}", rune(v[end])) {
		if strings.HasPrefix(v[end:], "${") {
			closing = max(strings.IndexByte(v[end:], '}'), 0)
			end += closing
		}
		end++
	}
	return begin, end, true
}

// variableInBrackets finds the first ${NAME} without quotes in a list or map in brackets that goes over several lines.
func variableInBrackets(s string) (begin, end int, ok bool) {
	at := 0
	for range maxVariables {
		next := strings.Index(s[at:], "${")
		if next < 0 {
			break
		}
		at += next
		before := s[strings.LastIndexByte(s[:at], '\n')+1 : at]
		if !strings.ContainsAny(before, `"'#|`) && openBracket(s[:at]) >= 0 {
			return bareVariable(s, at)
		}
		at += len("${")
	}
	return 0, 0, false
}

// maxVariables bounds how many variables are looked at, each of which takes a look at all that stands before it.
const maxVariables = 100

// mendable reports whether a text that is no YAML can be read, but for values, once its findings are corrected.
func mendable(src *source, findings Findings) bool {
	mended, corrected := findings.Mend([]byte(src.text))
	if len(corrected) == 0 {
		return true
	}
	_, err := decodeYAML(string(mended))
	if err == nil {
		return true
	}
	again := newSource(src.file, string(mended))
	faults := explainYAML(again, err, &report{src: again})
	_, err = decodeYAML(blanked(again.text, faults))
	return err == nil && len(faults) > 0
}
