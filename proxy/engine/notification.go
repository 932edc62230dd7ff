package engine

import "github.com/bentabol/mcp-retry/proxy/jsonrpc"

// clientNotification takes in a notification of the client.
func (e *Engine) clientNotification(m *jsonrpc.Message) {
	first := false // word that the session is initialized
	switch string(m.Method) {
	case "notifications/cancelled":
		e.clientCancelled(m)
		return
	case "notifications/initialized":
		replays := e.life.replayed || e.session.agreed && !e.ready()
		first = !e.session.confirmed
		e.session.confirmed = true
		if replays {
			return // a new life of the server is told by us
		}
		if first {
			defer e.learnToolsOfCalls()
		}
	}
	switch e.life.state {
	case up, greeting:
		e.toServer(0, m.Frame)
	case starting, replaying:
		e.holdNotification(m.Frame, first)
	}
}

// maxNoted bounds the notifications of the client that wait for the server to be up, in bytes of their frames.
const maxNoted = 8 << 20

// noteSize is what a notification takes that waits, beside its frame.
const noteSize = 256

// holdNotification has a notification wait for the server to be up. What is too much is dropped, unless the session needs it.
func (e *Engine) holdNotification(frame []byte, needed bool) {
	l := &e.life
	size := len(frame) + noteSize
	if l.noted > 0 && l.noted+size > maxNoted && !needed {
		if !l.overfull {
			l.overfull = true
			e.log(Record{Level: LevelWarn, Event: "noise", Detail: "too many notifications of the client wait for the server to be up; more are dropped"})
		}
		return
	}
	l.noted += size
	l.queue = append(l.queue, queued{frame: clone(frame)})
}
