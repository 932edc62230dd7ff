package policytest

import (
	"strings"
	"unicode"
)

// ready is text of a report that is written as it is. All other text comes from files or from a server, and goes through [harmless].
type ready string

// harmless is a text that stays on its line, and neither acts on a terminal nor hides in it.
func harmless(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsPrint(c):
			return c
		case unicode.IsSpace(c):
			return ' '
		}
		return unicode.ReplacementChar
	}, s)
}

// harmlessLines is harmless for a text of several lines, of which all but the first are indented.
func harmlessLines(s, indent string) ready {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = harmless(lines[i])
	}
	return ready(strings.Join(lines, "\n"+indent))
}

// inert is a text in whose lines GitHub sees no workflow command: it looks for :: at their beginning, blanks aside, and for ##[
// anywhere.
func inert(text string) string {
	if !strings.Contains(text, "::") && !strings.Contains(text, "##[") {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "##[", "## [")) {
		if strings.HasPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "::") {
			out.WriteString("| ")
		}
		out.WriteString(line)
	}
	return out.String()
}
