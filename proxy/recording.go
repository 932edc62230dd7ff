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
// in JSON, in the order in which they happened; sessions may follow one another in one file.
type RecordedLine struct {
	At     time.Time       `json:"at"`
	Server string          `json:"server"`         // its name in the config
	What   string          `json:"what"`           // session, from_client, to_client, from_server, to_server, server_up, server_down
	Call   string          `json:"call,omitempty"` // of an attempt that goes to the server: the raw JSON id of the client's call
	Frame  json.RawMessage `json:"frame,omitempty"`
	Text   string          `json:"text,omitempty"` // of a frame that is no JSON; of server_down how the server ended
}

// recorder writes down what an engine is told and what it wants done.
type recorder struct {
	engine stepper
	server string
	calls  map[int64]string // which call an attempt is of, by the tag of its action

	mu     *sync.Mutex // several sessions may write
	out    io.Writer
	broken bool // it could not be written: a recording with holes would mislead, so it ends there
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
	case engine.ServerDown:
		r.line(RecordedLine{At: now, What: "server_down", Text: ev.Detail})
	}
	actions := r.engine.Step(now, ev)
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case engine.ToClient:
			r.frame(now, "to_client", "", a.Data...)
		case engine.ToServer:
			r.frame(now, "to_server", r.calls[a.Tag], a.Data...)
			delete(r.calls, a.Tag)
		}
	}
	return actions
}

func (r *recorder) frame(now time.Time, what, call string, pieces ...[]byte) {
	line := RecordedLine{At: now, What: what, Call: call}
	text := schema.Redact(bytes.Join(pieces, nil))
	if json.Valid(text) {
		line.Frame = text
	} else {
		line.Text = string(text)
	}
	r.line(line)
}

func (r *recorder) line(l RecordedLine) {
	l.Server = r.server
	text, err := json.Marshal(l)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.broken {
		_, err = r.out.Write(append(text, '\n'))
		r.broken = err != nil
	}
}
