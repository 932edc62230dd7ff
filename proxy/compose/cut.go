package compose

import (
	"bytes"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// learnsCut sees to a request with a name that looks as if it was cut, and which no list of this session had: the servers that
// may have it are asked for their names first. It returns false if there is nothing to ask.
func (b *Board) learnsCut(m *jsonrpc.Message, holder jsonrpc.Span, what, composed string) bool {
	method := what + "s/list"
	f := &fan{id: bytes.Clone(m.ID.Of(m.Frame)), method: method, list: lists[method], deadline: b.now.Add(listTime)}
	if b.modern {
		f.params = append(append([]byte(`{"_meta":`), b.meta...), '}')
	}
	var servers []int
	for _, i := range b.names.cutBy(composed) {
		if b.asks(i, method) {
			servers = append(servers, i)
		}
	}
	if len(servers) == 0 {
		return false
	}
	f.frame = bytes.Clone(m.Frame)
	f.finish = func(f *fan) { b.sendLearned(f, holder, what, composed) }
	b.start(f)
	frame, idAt := frameOf(method, f.params)
	for _, i := range servers {
		b.ask(f, i, frame, idAt)
	}
	return true
}

// sendLearned sends a request on for which names were asked; what is still not known is the server's to judge.
func (b *Board) sendLearned(f *fan, holder jsonrpc.Span, what, composed string) {
	var m jsonrpc.Message
	if jsonrpc.Parse(f.frame, &m) != nil {
		return // it was parsed before
	}
	if b.told {
		b.answer(f.id, "error", shutdownFault())
		return
	}
	span, _ := jsonrpc.Lookup(m.Frame, holder, "name")
	b.sendByName(&m, true, span, what, composed)
}
