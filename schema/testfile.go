package schema

import (
	_ "embed"
	"encoding/json"
	"time"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

// TestFile is a file of policy tests. See [TestCUE] for what each part means.
type TestFile struct {
	File      string // as the user named it
	Config    string // path of the config, as written: relative to the file
	ConfigPos Pos
	Tools     []json.RawMessage // entries of tools/list, for every server
	ToolsFile string            // path of a snapshot instead, as written; "" = none
	ToolsPos  Pos
	Clock     time.Time // when each test begins
	Seed      uint64
	Tests     []*Test
}

// Test is one test. Each of its rows starts afresh: a test without a table has one.
type Test struct {
	Name string
	Pos  Pos // of the name
	Rows []*TestRow
}

// TestRow is a sequence of steps in which state carries over from one to the next.
type TestRow struct {
	Name  string // "" = it has none of its own
	Pos   Pos
	Steps []*TestStep
}

// TestStep is a call with what is expected of it, or something else that happens.
type TestStep struct {
	Pos  Pos
	Call *TestCall // nil = the step is no call

	At      []time.Duration // when the call is made, from the start of the step: several times if there are several; never empty
	Cancel  time.Duration   // when the client takes the (first) call back, if Cancels
	Cancels bool
	Script  []TestAnswer
	Expect  []Expectation

	Advance time.Duration // time passes
	Restart string        // "server", "proxy", or "" = nothing is restarted
	Notify  *Notification // of the server
}

// TestCall is a tools/call of the client.
type TestCall struct {
	Pos       Pos
	Server    string // "" = the only one
	ServerPos Pos
	Tool      string
	Args      json.RawMessage // an object; nil = none
	Meta      json.RawMessage // an object; nil = none
}

// TestAnswer is what the server does with one attempt.
type TestAnswer struct {
	Pos    Pos
	Kind   string          // ok result tool_error error timeout hang late exit spawn_failure malformed
	Value  json.RawMessage // of result and error: the object; of tool_error: the text, or nil
	After  time.Duration   // how long it takes; of hang and late: that
	Effect bool            // whether it really happened
}

// Notification is one of the server.
type Notification struct {
	Method string
	Params json.RawMessage // nil = none
}

// Expectation is one thing that is expected of a call.
type Expectation struct {
	Key  string // "status", "error.code", "rules.retry", …
	Pos  Pos    // of the value
	Text string // the value as a person would write it
	// Want is the value: string, int64 or bool as such; a [Span] or []Span; a [Pattern] for text in slashes; a json.RawMessage
	// for what may be any JSON; nil for null.
	Want any

	Written Written // where it stands
}

// Written is where a value of a file stands, and what is inside it.
type Written struct {
	Pos   Pos
	Value json.RawMessage // as JSON
	Map   bool            // Parts are members; else, if there are any, the items of a list
	Name  string          // of a member
	Parts []Written
}

// Span is a range of durations.
type Span struct {
	Min, Max           time.Duration // Max < 0 = no bound
	AboveMin, BelowMax bool          // the bound itself is outside
}

// Contains reports whether a duration is in the range.
func (s Span) Contains(d time.Duration) bool {
	return (d > s.Min || d == s.Min && !s.AboveMin) && (s.Max < 0 || d < s.Max || d == s.Max && !s.BelowMax)
}

// Pattern is the text of a regular expression that a text must match somewhere. It compiles.
type Pattern string

//go:embed test.cue
var testCUE []byte

// TestCUE returns the schema of test files, which is their reference manual.
func TestCUE() []byte { return append([]byte(nil), testCUE...) }

// TestJSONSchema returns the schema of test files as JSON Schema, for editors: see [JSONSchema].
func TestJSONSchema() []byte {
	tests.prepare()
	return tests.jsonSchema("#TestFile", "mcp-retry policy tests")
}

var tests = &dialect{file: "test.cue", text: testCUE}

// LoadTest reads and checks a file of policy tests. It is spelled as a config is: see [Load]. All findings are returned at once;
// the file is nil if it could not be parsed at all, and fit for use if no finding is an Error. Neither the config that it names
// nor a snapshot is read.
func LoadTest(file string, data []byte) (f *TestFile, findings Findings) {
	var r report
	defer func() { r.findings.Sort(); findings = r.findings }()
	root := r.read(file, data)
	if root == nil {
		return nil, nil
	}
	if root.statesNothing() {
		r.errorAt(root.pos, "missing-key", testStartHint, "the file states nothing")
		return &TestFile{File: file}, nil
	}
	tests.prepare()
	check(tests, root, &r)
	b := testBuilder{report: &r}
	return b.file(file, root), nil
}

// prepare compiles the dialect: a whole file of it is a #TestFile.
func (d *dialect) prepare() {
	d.once.Do(func() {
		d.ctx = cuecontext.New()
		v := d.ctx.CompileBytes(d.text, cue.Filename(d.file))
		d.root = newShape(v.LookupPath(cue.ParsePath("#TestFile")))
	})
}

const testStartHint = "a test file starts with config: FILE, then tests: and a list"
