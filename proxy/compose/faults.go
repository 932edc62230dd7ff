package compose

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// Codes of JSON-RPC 2.0, and one of MCP before 2026-07-28.
const (
	codeNoMethod   = -32601
	codeParams     = -32602
	codeNoResource = -32002
)

// faultJSON is the JSON object of an error of ours; server is "" if it is about none.
func faultJSON(code int, kind, server, text string) []byte {
	facts := []byte(`{"source":"mcp-retry","kind":"` + kind + `"`)
	if server != "" {
		facts = jsonrpc.AppendQuoted(append(facts, `,"server":`...), server)
	}
	return errorJSON(code, text, append(facts, '}'))
}

// errorJSON is a JSON-RPC error object.
func errorJSON(code int, text string, data []byte) []byte {
	e := append([]byte(`{"code":`), strconv.Itoa(code)...)
	e = append(e, `,"message":`...)
	e = jsonrpc.AppendQuoted(e, text)
	e = append(e, `,"data":`...)
	e = append(e, data...)
	return append(e, '}')
}

// callFacts is the data of an error about a call that was never sent, as engines make it.
func callFacts(kind, server, tool string) []byte {
	facts := jsonrpc.AppendQuoted([]byte(`{"source":"mcp-retry","kind":"`+kind+`","server":`), server)
	facts = jsonrpc.AppendQuoted(append(facts, `,"tool":`...), tool)
	return append(facts, `,"attempts":0,"delivery":"not_sent","mayHaveExecuted":"no"}`...)
}

// errorResult is a tool result that reports an error, as engines make it.
func errorResult(code int, text string, facts []byte) []byte {
	r := jsonrpc.AppendQuoted([]byte(`{"content":[{"type":"text","text":`), text)
	r = append(r, `}],"isError":true,"_meta":{"`+engine.MetaError+`":{"code":`...)
	r = append(strconv.AppendInt(r, int64(code), 10), `,"data":`...)
	return append(append(r, facts...), "}}}"...)
}

const shutdownText = "mcp-retry is shutting down."

func shutdownFault() []byte {
	return faultJSON(engine.CodeShutdown, "shutdown", "", shutdownText)
}

// unavailableText says that a server is not there, and why: a part of a sentence, or an error of its engine.
func unavailableText(server, detail string) string {
	const unavailable = "is not available: "
	if rest, ok := strings.CutPrefix(detail, "The server '"+server+"' "); ok { // an error of the engine's own, which is a sentence
		if detail, ok = strings.CutPrefix(rest, unavailable); !ok {
			detail = "it " + rest
		}
	}
	return "The server " + strconv.Quote(server) + " " + unavailable + detail
}

// codeOf is the code of an error object, 0 if it has none.
func codeOf(err []byte) int {
	span, _ := jsonrpc.Lookup(err, whole(err), "code")
	n, _ := strconv.Atoi(string(span.Of(err)))
	return n
}

// messageOf is the message of an error object.
func messageOf(err []byte) string {
	span, _ := jsonrpc.Lookup(err, whole(err), "message")
	text, _ := jsonrpc.Text(span.Of(err))
	return text
}

// isAbsence reports whether an error says that the server is not there, rather than being an answer of it.
func isAbsence(err []byte) bool {
	switch codeOf(err) {
	case engine.CodeUnavailable, engine.CodeShutdown, engine.CodeTimeout:
		data, _ := jsonrpc.Lookup(err, whole(err), "data")
		return textIn(data.Of(err), "source") == "mcp-retry"
	}
	return false
}

// maxFault bounds the results that are looked into for an error of ours, in bytes: those are short.
const maxFault = 64 << 10

// unstartable reports whether a response says that the server could not be started, and why. With "errors: result" it is a result,
// and what an error has besides its text stands in the _meta of that.
func unstartable(m *jsonrpc.Message) (why string, ok bool) {
	err := m.Err.Of(m.Frame)
	if m.Kind == jsonrpc.Result {
		if len(m.Frame) > maxFault || !bytes.Contains(m.Frame, []byte(engine.MetaError)) {
			return "", false
		}
		meta, _ := jsonrpc.Lookup(m.Frame, m.Result, "_meta")
		facts, _ := jsonrpc.Lookup(m.Frame, meta, engine.MetaError)
		err = facts.Of(m.Frame)
	}
	data, _ := jsonrpc.Lookup(err, whole(err), "data")
	if codeOf(err) != engine.CodeUnavailable || !isAbsence(err) || textIn(data.Of(err), "kind") != "spawn" {
		return "", false
	}
	if m.Kind == jsonrpc.Error {
		return messageOf(err), true
	}
	content, _ := jsonrpc.Lookup(m.Frame, m.Result, "content")
	for item := range jsonrpc.Elements(m.Frame, content) {
		return textIn(item.Of(m.Frame), "text"), true
	}
	return "", true
}

// isUnknown reports whether an error says that a server does not know what it was asked for.
func isUnknown(err []byte) bool {
	switch codeOf(err) {
	case codeNoMethod, codeParams, codeNoResource:
		return true
	}
	return false
}
