package schema

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// explainYAML says why a text is no YAML. The parser knows a line, often the wrong one, and speaks of its own insides; nearly
// always the cause is a tab or a value that needed quotes, so those are looked for first.
//
// It returns the values to replace so that the rest can be read; none if the fault is not one of values.
func explainYAML(src *source, err error, r *report) []span {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := yamlErrorLine().FindStringSubmatch(msg); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = m[2]
	}
	before := len(r.findings)
	scan := lineScan{src: src, report: r, anchors: anchorNames(src.text)}
	scan.run()
	if len(r.findings) > before {
		return scan.faults
	}
	line = min(max(line, 1), len(src.lines))
	if scan.structure(msg, line) {
		return nil
	}
	for line > 1 && strings.TrimSpace(src.line(line)) == "" {
		line--
	}
	text := src.line(line)
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	off := src.lines[line-1]
	pos := src.pos(off+indent, off+len(text))
	pos.Len = max(pos.Len, 1)
	said, hint := yamlWords(msg)
	r.errorAt(pos, "syntax", hint, "%s", said)
	return nil
}

var yamlErrorLine = pattern(`^line (\d+): (.*)$`)

// yamlWords puts the parser's complaint in our words.
func yamlWords(msg string) (said, hint string) {
	has := func(s string) bool { return strings.Contains(msg, s) }
	switch {
	case has("mapping values are not allowed"):
		return `": " stands inside a value that is not quoted, or the line is indented wrongly`, quoteHint
	case has("could not find expected ':'"), has("simple key"):
		return "a key without a colon here or on the lines before", "write KEY: VALUE"
	case has("did not find expected key"), has("block end"), has("block collection"), has("block mapping"):
		return "this line does not belong to the map or list that it stands in", "keys of one map start in the same column"
	case has("expected ',' or ']'"):
		return "a list in brackets is not closed", "close it with ]"
	case has("expected ',' or '}'"):
		return "a map in braces is not closed", "close it with }"
	case has("end of stream"), has("end of document"), has("unexpected document indicator"):
		return "text in quotes is not closed", "look for the quote that opens it, here or further up"
	case has("escape"):
		return "a backslash in double quotes starts an escape that YAML does not know", `write \\ for a backslash, or use single quotes`
	case has("control characters"):
		return "the file holds control characters", "save it as plain text"
	case has("unknown anchor"):
		return "an alias (*NAME) names no anchor (&NAME)", "quote it if it is meant as text"
	case has("exceeded max depth"):
		return "values are nested too deeply", ""
	}
	return "this is not YAML: " + strings.ReplaceAll(msg, "'", `"`), ""
}

var (
	// A line of a block map or list: indentation and dashes, a key, and the value on the same line.
	blockEntry  = pattern(`^(\s*(?:- +)*)(?:("[^"]*"|'[^']*'|[^\s#"'\[\]{},&*!|>%@` + "`" + `][^#:]*?)\s*:(?:\s+(.*))?|(.*))$`)
	blockHeader = pattern(`(?:^|[:\-]\s+)[|>][-+0-9]*\s*(?:#.*)?$`)
	anchorName  = pattern(`(?:^|[\s\[{,])&([A-Za-z0-9_-]+)`)
	aliasStart  = pattern(`^\*([A-Za-z0-9_-]*)(.*)$`)
)

func anchorNames(s string) map[string]bool {
	names := map[string]bool{}
	for _, m := range anchorName().FindAllStringSubmatch(s, -1) {
		names[m[1]] = true
	}
	return names
}

// lineScan looks at a text that is no YAML line by line, for the mistakes that people make.
type lineScan struct {
	src     *source
	report  *report
	anchors map[string]bool
	faults  []span
}

// span is a part of a text, by offsets.
type span struct{ begin, end int }

func (s *lineScan) run() {
	block := -1 // indentation of the line that opened a block scalar
	tabs := 0
	for n := 1; n <= len(s.src.lines); n++ {
		line := s.src.line(n)
		trimmed := strings.TrimLeft(line, " \t")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		lead := line[:len(line)-len(trimmed)]
		if tab := strings.IndexByte(lead, '\t'); tab >= 0 && (block < 0 || tab <= block) {
			if tabs++; tabs == 1 {
				off := s.src.lines[n-1] + tab
				s.report.errorAt(s.src.pos(off, off+strings.Count(lead[tab:], "\t")), "syntax",
					"YAML takes spaces only", "line %d is indented with a tab", n)
			}
			continue
		}
		if block >= 0 {
			if len(lead) > block {
				continue
			}
			block = -1
		}
		if blockHeader().MatchString(line) {
			block = len(lead)
			continue
		}
		s.entry(n, line)
	}
}

