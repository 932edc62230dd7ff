package schema

// Level says how bad a finding is.
type Level uint8

const (
	Error   Level = iota // the config is refused
	Warning              // it works, and is probably not what was meant
	Note                 // worth knowing; shown only when asked for
)

// Finding is one thing that is wrong or unwise in a config.
type Finding struct {
	Pos     Pos
	Level   Level
	ID      string // stable and short: "unknown-key", "bad-value", "missing-key", "repeated-key", "syntax", "cel-type", …
	Message string // lower case, no full stop, the user's own words quoted
	Hint    string // what to do next: `did you mean "max_retries"?`; may be empty
	Fix     Fix    // the correction, if there is one that cannot be wrong
}

// Fix is a correction of the text: what stands at Pos, all of it on one line, is replaced by Text. The zero value is none.
type Fix struct {
	Pos  Pos
	Text string
}

// Findings are all findings about one config, in the order of the file.
type Findings []Finding
