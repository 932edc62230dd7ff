package schema

import (
	"cmp"
	"fmt"
	"slices"
)

// String names the level as a finding prints it.
func (l Level) String() string {
	switch l {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "note"
}

// String is the finding on one line, without its hint: "file:line:col: error[id] message".
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s[%s] %s", f.Pos, f.Level, f.ID, f.Message)
}

// HasErrors reports whether any finding refuses the config.
func (fs Findings) HasErrors() bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Level == Error })
}

// Sort puts the findings in the order of the file; those of one place stay as they are.
func (fs Findings) Sort() {
	slices.SortStableFunc(fs, func(a, b Finding) int { return comparePos(a.Pos, b.Pos) })
}

func comparePos(a, b Pos) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
}

// report collects the findings about one file.
type report struct {
	src      *source // the text that they are about; nil until it is known to be text
	findings Findings
	said     map[[2]Pos]bool  // pairs of timeouts that are complained of: those of the defaults are compared once per server
	seen     map[Finding]bool // a map that aliases repeat is checked once per use, and complained of once
}

// maxFindings is more than anybody reads; a file that is something else altogether has a fault on every line.
const maxFindings = 1000

func (r *report) full() bool { return len(r.findings) >= maxFindings }

func (r *report) add(f Finding) {
	if r.full() {
		return
	}
	if r.seen == nil {
		r.seen = map[Finding]bool{}
	}
	f.Message, f.Hint = maskTokens(f.Message), maskTokens(f.Hint)
	fault := f
	if f.ID == "unknown-key" {
		fault.Message, fault.Hint = "", "" // which name what the alias stands in
	}
	if !r.seen[fault] {
		r.seen[fault] = true
		r.findings = append(r.findings, f)
	}
}

// forget takes back what has been said of the value of a key that there is not: that is said, and all else follows from it.
func (r *report) forget(value *node) {
	eachText(value, func(n *node) {
		r.findings = slices.DeleteFunc(r.findings, func(f Finding) bool { return f.ID == "bad-value" && n.bad && comparePos(f.Pos, n.pos) == 0 })
	})
}

// fault adds an error about a node, which thereby cannot be used.
func (r *report) fault(n *node, id, hint, format string, args ...any) {
	r.mendable(n, Fix{}, id, hint, format, args...)
}

// mendable is fault with a correction.
func (r *report) mendable(n *node, fix Fix, id, hint, format string, args ...any) {
	n.bad = true
	r.add(Finding{Pos: n.pos, Level: Error, ID: id, Message: fmt.Sprintf(format, args...), Hint: hint, Fix: fix})
}

func (r *report) errorAt(p Pos, id, hint, format string, args ...any) {
	r.add(Finding{Pos: p, Level: Error, ID: id, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (r *report) warnAt(p Pos, id, hint, format string, args ...any) {
	r.add(Finding{Pos: p, Level: Warning, ID: id, Message: fmt.Sprintf(format, args...), Hint: hint})
}
