package policytest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// Recording is the calls of a session that mcp-retry run --record wrote down.
type Recording struct {
	Server string // its name in the config of that time
	Start  time.Time
	Tools  json.RawMessage // as the server listed them; nil = nobody asked
	Calls  []*RecordedCall // in the order in which they were made
	Cut    bool            // the last line is incomplete, as after a kill, and left out
}

// RecordedCall is a call of the client and what it came to.
type RecordedCall struct {
	At       time.Duration // since the start
	Call     schema.TestCall
	Attempts []schema.TestAnswer
	Status   string          // success, tool_error, error; "" = it has no answer in the recording
	Code     int64           // of the error
	Result   json.RawMessage // of the server; nil = an error
	Took     time.Duration
	Cancel   time.Duration // since the start: when the client took the call back, if Cancels
	Cancels  bool
}

// recordedAttempt is an attempt whose answer is still to come.
type recordedAttempt struct {
	id   string // at the server
	at   time.Time
	call *RecordedCall
	n    int // among the call's attempts
}

// recordedLine is a line of a recording: what package proxy writes.
type recordedLine struct {
	At     time.Time       `json:"at"`
	Server string          `json:"server"`
	What   string          `json:"what"`
	Call   string          `json:"call"`
	Frame  json.RawMessage `json:"frame"`
	Text   string          `json:"text"`
}

// recordedFrame is what is read of a frame.
type recordedFrame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      json.RawMessage `json:"_meta"`
		RequestID json.RawMessage `json:"requestId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// isCall reports whether a tools/call is one that the engine does not refuse for its form: else policy has no say in it.
func (f *recordedFrame) isCall() bool {
	object := func(text json.RawMessage) bool { return text == nil || text[0] == '{' }
	return f.ID != nil && f.Params.Name != "" && object(f.Params.Arguments) && object(f.Params.Meta)
}

// maxRecordedLine is the longest line that is read.
const maxRecordedLine = 256 << 20

// ReadRecordings reads the sessions of a recording, those with several servers at a time as one for each server, in the order
// in which they began. The last line of one that is cut off is left out, and the session marked. The error names the line.
func ReadRecordings(r io.Reader) ([]*Recording, error) {
	var all []*Recording
	running := map[string]*recordingReader{} // by server
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRecordedLine)
	cut := 0 // the number of a line that is no JSON: there the session must have ended
	for n := 1; lines.Scan(); n++ {
		var l recordedLine
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case cut == 0 && len(all) > 0 && !json.Valid(lines.Bytes()):
			cut = n
			continue
		case err != nil || l.What == "":
			return nil, fmt.Errorf("line %d is none of a recording", n)
		case cut > 0 && l.What != "session":
			return nil, fmt.Errorf("line %d is none of a recording", cut)
		case cut > 0:
			all[len(all)-1].Cut, cut = true, 0
		}
		p := running[l.Server]
		if p == nil || l.What == "session" {
			p = &recordingReader{Recording: &Recording{Server: l.Server, Start: l.At}, calls: map[string]*RecordedCall{}, attempts: map[string]*recordedAttempt{}}
			running[l.Server] = p
			all = append(all, p.Recording)
		}
		p.take(&l)
	}
	if cut > 0 {
		all[len(all)-1].Cut = true
	}
	return all, lines.Err()
}

type recordingReader struct {
	*Recording
	calls    map[string]*RecordedCall    // that wait for an answer, by the client's id
	attempts map[string]*recordedAttempt // that wait for one, by their id at the server
}

func (p *recordingReader) take(l *recordedLine) {
	var f recordedFrame
	if l.Frame != nil && json.Unmarshal(l.Frame, &f) != nil {
		return
	}
	id := string(f.ID)
	switch l.What {
	case "from_client":
		if c := p.calls[string(f.Params.RequestID)]; c != nil && f.Method == "notifications/cancelled" {
			c.Cancel, c.Cancels = l.At.Sub(p.Start), true
		}
		if f.Method != "tools/call" || !f.isCall() {
			return
		}
		c := &RecordedCall{At: l.At.Sub(p.Start), Call: schema.TestCall{Tool: f.Params.Name, Args: f.Params.Arguments, Meta: f.Params.Meta}}
		p.Calls = append(p.Calls, c)
		p.calls[id] = c
	case "to_server":
		if c := p.calls[l.Call]; c != nil && f.Method == "tools/call" {
			a := &recordedAttempt{id: id, at: l.At, call: c, n: len(c.Attempts)}
			c.Attempts = append(c.Attempts, schema.TestAnswer{Kind: "timeout"})
			p.attempts[id] = a
		}
	case "from_server":
		p.answered(l, &f)
	case "server_down":
		for id, a := range p.attempts {
			a.call.Attempts[a.n] = schema.TestAnswer{Kind: "exit", After: l.At.Sub(a.at)}
			delete(p.attempts, id)
		}
	case "to_client":
		if c := p.calls[id]; c != nil && f.Method == "" {
			c.end(l.At.Sub(p.Start), &f)
			delete(p.calls, id)
		}
	}
}

// answered takes in a message of the server.
func (p *recordingReader) answered(l *recordedLine, f *recordedFrame) {
	if f.Method != "" {
		return
	}
	if a := p.attempts[string(f.ID)]; a != nil {
		answer := schema.TestAnswer{Kind: "error", Value: f.Error, After: l.At.Sub(a.at)}
		if f.Error == nil {
			answer.Kind, answer.Value = "result", f.Result
			answer.Effect = !isError(f.Result)
		}
		a.call.Attempts[a.n] = answer
		delete(p.attempts, string(f.ID))
		return
	}
	var listed struct {
		Tools json.RawMessage `json:"tools"`
	}
	if p.Tools == nil && json.Unmarshal(f.Result, &listed) == nil && listed.Tools != nil {
		p.Tools = listed.Tools
	}
}

func (c *RecordedCall) end(at time.Duration, f *recordedFrame) {
	c.Took, c.Status, c.Result = at-c.At, "success", f.Result
	failed := readFailure(&message{Result: f.Result, Error: f.Error})
	switch {
	case failed == nil:
	case f.Error != nil || failed.Kind != "": // an error of ours may have been told by a result
		c.Status, c.Code, c.Result = "error", failed.Code, nil
	default:
		c.Status = "tool_error"
	}
}

// over is when the call had ended; ok = it had, in the recording.
func (c *RecordedCall) over() (at time.Duration, ok bool) {
	switch {
	case c.Status != "":
		return c.At + c.Took, true
	case c.Cancels:
		return c.Cancel, true
	}
	return 0, false
}

func isError(result json.RawMessage) bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}
