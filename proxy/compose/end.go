package compose

import (
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// drainTime is how long requests of which several servers are asked may still take once the client has gone.
const drainTime = 10 * time.Second

// clientEOF begins the end: what is open finishes, and then the engines are told, which finish what is in flight.
func (b *Board) clientEOF() {
	if b.leaving {
		return
	}
	b.leaving, b.drainAt = true, b.now.Add(drainTime)
	for _, m := range b.members {
		m.probeAt = time.Time{}
	}
}

// tellEngines tells the engines that the client has gone, once nothing is open that needs more than one answer of theirs.
func (b *Board) tellEngines() {
	if !b.leaving || b.told {
		return
	}
	late := !b.now.Before(b.drainAt)
	if !late && (len(b.held) > 0 || slices.ContainsFunc(b.fans, func(f *fan) bool { return f.id != nil }) ||
		slices.ContainsFunc(b.members, func(m *member) bool { return len(m.waiting) > 0 })) {
		return
	}
	b.told = true
	b.refuseWaiting()
	for i := range b.members {
		b.tell(i, engine.Event{Kind: engine.ClientEOF})
	}
}

// terminate ends everything at once.
func (b *Board) terminate() {
	b.leaving, b.told = true, true
	b.refuseWaiting()
	for i, m := range b.members {
		m.probeAt = time.Time{}
		b.tell(i, engine.Event{Kind: engine.Terminate})
	}
}

// engineFinished takes in that an engine has nothing left to do. That of a server that was retired ends the process; that of any
// other waits for the end of the session.
func (b *Board) engineFinished(server int, a engine.Action) {
	m := b.members[server]
	m.finished, m.probeAt = true, time.Time{}
	b.abandon(server)
	if !m.retired || b.leaving {
		b.hurry = b.hurry || a.Hurry
		return
	}
	m.Engine = nil
	b.out = append(b.out, Action{Server: server, Action: engine.Action{Kind: engine.StopServer, Gen: a.Gen}})
}

// refuseWaiting answers the requests that have not been sent anywhere.
func (b *Board) refuseWaiting() {
	held := b.held
	b.held = nil
	for _, frame := range held {
		if id := idOf(frame); id != nil {
			b.answer(id, "error", shutdownFault())
		}
	}
	for i, m := range b.members {
		waiting := m.waiting
		m.waiting = nil
		for _, w := range waiting {
			b.turnAway(i, w, engine.CodeShutdown, "shutdown", shutdownText)
		}
	}
}

// finishIfDone ends the session once all engines are at their end.
func (b *Board) finishIfDone() {
	if slices.ContainsFunc(b.members, func(m *member) bool { return !m.finished }) {
		return
	}
	for _, batch := range slices.Clone(b.batches) {
		b.breakUp(batch)
	}
	b.finished = true
	b.out = append(b.out, Action{Action: engine.Action{Kind: engine.Finish, Hurry: b.hurry}})
}
