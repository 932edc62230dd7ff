package policytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Update returns the text of a test file with every expectation that was not met replaced by what came. Everything else,
// comments and spelling, stays; of a map or a list that is spread over lines only the parts that differ are replaced. kept are the
// failures that cannot be mended so: what is never expected, an expectation of several calls that came to different things, one
// that several rows share, a value that stands elsewhere (an anchor's).
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
	var list []replacement
	for _, e := range edits {
		if e.possible() {
			list = append(list, e.parts...)
		}
	}
	text = replaced(f.Suite.Text, list)
	_, findings := schema.LoadTest(f.Suite.File.File, text)
	spoilt := findings.HasErrors() // it was spelled in a way that we do not see through: then better nothing
	if spoilt {
		text = slices.Clone(f.Suite.Text)
	}
	for _, r := range f.Results {
		for _, failure := range r.Failures {
			if e := edits[failure.Pos]; spoilt || failure.Key == "" || e == nil || !e.possible() {
				kept = append(kept, failure)
			}
		}
	}
	return text, kept
}

// edit is a value of the file that is to be replaced, or parts of it.
type edit struct {
	parts   []replacement
	changes bool // at least one call did not meet it
	differs bool // calls do not agree on what it should be, or it cannot be replaced
	met     bool // a call met it
}

func (e *edit) possible() bool { return e.changes && !e.differs }

// note takes down what an expectation would have to be for one call.
func (f *FileReport) note(edits map[schema.Pos]*edit, e *schema.Expectation, have got) {
	x := edits[e.Pos]
	if x == nil {
		x = &edit{}
		edits[e.Pos] = x
	}
	if meets(e.Want, have) {
		x.met = true
		x.differs = x.differs || x.changes
		return
	}
	parts, ok := f.mended(e, have)
	x.differs = x.differs || !ok || x.met || x.changes && !slices.Equal(x.parts, parts)
	x.parts, x.changes = parts, true
}

// mended are the replacements after which an expectation is met; ok = there are such.
func (f *FileReport) mended(e *schema.Expectation, have got) (parts []replacement, ok bool) {
	source := source{text: f.Suite.Text, yaml: isYAML(f.Suite.File.File)}
	switch v := have.value.(type) {
	case json.RawMessage:
		if want, is := e.Want.(json.RawMessage); is {
			return source.mendJSON(&e.Written, decode(want), v)
		}
	case []time.Duration:
		if spans, is := e.Want.([]schema.Span); is && len(spans) == len(v) && len(v) == len(e.Written.Parts) {
			for i := range v {
				if spans[i].Contains(v[i]) {
					continue
				}
				part, ok := source.replace(&e.Written.Parts[i], f.quote(short(v[i])))
				if !ok {
					return nil, false
				}
				parts = append(parts, part...)
			}
			return parts, true
		}
	}
	text := f.spelled(e, have)
	if text == "" {
		return nil, false
	}
	return source.replace(&e.Written, text)
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
		return jsonText(v)
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
	if !isYAML(f.Suite.File.File) || !unquoted(s) {
		return string(quoted(s))
	}
	return s
}

func isYAML(file string) bool {
	return strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml")
}

// unquoted reports whether YAML takes a text without quotes for itself.
func unquoted(s string) bool {
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

// String says what was not mended, and where.
func (f Failure) String() string { return fmt.Sprintf("%v: %s", f.Pos, f.Message()) }
