package engine

import (
	"strconv"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// endCall logs the end of a call and lets go of it. f is the error of ours that it was answered with, if any.
func (e *Engine) endCall(c *call, status string, f *fault) {
	op, own := c.op, c.own
	e.leave(c)
	e.meterEnd(c, status)
	if e.logs(LevelInfo) {
		r := Record{
			Level: LevelInfo, Event: "tool_call_end", Tool: own.tool.Name, RequestID: loggedID(c.id), Duration: e.now.Sub(c.admitted),
			Status: status, Attempt: op.attempts, Cache: own.cache, Dedup: own.dedup, Rule: op.rule,
		}
		if r.Dedup == "" {
			r.Dedup = op.dedup
		}
		switch {
		case own.cache == "" && op.cache != "":
			r.Cache = op.cache
		case own.cacheRule != "":
			r.Rule = own.cacheRule
		}
		if status != statusSuccess {
			r.EndedBy, r.Kind, r.Code, r.Delivery = op.endedBy, op.last.failure.Kind, int(op.last.failure.Code), op.last.failure.Delivery
			if status != statusToolError {
				r.Level = LevelWarn
			}
		}
		if f != nil {
			r.Code, r.Delivery = f.code, f.delivery
			if r.Kind = f.kind; r.Kind == "" {
				r.Kind = kindOf[f.code]
			}
			if f.rule != "" {
				r.Rule = f.rule
			}
		}
		e.log(r)
	}
	e.recycle(own)
}

// maxLoggedID bounds what the log shows of an id, in bytes: a client may send one of any length.
const maxLoggedID = 200

// loggedID is an id of the client as the log shows it.
func loggedID(id []byte) string {
	if len(id) > maxLoggedID {
		return `"(an id of ` + strconv.Itoa(len(id)) + ` bytes)"`
	}
	return string(id)
}

// logAttempt logs what an attempt came to.
func (e *Engine) logAttempt(op *operation, a *attempt, o *outcome) {
	if !e.logs(LevelDebug) {
		return
	}
	r := Record{Level: LevelDebug, Event: "attempt_end", Tool: op.tool.Name, RequestID: loggedID(op.first.id), Attempt: op.attempts,
		Status: statusSuccess, Kind: o.failure.Kind, Code: int(o.failure.Code), Delivery: o.failure.Delivery, Detail: o.failure.Message}
	if a != nil {
		r.Duration = e.now.Sub(a.sent)
	}
	if !o.ok() {
		r.Status = statusError
	}
	e.log(r)
}

// takeEvalErrors logs the expressions that failed: each decision has fallen to its careful side.
func (e *Engine) takeEvalErrors(op *operation) {
	for _, bad := range op.facts.Errors {
		e.meterEvalError(bad.Decision)
		e.log(Record{Level: LevelWarn, Event: "cel_error", Tool: op.tool.Name, RequestID: loggedID(op.first.id), Rule: bad.Rule,
			Kind: bad.Decision, Detail: bad.Message})
	}
	op.facts.Errors = op.facts.Errors[:0]
}

// logs reports whether records of a level are wanted.
func (e *Engine) logs(level Level) bool { return level >= e.level }

// log emits a log record.
func (e *Engine) log(r Record) {
	if !e.logs(r.Level) {
		return
	}
	r.Server = e.server.Name
	e.records = append(e.records, r)
	e.out = append(e.out, Action{Kind: Log})
}

// attachRecords gives the log actions of a Step their records, which have moved while they were collected.
func (e *Engine) attachRecords() {
	n := 0
	for i := range e.out {
		if e.out[i].Kind == Log {
			e.out[i].Record = &e.records[n]
			n++
		}
	}
}

// marked is a result that says in its _meta where it came from.
func (e *Engine) marked(result []byte, origin string, age int64) []byte {
	note := append([]byte(`{"`), origin...)
	note = append(note, `":true,"ageMs":`...)
	note = append(strconv.AppendInt(note, age, 10), '}')
	if len(result) == 0 || result[0] != '{' {
		return result // MCP knows no such result
	}
	value := append(append([]byte(`{"`+metaOrigin+`":`), note...), '}')
	if meta, ok := jsonrpc.Lookup(result, whole(result), "_meta"); ok {
		change := jsonrpc.Edit{At: meta, New: value}
		if old, there := jsonrpc.Lookup(result, meta, metaOrigin); there {
			change = jsonrpc.Edit{At: old, New: note}
		} else if result[meta.Start] == '{' {
			change = jsonrpc.InsertMember(result, meta, metaOrigin, note)
		}
		return jsonrpc.Splice(nil, result, change)
	}
	return jsonrpc.Splice(nil, result, jsonrpc.InsertMember(result, whole(result), "_meta", value))
}