// structure looks for the faults whose cause stands elsewhere than where the parser stopped.
func (s *lineScan) structure(msg string, line int) bool {
	switch {
	case strings.Contains(msg, "expected ',' or"):
		if begin, end, ok := variableInBrackets(s.src.text); ok {
			word := strconv.Quote(s.src.text[begin:end])
			s.report.errorAt(s.src.pos(begin, end), "syntax", "write "+word, "%s needs quotes in YAML, for it stands in brackets", word)
			return true
		}
		if off := openBracket(s.src.text); off >= 0 {
			s.report.errorAt(s.src.pos(off, off+1), "syntax", "close it", "this bracket is not closed")
			return true
		}
	case strings.Contains(msg, "mapping values are not allowed"):
		for line--; line > 1 && strings.TrimSpace(s.src.line(line)) == ""; {
			line--
		}
		if t := strings.TrimSpace(s.src.line(line)); t != "" && !strings.Contains(t, ":") && t[0] != '#' {
			off := s.src.lines[line-1] + strings.Index(s.src.line(line), t)
			s.report.errorAt(s.src.pos(off, off+len(t)), "syntax", "write "+shorten(strings.TrimPrefix(t, "- "))+": VALUE", "a colon is missing here")
			return true
		}
	case strings.Contains(msg, "did not find expected"):
		return s.indentation()
	}
	return false
}

// indentation finds the first line that starts where no line that it could belong to starts.
func (s *lineScan) indentation() bool {
	var open []int
	for n := 1; n <= len(s.src.lines); n++ {
		line := s.src.line(n)
		trimmed := strings.TrimLeft(line, " ")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		indent := len(line) - len(trimmed)
		deeper := len(open) == 0 || indent > open[len(open)-1]
		for len(open) > 0 && open[len(open)-1] > indent {
			open = open[:len(open)-1]
		}
		if !deeper && (len(open) == 0 || open[len(open)-1] != indent) {
			off := s.src.lines[n-1] + indent
			s.report.errorAt(s.src.pos(off, off+len(trimmed)), "syntax", "keys of one map start in the same column",
				"no line above that this one could belong to starts in column %d", indent+1)
			return true
		}
		if deeper {
			open = append(open, indent)
		}
		for strings.HasPrefix(trimmed, "- ") { // what follows a dash is a map or list of its own
			rest := strings.TrimLeft(trimmed[1:], " ")
			indent += len(trimmed) - len(rest)
			open, trimmed = append(open, indent), rest
		}
	}
	return false
}

// openBracket returns the offset of the first bracket that is not closed, or -1.
func openBracket(s string) int {
	var open []int
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'':
			if i == 0 || strings.IndexByte(" \n[{,:", s[i-1]) >= 0 {
				i = quotedEnd(s, i) - 1
			}
		case '#':
			if i == 0 || s[i-1] == ' ' || s[i-1] == '\n' {
				i += strings.IndexByte(s[i:]+"\n", '\n')
			}
		case '[', '{':
			open = append(open, i)
		case ']', '}':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) == 0 {
		return -1
	}
	return open[0]
}

// entry complains of a value that YAML cannot read without quotes.
func (s *lineScan) entry(n int, line string) {
	m := blockEntry().FindStringSubmatchIndex(line)
	if m == nil {
		return
	}
	subject, begin, end := "this item", m[8], m[9]
	if m[4] >= 0 {
		subject, begin, end = "the value of "+named(strings.Trim(line[m[4]:m[5]], `"'`)), m[6], m[7]
	} else if !strings.Contains(line[m[2]:m[3]], "-") {
		return // neither a key nor an item of a list: the value goes on from the line before
	}
	if begin < 0 || begin == end {
		return
	}
	value := line[begin:end]
	why, at, length := s.unquotable(value)
	if why == "" {
		return
	}
	line0 := s.src.lines[n-1]
	s.faults = append(s.faults, span{line0 + begin, line0 + end})
	off := line0 + begin + at
	f := Finding{Pos: s.src.pos(off, off+length), Level: Error, ID: "syntax", Message: subject + " " + why, Hint: quoteHint}
	word := value[at : at+length]
	switch name := strings.TrimPrefix(word, "*"); {
	case name != word && name != "" && mergeBefore().MatchString(line[:begin+at]):
		f.Message, f.Hint = "there is no anchor "+strconv.Quote(name), "put &"+name+" before the map that is meant"
		if other := nearest(name, slices.Sorted(maps.Keys(s.anchors))); other != "" {
			f.Hint = "did you mean *" + other + "?"
		}
	case name != word && (at > 0 || length > 1), strings.Contains(word, "${"):
		f.Hint = "write " + strconv.Quote(word)
		// With an anchor in the file, the word may be a slip of its name.
		if alone := strings.TrimSpace(value) == word; (at > 0 || alone) && (name == "" || name == word || len(s.anchors) == 0) && !strings.ContainsAny(word, "\"\\") {
			f.Fix = Fix{Pos: f.Pos, Text: `"` + word + `"`}
		}
	case word == "!":
		f.Fix = s.src.quoted(off)
	}
	s.report.add(f)
}

