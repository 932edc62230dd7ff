package policytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// replacement is a piece of a text and what takes its place.
type replacement struct {
	start, end int
	text       string
}

// replaced returns a text with the replacements made. They do not overlap.
func replaced(text []byte, list []replacement) []byte {
	slices.SortStableFunc(list, func(a, b replacement) int { return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(b.end, a.end)) })
	text = slices.Clone(text)
	for _, r := range list {
		text = slices.Replace(text, r.start, r.end, []byte(r.text)...)
	}
	return text
}

// source is the text of a test file, in which values are to be replaced.
type source struct {
	text []byte
	yaml bool
}

// mendJSON replaces as little of a value as makes it part of another: see [within].
func (s *source) mendJSON(w *schema.Written, want any, have json.RawMessage) (parts []replacement, ok bool) {
	if within(want, decode(have)) {
		return nil, true
	}
	whole := func() ([]replacement, bool) { return s.replace(w, jsonText(have)) }
	each := func(i int, want any, have json.RawMessage) bool {
		more, ok := s.mendJSON(&w.Parts[i], want, have)
		parts = append(parts, more...)
		return ok
	}
	start, end := s.extent(w)
	for _, part := range w.Parts {
		if at := s.offset(part.Pos); at < start || at >= end { // it came by a merge key
			return whole()
		}
	}
	switch want := want.(type) {
	case map[string]any:
		var of map[string]json.RawMessage
		if json.Unmarshal(have, &of) != nil || of == nil || len(want) != len(w.Parts) {
			return whole()
		}
		for i, part := range w.Parts {
			if _, there := of[part.Name]; !there {
				return whole()
			}
			if !each(i, want[part.Name], of[part.Name]) {
				return nil, false
			}
		}
		return parts, true
	case []any:
		var of []json.RawMessage
		if json.Unmarshal(have, &of) != nil || of == nil || len(of) != len(want) || len(want) != len(w.Parts) {
			return whole()
		}
		for i := range want {
			if !each(i, want[i], of[i]) {
				return nil, false
			}
		}
		return parts, true
	}
	return whole()
}

// jsonText is a value on one line, as JSON, which is YAML and CUE as well, with its members in their order.
func jsonText(text json.RawMessage) string {
	if !json.Valid(text) { // nothing that came is
		return "null"
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return inline(inOrderOf(d), false)
}

// inOrderOf reads a value of a valid text as [inline] takes it.
func inOrderOf(d *json.Decoder) any {
	token, err := d.Token()
	if err != nil {
		return nil
	}
	switch token {
	case json.Delim('{'):
		object := []member{}
		for d.More() {
			name, _ := d.Token()
			key, _ := name.(string)
			object = append(object, member{key, inOrderOf(d)})
		}
		_, _ = d.Token() // the bracket
		return object
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, inOrderOf(d))
		}
		_, _ = d.Token() // the bracket
		return list
	}
	return token
}

// replace replaces a whole value. Comments inside it are put above the line on which it begins.
func (s *source) replace(w *schema.Written, text string) (parts []replacement, ok bool) {
	start, end := s.extent(w)
	if end <= start {
		return nil, false
	}
	comments := s.comments(start, end)
	if before := bytes.TrimRight(s.text[:start], " \t\r\n"); bytes.HasSuffix(before, []byte(":")) && bytes.ContainsRune(s.text[len(before):start], '\n') {
		start, text = len(before), " "+text // a block that begins below its key; what takes its place need not
	}
	line := bytes.LastIndexByte(s.text[:start], '\n') + 1
	indent := s.text[line : line+len(s.text[line:])-len(bytes.TrimLeft(s.text[line:], " \t"))]
	for _, comment := range comments {
		parts = append(parts, replacement{line, line, string(indent) + comment + "\n"})
	}
	slices.Reverse(parts) // of what is put at one place, the last goes first
	return append(parts, replacement{start, end, text}), true
}

// extent finds the bytes of a value; end = start if it stands elsewhere.
func (s *source) extent(w *schema.Written) (start, end int) {
	start = s.offset(w.Pos)
	if start >= len(s.text) {
		return 0, 0
	}
	switch c := s.text[start]; {
	case c == '[' || c == '{' || c == '"' || c == '\'':
		return start, start + s.closed(start)
	case c == '&' || c == '*' || c == '!':
		return 0, 0
	case len(w.Parts) > 0 && s.yaml: // a block ends with its last part
		for i := range w.Parts {
			from, to := s.extent(&w.Parts[i])
			if to <= from || from < start {
				return 0, 0
			}
			end = max(end, to)
		}
		return start, end
	case len(w.Parts) > 0:
		return 0, 0
	case s.yaml && (c == '|' || c == '>'):
		return start, s.blockEnd(start)
	}
	return start, s.plainEnd(start, w)
}

// offset is the first byte of a place.
func (s *source) offset(pos schema.Pos) int {
	at := 0
	for line := 1; line < pos.Line; line++ {
		i := bytes.IndexByte(s.text[at:], '\n')
		if i < 0 {
			return len(s.text)
		}
		at += i + 1
	}
	return at + characters(s.text[at:], pos.Col-1)
}

