package compose

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// listTime is how long a server may take to answer a request of which all servers are asked. One that takes longer is left out,
// and the client told that the list has changed once the server is there again.
const listTime = 15 * time.Second

// partPrefix is how our ids at the engines begin, as raw JSON. No client has such ids, and if one had, it would get no answers.
const partPrefix = `"mcp-retry:`

// A fan is a request of which several servers are asked, each with a part.
type fan struct {
	id       []byte // the client's, raw; nil = ours
	method   string
	list     string // the member of the result that is merged; "" = none
	params   []byte // of the client; nil = none
	parts    []*part
	open     int // parts that are not settled
	deadline time.Time
	finish   func(f *fan)

	// Of a search, which asks one server after the other:
	searches bool
	frame    []byte // the client's request
	idAt     jsonrpc.Span
	order    []int // the servers to ask
	next     int   // in order
}

// part is what one server is asked of a fan.
type part struct {
	fan     *fan
	server  int
	id      string // raw
	settled bool
	late    bool // of initialize: it goes on without its fan
	page    int
	items   []item
	size    int
	result  []byte // of the last answer, if it is one of success
	err     []byte // the error object, if it is none
}

// start begins a fan.
func (b *Board) start(f *fan) {
	b.fans = append(b.fans, f)
}

// ask sends a server its part of a fan: a frame in which the id token at idAt is to be replaced.
func (b *Board) ask(f *fan, server int, frame []byte, idAt jsonrpc.Span) *part {
	p := &part{fan: f, server: server, page: 1}
	f.parts = append(f.parts, p)
	f.open++
	b.request(p, frame, idAt)
	return p
}

// request sends a frame for a part under a fresh id.
func (b *Board) request(p *part, frame []byte, idAt jsonrpc.Span) {
	b.lastPart++
	p.id = partPrefix + strconv.FormatInt(b.lastPart, 10) + `"`
	b.parts[p.id] = p
	b.send(p.server, jsonrpc.Splice(nil, frame, jsonrpc.Edit{At: idAt, New: []byte(p.id)}))
}

// frameOf makes a request without an id, and says where that belongs.
func frameOf(method string, params []byte) (frame []byte, idAt jsonrpc.Span) {
	frame = append(frame, `{"jsonrpc":"2.0","id":`...)
	at := len(frame)
	frame = append(frame, `,"method":`...)
	frame = jsonrpc.AppendQuoted(frame, method)
	if params != nil {
		frame = append(frame, `,"params":`...)
		frame = append(frame, params...)
	}
	return append(frame, '}'), jsonrpc.Span{Start: at, End: at}
}

// partAnswered takes in the answer of an engine to a part.
func (b *Board) partAnswered(p *part, m *jsonrpc.Message) {
	delete(b.parts, p.id)
	if p.settled {
		return
	}
	f := p.fan
	if f.searches {
		p.settled = true
		if err := m.Err.Of(m.Frame); err == nil || !isUnknown(err) && !isAbsence(err) || !b.searchOn(f) {
			b.found(f, m)
		}
		return
	}
	if m.Kind == jsonrpc.Error {
		b.settle(p, nil, bytes.Clone(m.Err.Of(m.Frame)))
		return
	}
	if f.list != "" && b.collect(p, m) {
		return // there is another page
	}
	b.settle(p, bytes.Clone(m.Result.Of(m.Frame)), nil)
}

// settle ends a part, and its fan if that was the last.
func (b *Board) settle(p *part, result, err []byte) {
	if p.settled {
		return
	}
	p.settled, p.result, p.err = true, result, err
	f := p.fan
	if f.open--; f.open > 0 {
		return
	}
	b.dropFan(f)
	f.finish(f)
}

// dropFan forgets a fan.
func (b *Board) dropFan(f *fan) {
	b.fans = slices.DeleteFunc(b.fans, func(other *fan) bool { return other == f })
	for _, p := range f.parts {
		delete(b.parts, p.id)
	}
}

// fanOf is the fan for a request of the client, nil if there is none.
func (b *Board) fanOf(id []byte) *fan {
	for _, f := range b.fans {
		if id != nil && f.id != nil && jsonrpc.SameID(f.id, id) {
			return f
		}
	}
	return nil
}

// cancelParts tells the servers that the open parts of a fan are not wanted any more.
func (b *Board) cancelParts(f *fan, reason string) {
	for _, p := range f.parts {
		if p.settled {
			continue
		}
		frame := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + p.id + `,"reason":`)
		b.send(p.server, append(jsonrpc.AppendQuoted(frame, reason), "}}"...))
	}
}

// giveUp ends a fan whose time is over with what there is.
func (b *Board) giveUp(f *fan) {
	b.cancelParts(f, "it took too long")
	for _, p := range slices.Clone(f.parts) {
		if !p.settled {
			delete(b.parts, p.id)
			b.settle(p, nil, faultJSON(engine.CodeTimeout, "timeout", b.name(p.server), "it did not answer within "+listTime.String()))
		}
	}
}

// abandon settles the parts that are with an engine that has finished.
func (b *Board) abandon(server int) {
	for _, f := range slices.Clone(b.fans) {
		for _, p := range slices.Clone(f.parts) {
			if p.server != server || p.settled {
				continue
			}
			delete(b.parts, p.id)
			if f.searches {
				b.dropFan(f)
				b.answer(f.id, "error", shutdownFault())
				break
			}
			b.settle(p, nil, shutdownFault())
		}
	}
}

// firstError is the error of the first part that has one, the server's own before ours.
func (f *fan) firstError() []byte {
	var first []byte
	for _, p := range f.parts {
		if p.err != nil && !isAbsence(p.err) {
			return p.err
		}
		if first == nil {
			first = p.err
		}
	}
	return first
}

// anyResult reports whether a server has answered.
func (f *fan) anyResult() bool {
	return slices.ContainsFunc(f.parts, func(p *part) bool { return p.result != nil })
}

// search asks one server after the other, until one does not say that it does not know what it is asked for.
func (b *Board) search(m *jsonrpc.Message, order []int) {
	f := &fan{
		id: bytes.Clone(m.ID.Of(m.Frame)), method: string(m.Method), searches: true, frame: bytes.Clone(m.Frame), idAt: m.ID,
		order: slices.Clone(order),
	}
	b.start(f)
	if !b.searchOn(f) {
		b.dropFan(f)
		b.refuse(m, codeNoMethod, "unknown_method", "no server here knows "+f.method)
	}
}

// searchOn asks the next server; false = there is none, or the engines begin nothing new.
func (b *Board) searchOn(f *fan) bool {
	for f.next < len(f.order) && !b.told {
		i := f.order[f.next]
		f.next++
		if b.asks(i, f.method) && !b.members[i].retired {
			b.ask(f, i, f.frame, f.idAt)
			return true
		}
	}
	return false
}

// found passes the answer to a search on.
func (b *Board) found(f *fan, m *jsonrpc.Message) {
	b.dropFan(f)
	b.respondWith(f.id, jsonrpc.Pieces(nil, m.Frame, jsonrpc.Edit{At: m.ID, New: f.id})...)
}
