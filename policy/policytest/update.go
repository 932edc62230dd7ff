package policytest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Update returns the text of a test file with every expectation that was not met replaced by what came. Everything else,
// comments and spelling, stays. kept are the failures that cannot be mended so: what is never expected, values of several
// lines, an expectation of several calls that came to different things, one that several rows share.
func (f *FileReport) Update() (text []byte, kept []Failure) {
	edits := map[schema.Pos]*edit{}
	for _, r := range f.Results {
		for i := range r.Steps {
			for _, e := range r.Steps[i].Step.Expect {
				for _, c := range r.Steps[i].Calls {
					have := c.look(e.Key, r.Steps[i].Executions)
					f.note(edits, &e, have)
				}
			}
		}
	}
	var list []*edit
	for _, e := range edits {
		if e.changes && !e.differs && e.end > e.start {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *edit) int { return cmp.Compare(b.start, a.start) })
	text = slices.Clone(f.Suite.Text)
	for _, e := range list {
		text = slices.Replace(text, e.start, e.end, []byte(e.text)...)
	}
	for _, r := range f.Results {
		for _, failure := range r.Failures {
			if e := edits[failure.Pos]; failure.Key == "" || e == nil || e.differs || e.end <= e.start {
				kept = append(kept, failure)
			}
		}
	}
	return text, kept
}

// edit is a value of the file that is to be replaced.
type edit struct {
	start, end int // of the value, in bytes; equal = it cannot be replaced
	text       string
	changes    bool // at least one call did not meet it
	differs    bool // calls do not agree on what it should be
	met        bool // a call met it
}

// note takes down what an expectation would have to be for one call.
func (f *FileReport) note(edits map[schema.Pos]*edit, e *schema.Expectation, have got) {
	x := edits[e.Pos]
	if x == nil {
		x = &edit{}
		x.start, x.end = valueAt(f.Suite.Text, e.Pos)
		if x.end > x.start && !opens(e.Want, f.Suite.Text[x.start]) {
			x.end = x.start // it is spread over lines
		}
		edits[e.Pos] = x
	}
	if meets(e.Want, have) {
		x.met = true
		x.differs = x.differs || x.changes
		return
	}
	text := f.spelled(e, have)
	x.differs = x.differs || x.met || x.changes && x.text != text || text == ""
	x.text, x.changes = text, true
}

// opens reports whether a value that stands on one line can begin so.
func opens(want any, c byte) bool {
	switch want := want.(type) {
	case []schema.Span:
		return c == '['
	case json.RawMessage:
		return want[0] != '{' && want[0] != '[' || c == want[0]
	}
	return true
}

// spelled is a value as the file spells such values; "" = it cannot stand there.
func (f *FileReport) spelled(e *schema.Expectation, have got) string {
	switch v := have.value.(type) {
	case nil:
		if strings.HasPrefix(e.Key, "rules.") || e.Key == "idempotency_key" {
			return "null"
		}
		return ""
	case json.RawMessage:
		return f.flow(v)
	case bool:
		return strconv.FormatBool(v)
	case string:
		if e.Key == "status" && v == "success" {
			v = "ok"
		}
		return f.quote(v)
	case time.Duration:
		return f.quote(short(v))
	case []time.Duration:
		var all []string
		for _, d := range v {
			all = append(all, f.quote(short(d)))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return have.text
}

// quote writes a text, without quotes where the file can do so.
func (f *FileReport) quote(s string) string {
	if !isYAML(f.Suite.File.File) || !plain(s) {
		return string(quoted(s))
	}
	return s
}

func isYAML(file string) bool {
	return strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml")
}

// plain reports whether YAML takes a text without quotes for itself.
func plain(s string) bool {
	if s == "" || len(s) > 80 || s == "null" || s == "true" || s == "false" || s == "no" || s == "yes" {
		return false
	}
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 && !(c >= '0' && c <= '9' && strings.ContainsAny(s, "smh")) || !strings.ContainsRune("0123456789._/-", c)) {
			return false
		}
	}
	return true
}

// flow writes JSON as the file writes maps and lists on one line.
func (f *FileReport) flow(text json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, text) != nil {
		return ""
	}
	return compact.String() // which is YAML and CUE as well
}

// valueAt finds the bytes of a value that stands on one line.
func valueAt(text []byte, pos schema.Pos) (start, end int) {
	at := 0
	for line := 1; line < pos.Line; line++ {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, 0
		}
		at += i + 1
	}
	line := text[at:]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	start = byteOf(line, pos.Col-1)
	if start >= len(line) {
		return 0, 0
	}
	length := valueLength(line[start:], pos.Len)
	return at + start, at + start + length
}

// byteOf is the offset in bytes of a character of a line.
func byteOf(line []byte, column int) int {
	for i := range string(line) {
		if column == 0 {
			return i
		}
		column--
	}
	return len(line)
}

// valueLength is how many bytes the value at the beginning of a text takes; 0 = it does not end on the line.
func valueLength(s []byte, characters int) int {
	switch s[0] {
	case '"', '\'':
		for i := 1; i < len(s); i++ {
			switch {
			case s[0] == '"' && s[i] == '\\':
				i++
			case s[i] == s[0] && s[0] == '\'' && i+1 < len(s) && s[i+1] == '\'':
				i++
			case s[i] == s[0]:
				return i + 1
			}
		}
		return 0
	case '[', '{':
		depth := 0
		for i := 0; i < len(s); i++ {
			switch s[i] {
			case '[', '{':
				depth++
			case ']', '}':
				if depth--; depth == 0 {
					return i + 1
				}
			case '"', '\'':
				n := valueLength(s[i:], 0)
				if n == 0 {
					return 0
				}
				i += n - 1
			}
		}
		return 0
	case '|', '>', '&', '*', '!':
		return 0
	}
	return byteOf(s, characters)
}

// String says what was not mended, and where.
func (f Failure) String() string { return fmt.Sprintf("%v: %s", f.Pos, f.Message()) }
