package schema

import (
	"slices"
	"strings"
)

// This file makes and applies corrections. One is made only where the file can have meant but one thing; what a hint merely
// proposes is left to the user.

// sameMeaning are names that other tools have for our keys, with the same kind of value and the same meaning.
var sameMeaning = []string{
	"mcpServers", "mcp_servers", "environment", "cmd", "working_directory", "workdir", "rules", "policies", "if", "condition",
	"max_retry", "maxRetry",
}

// meant is the key that an unknown one can only be a slip of, or "".
func meant(in, key *node, names []string) string {
	to := certain(key, names)
	if other := commonNames[key.text]; slices.Contains(sameMeaning, key.text) && slices.Contains(names, other) {
		to = other
	}
	if to == "" || in.key(to) != nil {
		return ""
	}
	for i := range in.fields { // two keys that were meant for one: which of them counts is not ours to say
		if k := in.fields[i].key; k != key && certain(k, names) == to {
			return ""
		}
	}
	return to
}

// certain returns the only candidate that a word can be a slip of, or "".
func certain(n *node, candidates []string) string {
	word := joined(n.text)
	best := nearest(n.text, candidates)
	if n.kind != text || best == "" {
		return ""
	}
	d := distance(word, joined(best))
	if d > 2 || d*4 > max(len(word), len(joined(best))) {
		return ""
	}
	for _, c := range candidates {
		near := d + 1
		if lacks(word, joined(best)) && !lacks(word, joined(c)) {
			near = d // letters are left out more often than mistaken
		}
		if c != best && distance(word, joined(c)) <= near {
			return ""
		}
	}
	return best
}

// lacks reports whether a word is another one but for letters that it leaves out.
func lacks(word, whole string) bool {
	for _, c := range whole {
		word = strings.TrimPrefix(word, string(c))
	}
	return word == ""
}

// rewrite is the correction that replaces a scalar by a text, in the quotes that it has; a whole number loses them. There is
// none if the scalar does not stand in the file as it is: CUE may have computed it, or an escape may be in it.
func (r *report) rewrite(n *node, to string) Fix {
	if to == "" || to == n.text && n.plain {
		return Fix{}
	}
	if plainKind(to) == number {
		return r.unquote(n, to)
	}
	switch raw := r.raw(n); raw {
	case n.text:
		return Fix{Pos: n.pos, Text: to}
	case `"` + n.text + `"`, `'` + n.text + `'`:
		return Fix{Pos: n.pos, Text: raw[:1] + to + raw[:1]}
	}
	return Fix{}
}

// unquote is rewrite without quotes.
func (r *report) unquote(n *node, to string) Fix {
	switch r.raw(n) {
	case n.text, `"` + n.text + `"`, `'` + n.text + `'`:
		return Fix{Pos: n.pos, Text: to}
	}
	return Fix{}
}

// raw is a scalar as the file spells it.
func (r *report) raw(n *node) string {
	if r.src == nil || n.pos.Line == 0 {
		return ""
	}
	from, to := r.src.offsets(n.pos)
	return r.src.text[from:to]
}

// offsets are those of the first byte of a place and of the byte after its last.
func (s *source) offsets(p Pos) (from, to int) {
	line := s.line(p.Line)
	start := 0
	if p.Line >= 1 && p.Line <= len(s.lines) {
		start = s.lines[p.Line-1]
	}
	skip := func(runes int) int {
		for i := range line {
			if runes == 0 {
				return i
			}
			runes--
		}
		return len(line)
	}
	return start + skip(p.Col-1), start + skip(p.Col-1+max(p.Len, 1))
}

// Mend applies the corrections of the findings to the text that they are about, and returns it with the findings that it
// corrected. Nothing else of the text changes. Of corrections that overlap, the first is applied.
func (fs Findings) Mend(src []byte) (mended []byte, corrected Findings) {
	bom := len(src) - len(stripBOM(src))
	s := newSource("", string(src[bom:]))
	var sorted Findings
	for _, f := range fs {
		if f.Fix.Pos.Line > 0 {
			sorted = append(sorted, f)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Finding) int { return comparePos(a.Fix.Pos, b.Fix.Pos) })
	var out strings.Builder
	out.Write(src[:bom])
	done := 0
	for _, f := range sorted {
		from, to := s.offsets(f.Fix.Pos)
		if from < done || s.text[from:to] == f.Fix.Text {
			continue
		}
		out.WriteString(s.text[done:from])
		out.WriteString(f.Fix.Text)
		done = to
		corrected = append(corrected, f)
	}
	out.WriteString(s.text[done:])
	return []byte(out.String()), corrected
}
