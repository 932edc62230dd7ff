package compose

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// A server that is missing is tried again after a second, then after twice that each time, up to the most.
const (
	leastProbe = time.Second
	mostProbe  = time.Minute
)

func probeDelay(failures int) time.Duration {
	return min(mostProbe, leastProbe<<min(max(failures-1, 0), 10))
}

// triedJustNow reports whether a server was tried so lately that there is no sense in trying it again.
func (b *Board) triedJustNow(m *member) bool {
	return m.failures > 0 && b.now.Sub(m.failedAt) < leastProbe
}

// lost takes in that a server is missing, and plans to try it again.
func (b *Board) lost(server int, detail string) {
	m := b.members[server]
	level := engine.LevelWarn
	if m.missing && m.detail == detail {
		level = engine.LevelDebug // as was said
	}
	m.missing, m.detail = true, detail
	m.failures++
	m.failedAt = b.now
	if b.leaving || m.finished {
		return
	}
	m.probeAt = b.now.Add(probeDelay(m.failures))
	if m.Config.Restart == "never" && m.agreed {
		m.probeAt = time.Time{} // it has ended for good
	}
	b.log(engine.Record{Level: level, Event: "server_missing", Server: b.name(server), Detail: detail})
}

// probe tries a server that is missing.
func (b *Board) probe(server int) {
	m := b.members[server]
	m.probeAt = time.Time{}
	if m.probing || m.shaking || m.finished || b.leaving {
		return
	}
	if m.agreed {
		b.ping(server)
		return
	}
	if b.initialize == nil {
		return
	}
	m.shaking = true
	f := &fan{method: "initialize"}
	f.finish = func(f *fan) { b.shookLate(server, f.parts[0]) }
	b.start(f)
	b.ask(f, server, b.initialize, b.initID)
}

// shookLate takes in how a handshake went that was made after that of the client.
func (b *Board) shookLate(server int, p *part) {
	m := b.members[server]
	b.shook(p)
	waiting := m.waiting
	m.waiting = nil
	if !m.agreed {
		for _, frame := range waiting {
			b.answer(idOf(frame), "error", unavailableFault(b.name(server), m.detail))
		}
		return
	}
	if b.confirmed != nil {
		b.send(server, b.confirmed)
	}
	if b.logLevel != nil && b.asks(server, "logging/setLevel") {
		f := &fan{method: "logging/setLevel", deadline: b.now.Add(listTime), finish: func(*fan) {}}
		b.start(f)
		frame, idAt := frameOf(f.method, b.logLevel)
		b.ask(f, server, frame, idAt)
	}
	for _, frame := range waiting {
		b.open[jsonrpc.CanonicalID(idOf(frame))] = server
		b.send(server, frame)
	}
	b.back(server)
}

// reload has a server's new config come into force. It may be what a server that is missing has waited for.
func (b *Board) reload(server int, ev engine.Event) {
	m := b.members[server]
	m.Config = ev.Server
	b.tell(server, ev)
	if m.missing && !b.leaving {
		m.failures, m.probeAt = 0, b.now
	}
}

// ping tries a server whose handshake is made: the engine starts it if it has ended.
func (b *Board) ping(server int) {
	m := b.members[server]
	m.probing = true
	f := &fan{method: "ping"}
	var params []byte
	if b.modern { // which has no ping
		f.method = "server/discover"
		params = append(append([]byte(`{"_meta":`), b.meta...), '}')
	}
	f.finish = func(f *fan) {
		m.probing = false
		if err := f.parts[0].err; err != nil && isAbsence(err) {
			b.lost(server, messageOf(err))
			return
		}
		b.back(server)
	}
	b.start(f)
	frame, idAt := frameOf(f.method, params)
	b.ask(f, server, frame, idAt)
}

// back takes in that a server is there again.
func (b *Board) back(server int) {
	m := b.members[server]
	if !m.missing {
		return
	}
	m.missing, m.detail = false, ""
	b.log(engine.Record{Level: engine.LevelInfo, Event: "server_back", Server: b.name(server)})
	b.listenAgain(server)
	if !b.listed || b.leaving {
		return
	}
	for _, kind := range []string{"tools", "prompts", "resources"} {
		if b.asks(server, kind+"/list") {
			b.announce(kind)
		}
	}
}

// announce tells the client that a list has changed.
func (b *Board) announce(kind string) {
	method := "notifications/" + kind + "/list_changed"
	if !b.modern {
		b.toClient([]byte(`{"jsonrpc":"2.0","method":"` + method + `"}`))
		return
	}
	for _, l := range b.listens {
		if l.acked && l.granted[kind+"ListChanged"] == true {
			b.toClient([]byte(`{"jsonrpc":"2.0","method":"`+method+`","params":{"_meta":{"`+subscriptionID+`":`), l.id, []byte("}}}"))
		}
	}
}