// characters is how many bytes so many characters of a text take.
func characters(text []byte, n int) int {
	for i := range string(text) {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// closed is how many bytes a value takes that begins with a quote or a bracket, to the one that closes it; 0 = none does.
func (s *source) closed(start int) int {
	text := s.text[start:]
	if text[0] == '"' || text[0] == '\'' {
		return quotedLength(text)
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if !s.opensQuote(start + i) {
				continue
			}
			n := quotedLength(text[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		case '#', '/':
			i += s.commentLength(start + i)
		}
	}
	return 0
}

// opensQuote reports whether a quote begins a text, and is not inside a word of YAML.
func (s *source) opensQuote(at int) bool {
	before := bytes.TrimRight(s.text[:at], " \t\r\n")
	return !s.yaml || len(before) == 0 || len(before) < at || strings.IndexByte("[{,:-?", before[len(before)-1]) >= 0
}

// quotedLength is how many bytes a quoted text takes; 0 = it does not end. Three quotes of CUE's are ended by three.
func quotedLength(text []byte) int {
	quote := text[:1]
	if three := bytes.Repeat(quote, 3); bytes.HasPrefix(text, three) {
		if i := bytes.Index(text[3:], three); i >= 0 {
			return i + 6
		}
	}
	for i := 1; i < len(text); i++ {
		switch {
		case quote[0] == '"' && text[i] == '\\':
			i++
		case text[i] == quote[0] && quote[0] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		case text[i] == quote[0]:
			return i + 1
		}
	}
	return 0
}

// commentLength is how many bytes a comment takes that may begin at a place, its line break not included; 0 = none does.
func (s *source) commentLength(at int) int {
	rest := s.text[at:]
	spaced := at == 0 || bytes.IndexByte([]byte(" \t\n"), s.text[at-1]) >= 0
	switch {
	case s.yaml && rest[0] == '#' && spaced, !s.yaml && bytes.HasPrefix(rest, []byte("//")):
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			return i
		}
		return len(rest)
	case !s.yaml && bytes.HasPrefix(rest, []byte("/*")):
		if i := bytes.Index(rest, []byte("*/")); i >= 0 {
			return i + 2
		}
	}
	return 0
}

// comments are those inside a value.
func (s *source) comments(start, end int) (found []string) {
	if s.yaml && (s.text[start] == '|' || s.text[start] == '>') { // only its first line can have one
		if i := bytes.IndexByte(s.text[start:end], '\n'); i >= 0 {
			end = start + i
		}
	}
	for i := start; i < end; i++ {
		switch s.text[i] {
		case '"', '\'':
			if n := quotedLength(s.text[i:end]); n > 0 && s.opensQuote(i) {
				i += n - 1
			}
		case '#', '/':
			if n := s.commentLength(i); n > 0 {
				found = append(found, strings.TrimSpace(string(s.text[i:i+n])))
				i += n - 1
			}
		}
	}
	return found
}

// blockEnd is the end of a block of text, | or >: the lines that are indented deeper than the one on which it begins, or empty.
func (s *source) blockEnd(start int) int {
	line := bytes.LastIndexByte(s.text[:start], '\n') + 1
	indent := indentation(s.text[line:])
	if before := bytes.TrimRight(s.text[line:start], " "); bytes.HasSuffix(before, []byte("-")) {
		indent = len(before) - 1
	}
	at := start
	end := start
	for first := true; at < len(s.text); first = false {
		length := bytes.IndexByte(s.text[at:], '\n')
		if length < 0 {
			length = len(s.text) - at
		}
		content := bytes.TrimRight(s.text[at:at+length], " \t\r")
		if !first && len(content) > 0 && indentation(s.text[at:]) <= indent {
			break
		}
		if len(content) > 0 {
			end = at + len(content)
		}
		at += length + 1
	}
	return end
}

// indentation is how far a line is indented, the dashes of the lists that begin on it included.
func indentation(line []byte) int {
	n := len(line) - len(bytes.TrimLeft(line, " "))
	for bytes.HasPrefix(line[n:], []byte("- ")) {
		n += 1 + len(line[n+1:]) - len(bytes.TrimLeft(line[n+1:], " "))
	}
	return n
}

// plainEnd is the end of a value without quotes, which in YAML may be continued on further lines.
func (s *source) plainEnd(start int, w *schema.Written) int {
	end := start + characters(s.text[start:], max(w.Pos.Len, 1))
	var value string
	if !s.yaml || json.Unmarshal(w.Value, &value) != nil {
		return end
	}
	words := strings.Fields(value)
	if slices.Equal(strings.Fields(string(s.text[start:end])), words) {
		return end
	}
	for to := end; to <= len(s.text); to++ {
		if to < len(s.text) && s.text[to] != '\n' {
			continue
		}
		if have := strings.Fields(string(s.text[start:to])); slices.Equal(have, words) {
			return start + len(bytes.TrimRight(s.text[start:to], " \t\r"))
		} else if len(have) > len(words) {
			break
		}
	}
	return start
}
