package schema

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// ignoreMark begins what a comment says to silence a finding:
//
//	# mcp-retry ignore: MR034 the only client is a nightly job
//
// The comment stands on the line of the finding or above it; above an item of a list, such as a rule of a policy, it means all of the
// item. A rule is named by its number or its ID, several are parted by commas. Below a | or >, where YAML knows no comments, it stands
// on or above the line of the key.
const ignoreMark = "mcp-retry ignore:"

// marks finds ignoreMark, and what is meant as it.
var marks = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\bmcp[-_ ]?retry[-_:, ]{0,3}ignore\b:?`)
})

// ignore is one rule that a comment silences.
type ignore struct {
	pos    Pos // of the rule's name
	rule   Entry
	line   int // of the findings that are meant
	last   int // line, where they are those of several; else 0
	silent bool
	above  bool // the comment has a line of its own
}

// Silence leaves out those of the findings that comments in the text ask to ignore, and adds what is wrong with such comments:
// one without a reason (ignore-reason), of a rule that there is not (ignore-unknown), of an error (ignore-error: run would refuse
// the config all the same), and one that silences nothing, or is not written as one that does (ignore-unused). file says how the text is spelled, as in [Load];
// toolsKnown that the findings are those with the server's tools known.
func (fs Findings) Silence(file string, src []byte, toolsKnown bool) Findings {
	if !marks().Match(src) {
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
	items := map[int]int{}
	itemLines(root, items)
	for _, i := range ignores {
		if i.above {
			i.last = items[i.line]
		}
	}
	var left Findings
	for _, f := range fs {
		if !silenced(ignores, blocks, f) {
			left = append(left, f)
		}
	}
	for _, i := range ignores {
		unclear := i.rule.Depends == OnTools && !toolsKnown
		switch {
		case i.silent || i.rule.Depends == OnComputer || unclear && needsTools(i.rule):
		case fs.HasErrors(): // which may hide what the comment is for
		case unclear:
			r.add(Finding{Pos: i.pos, Level: Note, ID: "ignore-unused", Hint: "it may be of use once the tools are known: see validate --tools",
				Message: fmt.Sprintf("nothing here is found by %s (%s) without the server's tools", i.rule.Code(), i.rule.ID)})
		default:
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
	line := f.Pos.Line
	if begins, ok := blocks[line]; ok && line != i.line {
		line = begins
	}
	return f.ID == i.rule.ID && (line == i.line || i.line < line && line <= i.last)
}

// needsTools reports whether findings of the rule are possible only with the tools known.
func needsTools(rule Entry) bool {
	return slices.ContainsFunc(toolEntries, func(e Entry) bool { return e.ID == rule.ID })
}

// itemLines records, of items of lists that are maps, up to which line each reaches, by the line on which it begins.
func itemLines(n *node, lines map[int]int) {
	for _, item := range n.items {
		if item.kind == object {
			lines[item.pos.Line] = max(lines[item.pos.Line], lastLine(item))
		}
		itemLines(item, lines)
	}
	for _, f := range n.fields {
		itemLines(f.value, lines)
	}
}

// lastLine is the last line of a node, as far as its keys and values tell.
func lastLine(n *node) int {
	last := n.pos.Line
	if n.kind == text && n.at != nil {
		last = max(last, n.at(len(n.text)).Line)
	}
	for _, item := range n.items {
		last = max(last, lastLine(item))
	}
	for _, f := range n.fields {
		last = max(last, f.key.pos.Line, lastLine(f.value))
	}
	return last
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
		if n.kind != text {
			return
		}
		for _, mark := range marks().FindAllStringIndex(n.text, -1) {
			p := n.place(mark[0], 1)
			quoted[Pos{Line: p.Line, Col: p.Col}] = true
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
		mark := marks().FindStringIndex(line)
		if mark == nil {
			continue
		}
		at := mark[0]
		code, isComment := strings.CutSuffix(strings.TrimRight(line[:at], " \t"), sign)
		if !isComment || quoted[Pos{Line: n, Col: 1 + utf8.RuneCountInString(line[:at])}] {
			continue
		}
		if sign == "#" && strings.TrimRight(code, " \t") == code && code != "" {
			continue // in YAML a blank stands before the sign of a comment
		}
		if line[at:mark[1]] != ignoreMark {
			warnOfMark(s, n, mark, r)
			continue
		}
		target := n
		if strings.TrimSpace(code) == "" || sign == "#" && onlyDashes(code) {
			target = nextCode(s, n+1, sign)
		}
		of := readIgnore(s, n, at+len(ignoreMark), target, r)
		for _, i := range of {
			i.above = target != n
		}
		found = append(found, of...)
	}
	return found
}

// nextCode is the first line from n on that is neither blank nor a comment, nor the dash of an item that begins below it.
func nextCode(s *source, n int, sign string) int {
	for ; n <= len(s.lines); n++ {
		line, _, _ := strings.Cut(s.line(n), " "+sign)
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, sign) || sign == "#" && onlyDashes(line) {
			continue
		}
		return n
	}
	return n
}

// onlyDashes reports whether a line of YAML holds but the dashes of items.
func onlyDashes(line string) bool { return strings.Trim(line, "- \t") == "" }

// warnOfMark warns of what is meant as ignoreMark and is not: where a rule follows it, for else it is a part of a sentence.
func warnOfMark(s *source, n int, mark []int, r *report) {
	line := s.line(n)
	start := mark[1] + len(line[mark[1]:]) - len(strings.TrimLeft(line[mark[1]:], " \t:"))
	end := start + wordLen(line[start:])
	if rule, ok := Lookup(line[start:end]); ok {
		r.warnAt(s.within(n, mark[0], end), "ignore-unused", `write "`+ignoreMark+" "+rule.Code()+`" and the reason`,
			"this comment silences nothing: it does not begin as one that does")
	}
}

// readIgnore reads what follows the mark: rules, parted by commas, and the reason.
func readIgnore(s *source, line, off, target int, r *report) []*ignore {
	words := s.line(line)
	place := func(from, to int) Pos { return s.within(line, from, to) }
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
