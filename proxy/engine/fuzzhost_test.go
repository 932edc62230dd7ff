package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// fail stops the test, which has found something.
func (w *scripted) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nunder\n%safter\n%s", fmt.Sprintf(format, args...), w.setup.yaml, w.trace.String())
}

// feed has the engine take in an event, and with it all that is due, and all that the server answers at once.
func (w *scripted) feed(ev engine.Event) {
	w.once(ev)
	for range 10_000 {
		at, wakes := w.e.NextWake()
		switch {
		case w.done:
			return
		case len(w.answers) > 0: // the host answers before anything else happens
			ev = w.answers[0]
			w.answers = w.answers[1:]
		case len(w.replies) > 0:
			ev = engine.Event{Kind: engine.FromServer, Gen: w.gen, Frame: []byte(w.replies[0].reply())}
			w.replies = w.replies[1:]
		case wakes && !at.After(w.now):
			ev = engine.Event{Kind: engine.Tick}
		default:
			if err := w.e.Check(); err != nil {
				w.fail("the engine's state: %v", err)
			}
			w.checkPatience()
			return
		}
		w.once(ev)
	}
	w.fail("the engine and the server keep each other busy for ever")
}

// once is one step of the engine, after which the memory of the frame serves for something else.
func (w *scripted) once(ev engine.Event) {
	if w.done {
		return
	}
	ev.Frame, ev.Tail = bytes.Clone(ev.Frame), bytes.Clone(ev.Tail)
	for _, a := range w.e.Step(w.now, ev) {
		switch a.Kind {
		case engine.ToClient:
			w.toClient(join(a.Data))
		case engine.ToServer:
			w.queue = append(w.queue, simFrame{a.Gen, a.Tag, join(a.Data), w.now})
		case engine.TakeBack:
			w.takeBack(&a)
		case engine.StartServer:
			if w.life != simNone {
				w.fail("life %d is started while life %d has not ended", a.Gen, w.gen)
			}
			w.gen, w.life = a.Gen, simStarting
		case engine.StopServer:
			if w.life == simNone || a.Gen != w.gen {
				w.fail("life %d is stopped, which does not run", a.Gen)
			}
			w.life = simStopping
		case engine.Finish:
			w.done = true
			w.checkAllAnswered()
		}
		w.reads()
	}
	for _, b := range [][]byte{ev.Frame, ev.Tail} {
		for i := range b {
			b[i] = '~'
		}
	}
}

// takeBack carries out a TakeBack action.
func (w *scripted) takeBack(a *engine.Action) {
	if !w.takes || a.Tag == 0 {
		w.fail("frame %d is to be taken back by a host that cannot", a.Tag)
	}
	i := slices.IndexFunc(w.queue, func(f simFrame) bool { return f.gen == a.Gen && f.tag == a.Tag })
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	} else if len(a.Data) > 0 {
		w.queue = append(w.queue, simFrame{a.Gen, 0, join(a.Data), w.now})
	}
	w.answers = append(w.answers, engine.Event{Kind: engine.TakenBack, Gen: a.Gen, Tag: a.Tag, Taken: i >= 0})
}

// reads has the server read what waits for it.
func (w *scripted) reads() {
	for len(w.queue) > 0 && !w.clogged {
		f := w.queue[0]
		w.queue = w.queue[1:]
		w.toServer(f)
	}
}

func (w *scripted) toServer(f simFrame) {
	fmt.Fprintf(&w.trace, "\t→ server %s\n", f.data)
	var m jsonrpc.Message
	if err := jsonrpc.Parse(f.data, &m); err != nil {
		w.fail("the engine wrote %q to the server: %v", f.data, err)
	}
	if f.gen != w.gen || w.life != simRunning {
		w.fail("a frame for life %d, and life %d is in state %d: %s", f.gen, w.gen, w.life, f.data)
	}
	if m.Kind.Response() {
		if key := jsonrpc.CanonicalID(m.ID.Of(f.data)); w.asked[key] > 0 {
			w.asked[key]--
		} else {
			w.fail("the server gets an answer to nothing that it asked: %s", f.data)
		}
	}
	if m.Kind != jsonrpc.Request {
		return
	}
	id := w.newID(&m)
	w.got = append(w.got, id)
	q := simAsked{id: id, method: string(m.Method), protocol: "2025-06-18"}
	switch q.method {
	case "tools/call":
		if f.tag != id {
			w.fail("the tag of an attempt is %d, its id %d", f.tag, id)
		}
		w.calls = append(w.calls, id)
	case "initialize":
		version, _ := jsonrpc.Lookup(f.data, m.Params, "protocolVersion")
		if bytes.Contains(version.Of(f.data), []byte(batches)) {
			q.protocol = batches
		}
		fallthrough
	case "tools/list":
		if w.obeys {
			w.replies = append(w.replies, q)
		}
	}
}

