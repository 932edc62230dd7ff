package engine

import (
	"strconv"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// How sure we are whether the server saw an attempt.
const (
	deliveryNotSent  = "not_sent" // not one byte was written
	deliveryRejected = "rejected" // the server refused it before doing anything
	deliveryUnknown  = "unknown"  // it was written, and no answer came
	deliveryAnswered = "answered" // the server decided
)

// Kinds of failure, as expressions see them.
const (
	kindTimeout    = "timeout"
	kindExit       = "exit"
	kindSpawn      = "spawn"
	kindTransport  = "transport"
	kindRPC        = "rpc"
	kindTool       = "tool"
	kindMalformed  = "malformed"
	kindOverloaded = "overloaded"
	kindCancelled  = "cancelled"
)

// outcome is what an attempt came to. Either the server answered, and frame is its answer; or it did not, and code is that of
// the error that we make of it.
type outcome struct {
	failure policy.Failure // zero = success
	frame   []byte
	id      jsonrpc.Span  // in frame
	value   jsonrpc.Span  // in frame: the result or the error
	partial bool          // a result that is no final one: input is required, or a task was created
	code    int           // of our own error; 0 = the server's answer stands
	waited  time.Duration // until a timeout
	detail  string        // of our own error
	said    []byte        // the raw result or error of an answer that is of no use; nil = there is none to show
}

// ok reports whether the attempt succeeded.
func (o *outcome) ok() bool { return o.failure.Kind == "" }

// accepted reports whether the server may have begun to do what it was asked to: anything but an error response of its own.
func (o *outcome) accepted() bool {
	return o.failure.Kind != kindRPC && o.failure.Kind != kindOverloaded
}

// keep makes the outcome independent of the event that brought it.
func (o *outcome) keep() {
	o.frame = clone(o.frame)
	if o.failure.Data != nil {
		o.failure.Data = clone(o.failure.Data)
	}
	o.said = clone(o.said)
}

// classify makes an outcome of the server's answer to a call. One that a client could not read as what MCP says an answer is
// (CallToolResult, JSONRPCError) is none: whatever the server did, nobody can tell.
func classify(m *jsonrpc.Message) outcome {
	o := outcome{frame: m.Frame, id: m.ID}
	if m.Kind == jsonrpc.Result {
		o.value = m.Result
		if m.Frame[m.Result.Start] != '{' {
			return unusable(CodeInvalidResult, "the result must be an object", m.Result.Of(m.Frame))
		}
		classifyResult(m.Frame, &o)
		return o
	}
	o.value = m.Err
	if !isError(m.Frame, m.Err) {
		return unusable(CodeInvalidResult, "an error must be an object with one code, an integer", m.Err.Of(m.Frame))
	}
	f := &o.failure
	f.Kind, f.Delivery = kindRPC, deliveryAnswered
	for member := range jsonrpc.Members(m.Frame, m.Err) {
		raw := member.Value.Of(m.Frame)
		switch string(member.Key) {
		case "code":
			f.Code, _ = jsonrpc.IntID(raw)
		case "message":
			f.Message, _ = jsonrpc.Text(raw)
		case "data":
			if string(raw) != "null" {
				f.Data = raw
				f.RetryAfter = retryHint(m.Frame, member.Value)
			}
		}
	}
	f.Text = f.Message
	f.Transient = f.Code == -32603 || -32003 <= f.Code && f.Code <= -32000
	if f.Code == codeRateLimited || f.RetryAfter > 0 {
		f.Kind = kindOverloaded
	}
	switch {
	case f.Code == codeRateLimited: // whatever else carries a hint may have been half done
		f.Delivery = deliveryRejected
	case -32602 <= f.Code && f.Code <= -32600, f.Code == -32700, -32022 <= f.Code && f.Code <= -32020:
		f.Delivery = deliveryRejected
	}
	return o
}

// classifyResult tells an ordinary result from one that reports an error of the tool, and from one that is not final.
func classifyResult(frame []byte, o *outcome) {
	var content jsonrpc.Span
	isError := false
	for member := range jsonrpc.Members(frame, o.value) {
		switch string(member.Key) {
		case "isError":
			isError = string(member.Value.Of(frame)) == "true"
		case "content":
			content = member.Value
		case "resultType":
			kind := string(member.Value.Of(frame))
			o.partial = o.partial || kind != `"complete"` && kind != "null"
		case "task":
			o.partial = true
		}
	}
	if isError {
		text := resultText(frame, content)
		o.failure = policy.Failure{Kind: kindTool, Delivery: deliveryAnswered, Text: text, Message: text}
	}
}

// resultText is all text of a tool result's content, blocks joined by newlines.
func resultText(frame []byte, content jsonrpc.Span) string {
	var all []byte
	for block := range jsonrpc.Elements(frame, content) {
		if span, ok := jsonrpc.Lookup(frame, block, "text"); ok {
			if text, ok := jsonrpc.Text(span.Of(frame)); ok {
				if len(all) > 0 {
					all = append(all, '\n')
				}
				all = append(all, text...)
			}
		}
	}
	return string(all)
}

// retryHint is how long the data of an error asks to wait: retryAfterMs in milliseconds, or retryAfter or retry_after in
// seconds; 0 if it does not say.
func retryHint(frame []byte, data jsonrpc.Span) time.Duration {
	for _, hint := range []struct {
		name string
		unit time.Duration
	}{{"retryAfterMs", time.Millisecond}, {"retryAfter", time.Second}, {"retry_after", time.Second}} {
		span, ok := jsonrpc.Lookup(frame, data, hint.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(string(span.Of(frame)), 64)
		if err == nil && n > 0 {
			return max(1, time.Duration(min(n*float64(hint.unit), float64(maxHint))))
		}
	}
	return 0
}

// maxHint bounds what a hint may ask for: no call waits so long.
const maxHint = 365 * 24 * time.Hour

// isError reports whether a value is an error of JSON-RPC 2.0, section 5.1, as far as one can act on it: an object with an integer
// for a code. Of two codes nobody knows which one the client reads.
func isError(frame []byte, value jsonrpc.Span) bool {
	if frame[value.Start] != '{' || times(frame, value, "code") != 1 {
		return false
	}
	code, _ := jsonrpc.Lookup(frame, value, "code")
	_, ok := jsonrpc.IntID(code.Of(frame))
	return ok && frame[code.Start] != '"'
}

// unusable is the outcome of an attempt whose answer has come and is of no use: the tool ran, and that is all one knows.
func unusable(code int, detail string, said []byte) outcome {
	o := lost(kindMalformed, deliveryAnswered, code, detail)
	o.failure.Transient, o.said = false, said
	return o
}

// lost is the outcome of an attempt that no answer came to.
func lost(kind, delivery string, code int, detail string) outcome {
	return outcome{code: code, detail: detail, failure: policy.Failure{
		Kind: kind, Delivery: delivery, Message: detail, Text: detail, Transient: true,
	}}
}
