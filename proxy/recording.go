package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// A RecordedLine is one line of a recording: something that passed one of the borders of mcp-retry. A recording is such lines
// in JSON, in the order in which they happened; sessions may follow one another in one file. Of several servers behind one
// endpoint each has its own session, whose lines stand among those of the others: what it gets of the client and is answered with
// bears its own names and ids, not those of the endpoint. What the endpoint answers itself is not recorded: a list, say, or a call of
// a server that is not there.
type RecordedLine struct {
	At     time.Time       `json:"at"`
	Server string          `json:"server"`         // its name in the config
	What   string          `json:"what"`           // session, from_client, to_client, from_server, to_server, server_up, server_down
	Call   string          `json:"call,omitempty"` // of an attempt that goes to the server: the raw JSON id of the client's call
	Frame  json.RawMessage `json:"frame,omitempty"`
	Text   string          `json:"text,omitempty"` // of a frame that is no JSON; of server_down how the server ended
}

// A tape is where recorders write: of the sessions of a proxy, and of the servers of a session.
type tape struct {
	mu     sync.Mutex
	out    io.Writer
	failed func(error) // is told why it could not be written, once
	broken bool        // it could not be written: a recording with holes would mislead, so it ends there
}

func (t *tape) write(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.broken {
		if _, err := t.out.Write(append(line, '\n')); err != nil {
			t.broken = true
			t.failed(err)
		}
	}
}

// recorder writes down what the engine of a server is told and what it wants done.
type recorder struct {
	engine  stepper
	server  string
	calls   map[int64]string // which call an attempt is of, by the tag of its action
	secrets *schema.Redactor // of the session
	tape    *tape
}

// newRecorder begins a session with a server. Its engine is still to be set.
func newRecorder(t *tape, server string, secrets *schema.Redactor) *recorder {
	r := &recorder{server: server, calls: map[int64]string{}, secrets: secrets, tape: t}
	r.line(RecordedLine{At: time.Now(), What: "session"})
	return r
}

// observer is what the engine must be given to know which call an attempt is of.
func (r *recorder) observer() *engine.Observer {
	return &engine.Observer{Sent: func(request string, tag int64) { r.calls[tag] = request }}
}

// NextWake implements stepper.
func (r *recorder) NextWake() (time.Time, bool) { return r.engine.NextWake() }

// Step implements stepper.
func (r *recorder) Step(now time.Time, ev engine.Event) []engine.Action {
	switch ev.Kind {
	case engine.FromClient:
		r.frame(now, "from_client", "", ev.Frame)
	case engine.FromServer:
		r.frame(now, "from_server", "", ev.Frame)
	case engine.ServerUp:
		r.line(RecordedLine{At: now, What: "server_up"})
	case engine.Reload:
		r.secrets.Learn(ev.Server)
	case engine.ServerDown:
		r.line(RecordedLine{At: now, What: "server_down", Text: r.secrets.Text(ev.Detail)})
	}
	actions := r.engine.Step(now, ev)
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case engine.ToClient:
			r.frame(now, "to_client", "", a.Data...)
		case engine.ToServer:
			r.frame(now, "to_server", r.calls[a.Tag], a.Data...)
			delete(r.calls, a.Tag)
		case engine.TakeBack:
			if a.Data != nil {
				r.frame(now, "to_server", "", a.Data...)
			}
		}
	}
	return actions
}

func (r *recorder) frame(now time.Time, what, call string, pieces ...[]byte) {
	line := RecordedLine{At: now, What: what, Call: string(r.secrets.Redact([]byte(call)))} // as the id in the frames
	text := r.secrets.Redact(bytes.Join(pieces, nil))
	if json.Valid(text) {
		line.Frame = text
	} else {
		line.Text = string(text)
	}
	r.line(line)
}

func (r *recorder) line(l RecordedLine) {
	l.Server = r.server
	if text, err := json.Marshal(l); err == nil {
		r.tape.write(text)
	}
}
