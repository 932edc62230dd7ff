package compose

import (
	"slices"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// retireTime is how long the engine of a server that is retired is not told so, since requests are open there: once it is, what
// is in flight still finishes, but the client is asked nothing more.
const retireTime = time.Minute

// Index is the index of a server that is in the config; false = none has that name.
func (b *Board) Index(name string) (int, bool) {
	for _, i := range b.order {
		if b.members[i].Config.Name == name {
			return i, true
		}
	}
	return 0, false
}

// Rearrange puts the servers of another config behind the endpoint, in its order and under its separator. Those whose names are
// here already stay with all that their engines know: of them nothing but the name counts, and an [engine.Reload] tells a
// changed config. Those that are new get the next indexes, in their order, and are started. Those that are missing are retired:
// what is in flight there finishes, and then a StopServer ends the process. The client is told which lists have changed.
//
// An error leaves everything as it is. The actions are those of a Step.
func (b *Board) Rearrange(now time.Time, c Config) ([]Action, error) {
	servers := make([]string, len(b.members), len(b.members)+len(c.Servers)) // by index; "" = not in the config
	var order []int
	var fresh []Server
	for _, s := range c.Servers {
		i, here := b.Index(s.Config.Name)
		if here {
			servers[i] = s.Config.Name
		} else {
			i = len(servers)
			servers = append(servers, s.Config.Name)
			fresh = append(fresh, s)
		}
		order = append(order, i)
	}
	names, err := newNames(servers, separatorOf(&c))
	if err != nil {
		return nil, err
	}
	if !b.enter(now) {
		return nil, nil
	}
	names.keep(b.names)
	changed := map[string]bool{}
	for _, i := range b.order {
		if servers[i] == "" {
			b.retire(i, changed)
		}
	}
	stay := slices.DeleteFunc(slices.Clone(b.order), func(i int) bool { return servers[i] == "" })
	if !slices.Equal(stay, slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i >= len(b.members) })) {
		changed["tools"], changed["prompts"], changed["resources"] = true, true, true
	}
	if slices.ContainsFunc(stay, func(i int) bool { return names.prefixes[i] != b.names.prefixes[i] }) {
		changed["tools"], changed["prompts"] = true, true
	}
	b.names, b.order = names, order
	for _, s := range fresh {
		b.join(s)
	}
	for _, kind := range listKinds {
		if changed[kind] {
			b.announce(kind)
		}
	}
	return b.leave(), nil
}

// separatorOf is what stands between names.
func separatorOf(c *Config) string {
	if c.Separator == "" {
		return DefaultSeparator
	}
	return c.Separator
}

// join adds a server. A client that has been greeted is told of it once it is there.
func (b *Board) join(s Server) {
	i := len(b.members)
	m := &member{Server: s}
	b.members = append(b.members, m)
	b.tell(i, engine.Event{Kind: engine.Tick})
	if b.leaving {
		b.tell(i, engine.Event{Kind: engine.ClientEOF})
		return
	}
	if b.begun {
		m.missing, m.detail, m.probeAt = true, "it is being started", b.now
		m.agreed = b.initialize == nil
	}
	b.log(engine.Record{Level: engine.LevelInfo, Event: "server_added", Server: s.Config.Name})
}

// retire has a server leave that is in the config no more, and adds the lists that change by that.
func (b *Board) retire(server int, changed map[string]bool) {
	m := b.members[server]
	for _, kind := range listKinds {
		changed[kind] = changed[kind] || !m.gone && b.asks(server, kind+"/list")
	}
	m.retired, m.dismiss, m.probeAt = true, b.now.Add(retireTime), time.Time{}
	m.missing, m.gone, m.probing = false, false, false
	b.forgetResources(server)
	waiting := m.waiting
	m.waiting = nil
	for _, w := range waiting {
		b.turnAwayMissing(server, w, "it is not in the config any more")
	}
	b.log(engine.Record{Level: engine.LevelInfo, Event: "server_removed", Server: b.name(server), Detail: "what is in flight there finishes"})
}

// dismissIfIdle has the engine of a server that was retired end, once nothing is open there.
func (b *Board) dismissIfIdle(server int) {
	m := b.members[server]
	if m.dismiss.IsZero() || m.finished || b.now.Before(m.dismiss) && b.isBusy(server) {
		return
	}
	m.dismiss = time.Time{}
	b.tell(server, engine.Event{Kind: engine.ClientEOF})
}

// isBusy reports whether a request of the client is open at a server.
func (b *Board) isBusy(server int) bool {
	for _, at := range b.open {
		if at == server {
			return true
		}
	}
	for _, p := range b.parts {
		if p.server == server && p.fan.id != nil {
			return true
		}
	}
	return false
}
