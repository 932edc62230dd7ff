package schema

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// ignoreMark begins what a comment says to silence a finding:
//
//	# mcp-retry ignore: MR034 the only client is a nightly job
//
// The comment stands on the line of the finding or above it; a rule is named by its number or its ID, several are parted by
// commas. Below a | or >, where YAML knows no comments, it stands on or above the line of the key.
const ignoreMark = "mcp-retry ignore:"

// ignore is one rule that a comment silences.
type ignore struct {
	pos    Pos // of the rule's name
	rule   Entry
	line   int // of the findings that are meant
	silent bool
}

// Silence leaves out those of the findings that comments in the text ask to ignore, and adds what is wrong with such comments:
// one without a reason (ignore-reason), of a rule that there is not (ignore-unknown), of an error (ignore-error: run would refuse
// the config all the same), and one that silences nothing (ignore-unused). file says how the text is spelled, as in [Load];
// toolsKnown that the findings are those with the server's tools known.
func (fs Findings) Silence(file string, src []byte, toolsKnown bool) Findings {
	if !bytes.Contains(src, []byte(ignoreMark)) {
		return fs
	}
	var r report
	s := readable(file, src, &r)
	if s == nil {
		return fs
	}
	root := parse(s, &report{})
	if root == nil {
		return fs
	}
	r.src = s
	ignores := readIgnores(s, root, &r)
	blocks := map[int]int{}
	multiline(root, blocks)
	var left Findings
	for _, f := range fs {
		if !silenced(ignores, blocks, f) {
			left = append(left, f)
		}
	}
	for _, i := range ignores {
		if i.rule.Depends == OnComputer || i.rule.Depends == OnTools && !toolsKnown {
			continue
		}
		if !i.silent {
			r.warnAt(i.pos, "ignore-unused", "delete the comment", "nothing here is found by %s (%s)", i.rule.Code(), i.rule.ID)
		}
	}
	for _, i := range ignores {
		if k := slices.IndexFunc(left, func(f Finding) bool { return f.Level == Error && i.means(f, blocks) }); k >= 0 {
			r.warnAt(i.pos, "ignore-error", "mend it: run refuses a config with an error", "%s (%s) is an error here, which cannot be ignored", i.rule.Code(), i.rule.ID)
		}
	}
	left = append(left, r.findings...)
	left.Sort()
	return left
}

func silenced(ignores []*ignore, blocks map[int]int, f Finding) bool {
	hit := false
	for _, i := range ignores {
		if i.means(f, blocks) {
			i.silent = true
			hit = hit || f.Level != Error
		}
	}
	return hit
}

// means reports whether a finding is of the rule and at the line that are meant. blocks says of a line within a scalar of several
// lines where that begins.
func (i *ignore) means(f Finding, blocks map[int]int) bool {
	return f.ID == i.rule.ID && (f.Pos.Line == i.line || blocks[f.Pos.Line] == i.line)
}

// multiline records, of scalars of several lines, on which line each begins, by the lines that they take.
func multiline(n *node, blocks map[int]int) {
	for _, item := range n.items {
		multiline(item, blocks)
	}
	for _, f := range n.fields {
		if f.value.kind == text && f.value.at != nil {
			for line := f.key.pos.Line; line <= f.value.at(len(f.value.text)).Line; line++ {
				blocks[line] = f.key.pos.Line
			}
		}
		multiline(f.value, blocks)
	}
}

// readIgnores finds the comments. What only looks like one, in a text, is none.
func readIgnores(s *source, root *node, r *report) []*ignore {
	quoted := map[Pos]bool{}
	eachText(root, func(n *node) {
		for from := 0; n.kind == text; {
			i := strings.Index(n.text[from:], ignoreMark)
			if i < 0 {
				return
			}
			from += i
			p := n.place(from, 1)
			quoted[Pos{Line: p.Line, Col: p.Col}] = true
			from++
		}
	})
	sign := "#"
	switch strings.ToLower(filepath.Ext(s.file)) {
	case ".json", ".jsonc", ".json5", ".cue":
		sign = "//"
	}
	var found []*ignore
	for n := 1; n <= len(s.lines); n++ {
		line := s.line(n)
		at := strings.Index(line, ignoreMark)
		if at < 0 {
			continue
		}
		code, isComment := strings.CutSuffix(strings.TrimRight(line[:at], " \t"), sign)
		if !isComment || quoted[Pos{Line: n, Col: 1 + utf8.RuneCountInString(line[:at])}] {
			continue
		}
		if sign == "#" && strings.TrimRight(code, " \t") == code && code != "" {
			continue // in YAML a blank stands before the sign of a comment
		}
		target := n
		if strings.TrimSpace(code) == "" {
			target = nextCode(s, n+1, sign)
		}
		found = append(found, readIgnore(s, n, at+len(ignoreMark), target, r)...)
	}
	return found
}

// nextCode is the first line from n on that is neither blank nor a comment.
func nextCode(s *source, n int, sign string) int {
	for ; n <= len(s.lines); n++ {
		if line := strings.TrimSpace(s.line(n)); line != "" && !strings.HasPrefix(line, sign) {
			return n
		}
	}
	return n
}

// readIgnore reads what follows the mark: rules, parted by commas, and the reason.
func readIgnore(s *source, line, off, target int, r *report) []*ignore {
	words := s.line(line)
	place := func(from, to int) Pos {
		return Pos{File: s.file, Line: line, Col: 1 + utf8.RuneCountInString(words[:from]), Len: max(1, utf8.RuneCountInString(words[from:to]))}
	}
	var found []*ignore
	var names []string
	end := off
	for {
		start := end + len(words[end:]) - len(strings.TrimLeft(words[end:], " \t,"))
		stop := start + wordLen(words[start:])
		if start == stop {
			break
		}
		name := words[start:stop]
		end = stop
		names = append(names, name)
		if rule, ok := Lookup(name); ok {
			found = append(found, &ignore{pos: place(start, stop), rule: rule, line: target})
		} else {
			hint := "mcp-retry explain --rules lists them"
			if near := nearest(name, ruleNames()); near != "" {
				hint = `did you mean "` + near + `"?`
			}
			r.warnAt(place(start, stop), "ignore-unknown", hint, "there is no rule %q to ignore", shorten(name))
		}
		if !strings.HasPrefix(strings.TrimLeft(words[end:], " \t"), ",") {
			break
		}
	}
	if len(names) == 0 {
		r.warnAt(place(off-len(ignoreMark), off), "ignore-unknown", "name it and say why: "+ignoreMark+" MR001 REASON", "no rule to ignore is named")
	} else if strings.TrimSpace(words[end:]) == "" {
		r.warnAt(place(off-len(ignoreMark), end), "ignore-reason", "say after the rule why it is right here", "%s is ignored without a reason", strings.Join(names, ", "))
	}
	return found
}

// wordLen is the length of the word that a text begins with.
func wordLen(s string) int {
	if i := strings.IndexAny(s, " \t,"); i >= 0 {
		return i
	}
	return len(s)
}

// eachText calls f for each key and value of a tree.
func eachText(n *node, f func(*node)) {
	f(n)
	for _, item := range n.items {
		eachText(item, f)
	}
	for i := range n.fields {
		f(n.fields[i].key)
		eachText(n.fields[i].value, f)
	}
}
