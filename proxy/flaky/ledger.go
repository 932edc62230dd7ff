package flaky

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// ledgerCut is how many bytes of a line the ledger keeps.
const ledgerCut = 64 << 10

// Names of events in a ledger.
const (
	EventStart      = "start"      // a life began: Life, Argv, Cwd, Environment
	EventReceived   = "received"   // a line came: Line
	EventSent       = "sent"       // something was written to stdout: Line
	EventRequest    = "request"    // a request was counted: Of, ID
	EventExecuted   = "executed"   // a tool did its work: Of, Execution, Arguments
	EventGrandchild = "grandchild" // a process of the server's own was started: PID is its id
	EventEOF        = "eof"        // the end of input came
	EventTerm       = "term"       // SIGTERM came and was ignored
	EventEnd        = "end"        // the life ended in order: Code
)

// Entry is one event in a ledger.
type Entry struct {
	At    time.Time `json:"at"`
	PID   int       `json:"pid"`
	Life  int       `json:"life"` // from 1
	Event string    `json:"event"`

	Line        string            `json:"line,omitempty"`        // its first 64 KiB
	Of          string            `json:"of,omitempty"`          // "tool NAME" or a method
	ID          Raw               `json:"id,omitempty"`          // of a request
	Execution   int               `json:"execution,omitempty"`   // of that tool, from 1
	Arguments   Raw               `json:"arguments,omitempty"`   // of a call
	Code        int               `json:"code,omitempty"`        // status of the process
	Argv        []string          `json:"argv,omitempty"`        // of the process
	Cwd         string            `json:"cwd,omitempty"`         // of the process
	Environment map[string]string `json:"environment,omitempty"` // variables that the script asked for; one that is not set is missing
}

// Ledger is what a server has written down, in order.
type Ledger []Entry

// ReadLedger reads a ledger as it stands now; a file that does not exist is an empty one.
func ReadLedger(path string) (Ledger, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	var ledger Ledger
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return ledger, nil // what is left is an entry that is being written
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("reading the ledger: entry %d: %w", len(ledger)+1, err)
		}
		ledger = append(ledger, entry)
		text = rest
	}
}

// Events are the entries of one event.
func (l Ledger) Events(event string) Ledger {
	var found Ledger
	for _, entry := range l {
		if entry.Event == event {
			found = append(found, entry)
		}
	}
	return found
}

// Lives is how often the server was started.
func (l Ledger) Lives() int { return len(l.Events(EventStart)) }

// Attempts is how many calls of a tool reached the server.
func (l Ledger) Attempts(tool string) int { return l.count(EventRequest, ofTool(tool)) }

// Executions is how often a tool did its work.
func (l Ledger) Executions(tool string) int { return l.count(EventExecuted, ofTool(tool)) }

// Requests is how many requests with this method, other than tools/call, reached the server.
func (l Ledger) Requests(method string) int { return l.count(EventRequest, method) }

// Received are the lines that came with this method, requests and notifications alike.
func (l Ledger) Received(method string) []string {
	var lines []string
	for _, entry := range l.Events(EventReceived) {
		var m message
		if json.Unmarshal([]byte(entry.Line), &m) == nil && m.Method == method {
			lines = append(lines, entry.Line)
		}
	}
	return lines
}

func (l Ledger) count(event, of string) int {
	n := 0
	for _, entry := range l {
		if entry.Event == event && entry.Of == of {
			n++
		}
	}
	return n
}

// ofTool is the name under which the calls of a tool are counted.
func ofTool(tool string) string { return "tool " + tool }

// journal appends to a ledger. Without a file it keeps nothing.
type journal struct {
	file *os.File
	life int
	past Ledger // what earlier lives wrote
}

// openJournal opens the ledger for one more life.
func openJournal(path string) (*journal, error) {
	if path == "" {
		return &journal{life: 1}, nil
	}
	past, err := ReadLedger(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the ledger: %w", err)
	}
	return &journal{file: file, life: past.Lives() + 1, past: past}, nil
}

// counts are how often an event happened in earlier lives, by what it was about.
func (j *journal) counts(event string) map[string]int {
	counts := make(map[string]int)
	for _, entry := range j.past.Events(event) {
		counts[entry.Of]++
	}
	return counts
}

// record appends an entry, in a single write, so that lives which overlap do not mix.
func (j *journal) record(entry Entry) {
	if j.file == nil {
		return
	}
	entry.At, entry.Life = time.Now(), j.life
	if entry.PID == 0 {
		entry.PID = os.Getpid()
	}
	if len(entry.Line) > ledgerCut {
		entry.Line = entry.Line[:ledgerCut]
	}
	line, err := marshal(entry)
	if err != nil { // an id or arguments that are no JSON
		entry.ID, entry.Arguments = nil, nil
		line, _ = marshal(entry)
	}
	j.file.Write(append(line, '\n')) // a ledger that cannot be written shows in the test that reads it
}

func (j *journal) close() {
	if j.file != nil {
		j.file.Close()
	}
}