// mergeBefore is what stands before the alias, or the first of a list of them, that a merge key takes.
var mergeBefore = pattern(`<<\s*:\s+(\[[^\]]*)?$`)

// unquotable says why a value cannot stand without quotes, and where in it the cause is.
func (s *lineScan) unquotable(v string) (why string, at, length int) {
	switch v[0] {
	case '"', '\'':
		end := quotedEnd(v, 0)
		rest := strings.TrimLeft(v[end:], " \t")
		if rest != "" && rest[0] != '#' && rest[0] != ':' {
			return "goes on after a text in quotes, where YAML expects its end", len(v) - len(rest), len(rest)
		}
		return "", 0, 0
	case '@', '`', '%':
		return "begins with " + strconv.Quote(v[:1]) + ", which YAML reserves", 0, 1
	case '!':
		return `begins with "!", which is a tag in YAML`, 0, 1
	case '&':
		if !anchorName().MatchString(v) {
			return `begins with "&", which is an anchor in YAML`, 0, 1
		}
		return "", 0, 0
	case '*':
		if m := aliasStart().FindStringSubmatch(v); m != nil && (m[1] == "" || !s.anchors[m[1]]) {
			what := `begins with "*", which is an alias in YAML`
			if m[1] != "" && strings.TrimSpace(m[2]) == "" {
				what += ", and no anchor &" + m[1] + " stands above"
			}
			return what, 0, len(strings.Fields(v)[0])
		}
		return "", 0, 0
	case '{', '[':
		return s.flow(v)
	case '|', '>', '#':
		return "", 0, 0
	}
	if i := strings.Index(v, ": "); i >= 0 {
		if c := strings.Index(v, " #"); c < 0 || c > i {
			return `holds ": ", which starts a map in YAML`, i, 1
		}
	}
	if strings.HasSuffix(v, ":") && !strings.Contains(v, " #") {
		return "ends with a colon, which starts a map in YAML", len(v) - 1, 1
	}
	return "", 0, 0
}

// flow complains of an expression that begins as a list or map in brackets does, and of globs in one.
func (s *lineScan) flow(v string) (why string, at, length int) {
	depth := 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"', '\'':
			i = quotedEnd(v, i) - 1
		case '$':
			if depth == 0 || !strings.HasPrefix(v[i:], "${") {
				continue
			}
			if begin, end, ok := bareVariable(v, i); ok {
				return "holds " + strconv.Quote(v[begin:end]) + ", which needs quotes in YAML", begin, end - begin
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if rest := strings.TrimLeft(v[i+1:], " \t"); depth == 0 && rest != "" && rest[0] != '#' {
				return "goes on after " + strconv.Quote(v[i:i+1]) + ", where YAML expects its end", len(v) - len(rest), len(rest)
			}
		case '*', '!', '@', '`', '%', '&':
			if before := strings.TrimRight(v[:i], " "); strings.HasSuffix(before, "[") || strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",") || strings.HasSuffix(before, ":") {
				word := v[i:]
				if j := strings.IndexAny(word, ",]}: "); j > 0 {
					word = word[:j]
				}
				if name := strings.TrimLeft(word, "*&"); v[i] == '*' && s.anchors[name] || v[i] == '&' && name != "" || v[i] == '!' {
					continue
				}
				return "holds " + strconv.Quote(word) + ", which needs quotes in YAML", i, len(word)
			}
		}
	}
	return "", 0, 0
}
