package compose

import (
	"strconv"

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
	e := append([]byte(`{"code":`), strconv.Itoa(code)...)
	e = append(e, `,"message":`...)
	e = jsonrpc.AppendQuoted(e, text)
	e = append(e, `,"data":{"source":"mcp-retry","kind":"`+kind+`"`...)
	if server != "" {
		e = append(e, `,"server":`...)
		e = jsonrpc.AppendQuoted(e, server)
	}
	return append(e, "}}"...)
}

func shutdownFault() []byte {
	return faultJSON(engine.CodeShutdown, "shutdown", "", "mcp-retry is shutting down.")
}

func unavailableFault(server, detail string) []byte {
	return faultJSON(engine.CodeUnavailable, "unavailable", server, "The server "+strconv.Quote(server)+" is not available: "+detail)
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

// isUnknown reports whether an error says that a server does not know what it was asked for.
func isUnknown(err []byte) bool {
	switch codeOf(err) {
	case codeNoMethod, codeParams, codeNoResource:
		return true
	}
	return false
}
