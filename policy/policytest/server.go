package policytest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// scripted is the server of a session: it answers attempts as a script says, and everything else as a server does.
type scripted struct {
	session    *session
	gen        uint64 // its present life
	runs       bool
	script     []schema.TestAnswer // what is left of the step's
	length     int                 // of the whole script
	executions int                 // in the step
	unscripted int                 // attempts that came when nothing was left
	told       map[string]bool     // requests that it was told to stop, by their id
}

// play begins the script of a step.
func (v *scripted) play(script []schema.TestAnswer) {
	v.script, v.length, v.executions, v.unscripted = script, len(script), 0, 0
	v.fallIfNext()
}

// fallIfNext ends the process if the next thing that the script wants is that it cannot be started.
func (v *scripted) fallIfNext() {
	if len(v.script) > 0 && v.script[0].Kind == "spawn_failure" && v.runs {
		v.die("it is gone")
	}
}

// die ends the present life.
func (v *scripted) die(detail string) {
	v.runs = false
	gen := v.gen
	v.session.world.plan(0, func() {
		v.session.step(engine.Event{Kind: engine.ServerDown, Gen: gen, Detail: detail})
	})
}

func (v *scripted) start(gen uint64) {
	s := v.session
	v.gen = gen
	if len(v.script) > 0 && v.script[0].Kind == "spawn_failure" {
		delay := v.script[0].After
		v.script = v.script[1:]
		s.world.note("the server cannot be started")
		s.world.plan(delay, func() {
			s.step(engine.Event{Kind: engine.ServerDown, Gen: gen, Spawn: true, Detail: "spawn failed"})
		})
		return
	}
	v.runs, v.told = true, map[string]bool{}
	s.world.plan(0, func() { s.step(engine.Event{Kind: engine.ServerUp, Gen: gen}) })
}

// stop ends a life because the engine wants it.
func (v *scripted) stop(gen uint64) {
	if v.runs && gen == v.gen {
		v.die("stopped")
	}
}

// notify sends a notification.
func (v *scripted) notify(n *schema.Notification) {
	frame := `{"jsonrpc":"2.0","method":` + string(quoted(n.Method))
	if n.Params != nil {
		frame += `,"params":` + string(n.Params)
	}
	v.session.world.note("the server says %s", n.Method)
	v.session.fromServer(v.gen, frame+"}")
}

func quoted(s string) []byte {
	text, _ := json.Marshal(s) // a string always has a JSON form
	return text
}

// receive takes in a frame.
func (v *scripted) receive(gen uint64, tag int64, frame []byte) {
	var m message
	if json.Unmarshal(frame, &m) != nil || gen != v.gen || !v.runs {
		return
	}
	switch m.Method {
	case "initialize":
		v.reply(string(m.ID), 0, `"result":`+serverHello)
	case "tools/list":
		v.reply(string(m.ID), 0, `"result":{"tools":`+string(v.session.setup.tools)+`}`)
	case "tools/call":
		v.attempt(string(m.ID), tag)
	case "notifications/cancelled":
		v.told[string(m.Params.RequestID)] = true
	default:
		if m.Method != "" && m.ID != nil {
			v.reply(string(m.ID), 0, `"result":{}`)
		}
	}
}

const (
	serverHello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"scripted","version":"1"}}`
	okResult    = `{"content":[{"type":"text","text":"ok"}]}`
)

// reply answers a request after a while, if the life lasts so long.
func (v *scripted) reply(id string, after time.Duration, member string) {
	s, gen := v.session, v.gen
	s.world.plan(after, func() {
		if v.runs && v.gen == gen {
			s.fromServer(gen, `{"jsonrpc":"2.0","id":`+id+`,`+member+`}`)
		}
	})
}

// attempt does with an attempt what the script says.
func (v *scripted) attempt(id string, tag int64) {
	s := v.session
	c := s.calls[s.tags[tag]]
	delete(s.tags, tag)
	var a schema.TestAnswer
	switch {
	case c != nil && len(c.script) > 0:
		a = c.script[0]
		c.script = c.script[1:]
	case c != nil && c.rest.Kind != "":
		v.unscripted++
		a = c.rest
	case len(v.script) > 0:
		a = v.script[0]
		v.script = v.script[1:]
	default:
		v.unscripted++
		a = schema.TestAnswer{Kind: "ok"}
	}
	if a.Effect {
		v.executions++
	}
	if c != nil {
		c.sent(s.world.now, a)
	}
	gen := v.gen
	switch a.Kind {
	case "ok":
		v.reply(id, a.After, `"result":`+okResult)
	case "result":
		v.reply(id, a.After, `"result":`+string(a.Value))
	case "tool_error":
		text := a.Value
		if text == nil {
			text = json.RawMessage(`"tool error"`)
		}
		v.reply(id, a.After, fmt.Sprintf(`"result":{"content":[{"type":"text","text":%s}],"isError":true}`, text))
	case "error":
		v.reply(id, a.After, `"error":`+string(a.Value))
	case "late":
		v.reply(id, a.After, `"result":`+okResult)
	case "hang":
		if !a.Effect {
			break // it does nothing, so it has nothing to say
		}
		s.world.plan(a.After, func() {
			if v.runs && v.gen == gen && !v.told[id] {
				s.fromServer(gen, `{"jsonrpc":"2.0","id":`+id+`,"result":`+okResult+`}`)
			}
		})
	case "exit":
		s.world.plan(a.After, func() {
			if v.runs && v.gen == gen {
				v.die("exit status 1")
			}
		})
	case "malformed":
		s.world.plan(a.After, func() {
			if v.runs && v.gen == gen {
				s.fromServer(gen, `{"jsonrpc":"2.0","id":`+id+`,"result":{},"error":{}}`) // it may only have one of them
			}
		})
	}
}
