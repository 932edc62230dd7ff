package compose

import (
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// waiter is a request of the client that waits for a server which could not be initialized.
type waiter struct {
	frame []byte // as the server is to get it
	since time.Time
}

// turnAway answers a request that its server never got, since that is not there, with an error of ours. What engines do for calls is
// done here for those: they are logged and counted, and told as the config has errors told.
func (b *Board) turnAway(server int, w waiter, code int, kind, text string) {
	var m jsonrpc.Message
	if jsonrpc.Parse(w.frame, &m) != nil {
		return // it was parsed before
	}
	id := m.ID.Of(m.Frame)
	if string(m.Method) != "tools/call" {
		b.answer(id, "error", faultJSON(code, kind, b.name(server), text))
		return
	}
	status := "error"
	if code == engine.CodeShutdown {
		status = "cancelled"
	}
	tool := textIn(m.Params.Of(m.Frame), "name")
	facts := callFacts(kind, b.name(server), tool)
	if b.members[server].Config.Errors == "result" {
		b.answer(id, "result", errorResult(code, text, facts))
	} else {
		b.answer(id, "error", errorJSON(code, text, facts))
	}
	b.neverSent(server, w, &m, tool, engine.Record{Level: engine.LevelWarn, Status: status, Code: code, Kind: kind})
}

// turnAwayMissing is turnAway for a server that is missing, for the reason given.
func (b *Board) turnAwayMissing(server int, w waiter, detail string) {
	b.turnAway(server, w, engine.CodeUnavailable, "unavailable", unavailableText(b.name(server), detail))
}

// withdraw takes in that the client has cancelled a request which waits for its server.
func (b *Board) withdraw(server int, w waiter) {
	var m jsonrpc.Message
	if jsonrpc.Parse(w.frame, &m) != nil || string(m.Method) != "tools/call" {
		return
	}
	tool := textIn(m.Params.Of(m.Frame), "name")
	b.neverSent(server, w, &m, tool, engine.Record{Level: engine.LevelWarn, Status: "cancelled", EndedBy: "cancelled"})
}

// neverSent logs and counts a call that its server never got.
func (b *Board) neverSent(server int, w waiter, m *jsonrpc.Message, tool string, r engine.Record) {
	took := b.now.Sub(w.since)
	if meter := b.members[server].Meter; meter != nil {
		name := engine.ToolName{Name: tool}
		meter.CallBegan(name)
		meter.CallEnded(name, engine.CallEnd{Status: r.Status, Took: took})
	}
	r.Event, r.Server, r.Tool, r.RequestID = "tool_call_end", b.name(server), tool, engine.LoggedID(m.ID.Of(m.Frame))
	r.Duration, r.Delivery = took, "not_sent"
	b.log(r)
}
