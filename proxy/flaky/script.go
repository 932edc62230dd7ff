package flaky

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// EnvVar names the environment variable that holds a script: JSON text if it begins with a brace, else the path of a file.
const EnvVar = "MCP_RETRY_FLAKY"

// Raw is JSON text.
type Raw = json.RawMessage

// Millis is a number of milliseconds.
type Millis int64

// Script is what a server is and does. Its zero value is a well-behaved server without tools.
type Script struct {
	Name         string `json:"name,omitempty"`         // serverInfo.name; "" = "flaky"
	Protocol     string `json:"protocol,omitempty"`     // the revision it answers with; "" = the one it is asked for
	Capabilities Raw    `json:"capabilities,omitempty"` // nil = all of them
	Instructions string `json:"instructions,omitempty"` // "" = none
	PageSize     int    `json:"page_size,omitempty"`    // tools in one answer of tools/list; 0 = all

	Tools   []Tool          `json:"tools,omitempty"`   // in the order of tools/list
	Methods map[string]Plan `json:"methods,omitempty"` // what requests other than tools/call come to, initialize included

	// Start is played before the first line is read: its n-th outcome in the n-th life. Only what needs no request counts:
	// stderr, floods, raw, notify, sleep, exit, kill, hang.
	Start *Plan `json:"start,omitempty"`

	// Initialized are messages sent when notifications/initialized comes, On those that other notifications bring about.
	Initialized []Message            `json:"initialized,omitempty"`
	On          map[string][]Message `json:"on,omitempty"`

	Ledger      string   `json:"ledger,omitempty"`      // path of the ledger; "" = none, and counts begin anew in every life
	Environment []string `json:"environment,omitempty"` // variables whose values go into the ledger at each start

	Faults
}

// Tool is a tool that the server lists and can be called.
type Tool struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty"` // "" = made of the name
	Annotations *Annotations `json:"annotations,omitempty"` // nil = none
	Definition  Raw          `json:"definition,omitempty"`  // an object whose members join or replace those of the listed entry
	Lives       []int        `json:"lives,omitempty"`       // lives of the server, from 1, in which the tool exists; nil = all
	Plan
}

// Annotations are the hints of a tool; nil = the server does not say.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    *bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  *bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool  `json:"openWorldHint,omitempty"`
}

// Message is a request or a notification of the server.
type Message struct {
	ID     Raw    `json:"id,omitempty"` // nil = a notification, or for [Outcome.Ask] the server's next number, from 0
	Method string `json:"method"`
	Params Raw    `json:"params,omitempty"`
}

// Faults is what is wrong with a server as a whole. The zero value is a server that behaves.
type Faults struct {
	// Bytes.
	CRLF            bool   `json:"crlf,omitempty"`             // lines end in CR LF
	BOM             bool   `json:"bom,omitempty"`              // a byte order mark stands before each line
	Framing         string `json:"framing,omitempty"`          // "content-length" = headers and no newline; "pretty" = over several lines
	IDs             string `json:"ids,omitempty"`              // what becomes of the ids of requests in answers: see below
	BufferOutput    bool   `json:"buffer_output,omitempty"`    // nothing is written before the end of input
	BufferAfter     string `json:"buffer_after,omitempty"`     // the same, from when this method came
	Sip             int    `json:"sip,omitempty"`              // stdin is read in pieces of so many bytes; 0 = as they come
	ASCIIOnly       bool   `json:"ascii_only,omitempty"`       // lines with other characters are complained about on stderr and ignored
	DeafAfter       string `json:"deaf_after,omitempty"`       // stdin is not read any more once this method came
	MuteAfter       string `json:"mute_after,omitempty"`       // stdout is closed once this method came (after its answer, if it is immediate)
	AnswerNotes     bool   `json:"answer_notes,omitempty"`     // notifications are answered, by an error with id null
	StrictHandshake bool   `json:"strict_handshake,omitempty"` // requests before initialize and initialized are refused, and a second initialize
	Serial          bool   `json:"serial,omitempty"`           // one request at a time: the next line is read once it has been answered
	ObeyCancel      bool   `json:"obey_cancel,omitempty"`      // a cancelled request is not answered; else cancellations are ignored

	// The process.
	IgnoreEOF  bool   `json:"ignore_eof,omitempty"`  // lives on after the end of input
	IgnoreTerm bool   `json:"ignore_term,omitempty"` // SIGTERM is written into the ledger and ignored
	Grandchild bool   `json:"grandchild,omitempty"`  // starts a process of its own that holds stdout and stderr open and ignores SIGTERM
	DieAfter   Millis `json:"die_after,omitempty"`   // exits with status 1 that long after its start; 0 = does not
	Lifetime   Millis `json:"lifetime,omitempty"`    // exits with status 70 that long after its start, come what may; 0 = two minutes
}

// Values of [Faults.IDs].
const (
	IDsFloat    = "float"    // 7 comes back as 7.0
	IDsExponent = "exponent" // 7 comes back as 7e0
	IDsString   = "string"   // 7 comes back as "7", and "7" as 7
	IDsZero     = "zero"     // every id comes back as 0
	IDsNull     = "null"     // every id comes back as null
	IDs32Bit    = "32bit"    // numbers come back modulo 2³²
)

// String is the script as JSON, fit for the environment variable [EnvVar].
func (s Script) String() string {
	text, err := marshal(s)
	if err != nil {
		return fmt.Sprintf("flaky: %v", err) // only a Raw that is no JSON gets here; ParseScript then refuses this text
	}
	return string(text)
}

// ParseScript reads a script from JSON text. A member that it does not know is an error.
func ParseScript(text []byte) (Script, error) {
	var s Script
	if err := unmarshal(text, &s); err != nil {
		return Script{}, fmt.Errorf("reading the script: %w", err)
	}
	return s, s.check()
}

// LoadScript reads a script that is given as in [EnvVar]: as JSON text, or as the path of a file of it.
func LoadScript(source string) (Script, error) {
	if strings.HasPrefix(strings.TrimSpace(source), "{") {
		return ParseScript([]byte(source))
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return Script{}, fmt.Errorf("reading the script: %w", err)
	}
	return ParseScript(text)
}

// MainFromEnv makes the process a server if the environment variable [EnvVar] is set. It returns the status to exit with,
// and whether it was set.
func MainFromEnv() (code int, ok bool) {
	source := os.Getenv(EnvVar)
	if source == "" {
		return 0, false
	}
	return Main(source, os.Stdin, os.Stdout, os.Stderr), true
}

// Main loads a script, given as in [EnvVar], and serves it.
func Main(source string, in io.Reader, out, stderr io.Writer) int {
	script, err := LoadScript(source)
	if err != nil {
		fmt.Fprintf(stderr, "flaky: %v\n", err)
		return 2
	}
	return Serve(in, out, stderr, script)
}

// check refuses words that mean nothing, so that a misspelt fault is not a server that behaves.
func (s *Script) check() error {
	switch s.IDs {
	case "", IDsFloat, IDsExponent, IDsString, IDsZero, IDsNull, IDs32Bit:
	default:
		return fmt.Errorf("unknown kind of ids %q", s.IDs)
	}
	switch s.Framing {
	case "", framingContentLength, framingPretty:
	default:
		return fmt.Errorf("unknown framing %q", s.Framing)
	}
	for _, tool := range s.Tools {
		if tool.Name == "" {
			return errors.New("a tool has no name")
		}
	}
	return nil
}

// marshal is JSON text that keeps <, > and & as they are.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// unmarshal reads one JSON value, without members that the target does not know.
func unmarshal(text []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}
