package compose

import (
	"slices"
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
	if m.retired {
		return
	}
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
	if m.retired {
		return
	}
	waiting := m.waiting
	m.waiting = nil
	if !m.agreed {
		for _, w := range waiting {
			b.turnAwayMissing(server, w, m.detail)
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
	for _, w := range waiting {
		b.open[jsonrpc.CanonicalID(idOf(w.frame))] = server
		b.send(server, w.frame)
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
			b.gone(server, "")
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
	m.missing, m.gone, m.detail = false, false, ""
	b.log(engine.Record{Level: engine.LevelInfo, Event: "server_back", Server: b.name(server)})
	b.listenAgain(server)
	b.announceAll(server, "")
}

// down takes in that the process of a server has ended. One that is not restarted is missing for good.
func (b *Board) down(server int, ev engine.Event) {
	m := b.members[server]
	if m.retired && m.finished {
		b.log(engine.Record{Level: engine.LevelInfo, Event: "server_exit", Server: b.name(server), Attempt: int(ev.Gen), Detail: ev.Detail})
		return
	}
	b.tell(server, ev)
	b.work()
	starts := slices.ContainsFunc(b.out, func(a Action) bool { return a.Server == server && a.Kind == engine.StartServer })
	if m.Config.Restart == "never" && m.agreed && !starts && !b.leaving {
		b.lost(server, "it has ended ("+ev.Detail+"), and is not to be restarted")
		b.gone(server, "")
	}
}

// gone tells the client, once, that a server has dropped out of the lists: its process cannot be started, or is not to be. One that
// has only ended is started again when it is needed, and stays in them. The list of the method given, which may be "", needs no
// word: the client is about to get it.
func (b *Board) gone(server int, except string) {
	m := b.members[server]
	if m.gone || m.retired {
		return
	}
	m.gone = true
	b.announceAll(server, except)
}

// announceAll tells the client that the lists have changed in which a server has a part, but for that of a method.
func (b *Board) announceAll(server int, except string) {
	for _, kind := range listKinds {
		if method := kind + "/list"; method != except && b.asks(server, method) {
			b.announce(kind)
		}
	}
}

// listKinds are the lists of which a client can be told that they have changed.
var listKinds = []string{"tools", "prompts", "resources"}

// announce tells the client that a list has changed.
func (b *Board) announce(kind string) {
	if !b.listed || b.leaving || b.declared != nil && !b.declared[kind] {
		return
	}
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