// newID is the id of a request of the engine, which must be new.
func (w *scripted) newID(m *jsonrpc.Message) int64 {
	id, ok := jsonrpc.IntID(m.ID.Of(m.Frame))
	if !ok || w.ids[id] {
		w.fail("the engine used the id of this before, or it is no integer: %s", m.Frame)
	}
	w.ids[id] = true
	return id
}

func (w *scripted) toClient(frame []byte) {
	fmt.Fprintf(&w.trace, "\t← client %s\n", frame)
	if frame[0] == '[' && w.batches {
		for _, response := range elements(string(frame)) {
			w.toClient([]byte(response))
		}
		return
	}
	var m jsonrpc.Message
	if err := jsonrpc.Parse(frame, &m); err != nil {
		w.fail("the engine wrote %q to the client: %v", frame, err)
	}
	switch {
	case m.Kind == jsonrpc.Request:
		w.questions = append(w.questions, w.newID(&m))
	case m.Kind.Response():
		raw := string(m.ID.Of(frame))
		if i := slices.IndexFunc(w.open, func(r openRequest) bool { return r.raw == raw }); i >= 0 {
			w.open = slices.Delete(w.open, i, i+1)
		} else if w.refusals--; w.refusals < 0 || m.Kind != jsonrpc.Error {
			w.fail("an answer to no open request: %s", frame)
		}
	case string(m.Method) == "notifications/progress":
		token, _ := jsonrpc.Lookup(frame, m.Params, "progressToken")
		wanted := func(r openRequest) bool { return r.token == string(token.Of(frame)) }
		if len(w.repeated) == 0 && !slices.ContainsFunc(w.open, wanted) {
			w.fail("progress for no open request: %s", frame)
		}
	}
}

// comesUp brings up a life that starts.
func (w *scripted) comesUp() {
	if w.life == simStarting {
		w.life = simRunning
		w.feed(engine.Event{Kind: engine.ServerUp, Gen: w.gen})
	}
}

// ends ends the present life, which has not read the last of its calls.
func (w *scripted) ends(spawn bool, unread int) {
	ev := engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: spawn, Detail: "exit status 3", Stderr: "one\ntwo"}
	for _, f := range w.queue {
		if f.tag != 0 {
			ev.Unsent = append(ev.Unsent, f.tag)
		}
	}
	ev.Unsent = append(ev.Unsent, w.calls[len(w.calls)-min(max(unread, 0), len(w.calls)):]...)
	w.life, w.queue, w.got, w.calls, w.replies = simNone, nil, nil, nil, nil
	clear(w.asked)
	w.feed(ev)
}

// speaks reports whether there is a server that could say something.
func (w *scripted) speaks() bool { return w.life == simRunning || w.life == simStopping }

func (w *scripted) leave() {
	if !w.gone {
		w.gone = true
		w.feed(engine.Event{Kind: engine.ClientEOF})
	}
}

// advance moves the clock, stopping wherever the engine wants to be woken. What starts is up by then, and what is stopped ends.
func (w *scripted) advance(d time.Duration) {
	end := w.now.Add(d)
	for n := 0; !w.done; n++ {
		if n > 10_000 {
			w.fail("the engine wakes for ever")
		}
		w.comesUp()
		if w.life == simStopping {
			w.ends(false, 0)
		}
		at, ok := w.e.NextWake()
		if !ok || at.After(end) {
			break
		}
		w.now = at
		w.feed(engine.Event{Kind: engine.Tick})
	}
	w.now = end
	w.feed(engine.Event{Kind: engine.Tick})
}

// conclude lets the session come to its end.
func (w *scripted) conclude() {
	w.clogged = false
	w.advance(w.setup.most + engine.BatchPatience)
	w.leave()
	for range 20 {
		w.advance(w.setup.most / 10)
	}
	if !w.done {
		w.fail("the session has not ended")
	}
}

// checkRefused says whether a frame was refused that is no message. In a batch, it is when that is complete.
func (w *scripted) checkRefused(before int, frame []byte) {
	if w.refusals > before && !w.batches {
		w.fail("this was not refused: %s", frame)
	}
}

// checkPatience says whether a call has waited for too long.
func (w *scripted) checkPatience() {
	patience := w.setup.most
	if w.batches {
		patience += engine.BatchPatience
	}
	for _, r := range w.open {
		_, repeated := w.repeated[r.key] // it may be another one that waits
		if r.method == "tools/call" && !repeated && w.now.Sub(r.admitted) > patience {
			w.fail("call %s still waits after %v", r.raw, w.now.Sub(r.admitted))
		}
	}
}

func (w *scripted) checkAllAnswered() {
	missing := map[string]int{}
	for _, r := range w.open {
		if r.method == "subscriptions/listen" && w.took {
			continue // the server may end one
		}
		if missing[r.key]++; missing[r.key] > w.repeated[r.key] {
			w.fail("request %s, %s, was never answered", r.raw, strings.ToValidUTF8(r.method, "?"))
		}
	}
	if w.refusals > 0 && !w.batches {
		w.fail("%d frames were not refused", w.refusals)
	}
}
