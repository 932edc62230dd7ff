package jsonrpc

import (
	"fmt"
	"unicode/utf8"
)

// Kind is what a message is.
type Kind uint8

// The kinds of messages. Result and Error are the two kinds of responses.
const (
	Request Kind = iota + 1
	Notification
	Result
	Error
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	case Result:
		return "result"
	case Error:
		return "error"
	}
	return "invalid"
}

// Response reports whether messages of the kind answer a request.
func (k Kind) Response() bool { return k == Result || k == Error }

// Message is one JSON-RPC message as spans of its frame. It stays valid as long as the frame does.
type Message struct {
	Kind  Kind
	Frame []byte

	// ID is the raw id token: a number, a string, or (in responses only) null. It is absent in notifications, and in
	// an error that its sender could not attribute to a request.
	ID Span

	// Method is the decoded method name: a part of Frame if it is written without escapes. It is nil in responses.
	Method []byte

	// Params, Result and Err are raw values, absent where the frame has no such member. Params is an object, an
	// array or null. Nothing is demanded of the other two.
	Params, Result, Err Span
}

// Codes of a [ParseError], from section 5.1 of the JSON-RPC 2.0 specification.
const (
	CodeParseError     = -32700 // the frame is not JSON
	CodeInvalidRequest = -32600 // the frame is JSON, but no JSON-RPC message
)

// ParseError says why a frame is refused. Code and Message fit an error response.
type ParseError struct {
	Code    int    // CodeParseError or CodeInvalidRequest
	Message string // the fault, with its offset in the frame where there is one

	// ID is the raw id of the refused message (a number or a string), a part of the frame, if the frame states exactly
	// one, else nil. It is nil for all that is not JSON: what looks like an id there need not be one.
	ID []byte

	// Batch reports that the frame begins as a JSON array, which MCP 2025-03-26 took for a batch.
	Batch bool

	// TooDeep reports that the frame was JSON up to where it nests too deep. What follows was not looked at; [LooseID] may tell
	// the id all the same.
	TooDeep bool
}

// Error implements error.
func (e *ParseError) Error() string { return e.Message }

// The envelope's members, as bits of a set.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

// envelope returns the bit of the envelope member of that exact name, or 0 for any other member.
func envelope(key []byte) uint {
	switch string(key) {
	case "jsonrpc":
		return hasVersion
	case "id":
		return hasID
	case "method":
		return hasMethod
	case "params":
		return hasParams
	case "result":
		return hasResult
	case "error":
		return hasError
	}
	return 0
}

// Parse scans one frame, given without its line end, into m and returns nil if it is a valid message. It overwrites
// all of m, and does not allocate unless the frame is refused or its method is written with escapes.
//
// The frame must be one JSON object in valid UTF-8, as RFC 8259 has it, that nests at most 10000 deep and has no raw
// line break between its tokens (peers exist that end a line at a lone carriage return, and would so see other
// messages in it). Envelope members match by their exact decoded names; none may be stated twice; "jsonrpc" must be
// "2.0". Unknown members are let through. Then
//
//   - a method (a string) makes a [Request] if there is an id, which must be a number or a string, and a
//     [Notification] if there is none; a result or an error beside it is refused;
//   - without a method there must be a result and an id, or an error with or without an id: a [Result] or an [Error],
//     whose id may be null.
//
// m is not to be used if Parse returns an error.
func Parse(frame []byte, m *Message) *ParseError {
	*m = Message{Frame: frame}
	i := skipSpace(frame, 0, false)
	if i == len(frame) || frame[i] != '{' {
		return refuseValue(frame, i)
	}

	var (
		seen    uint   // envelope members so far
		twice   uint   // those stated again
		version Span   // value of "jsonrpc"
		method  Span   // value of "method"
		why     string // syntax error, at offset i
	)
	i = skipSpace(frame, i+1, false)
	if i < len(frame) && frame[i] == '}' {
		i++
	} else {
		for {
			open := i
			if i >= len(frame) || frame[i] != '"' {
				i, why = unexpected(frame, i)
				return syntaxError(frame, i, why)
			}
			if i, why = scanString(frame, i); why != "" {
				return syntaxError(frame, i, why)
			}
			bit := envelope(decoded(frame[open:i]))
			if i < len(frame) && frame[i] <= ' ' {
				i = skipSpace(frame, i, false)
			}
			if i >= len(frame) || frame[i] != ':' {
				i, why = unexpected(frame, i)
				return syntaxError(frame, i, why)
			}
			var value Span
			value.Start, value.End, why = scanValue(frame, i+1, 1, false)
			if i = value.End; why != "" {
				return syntaxError(frame, i, why)
			}
			twice |= seen & bit
			seen |= bit
			switch bit {
			case hasVersion:
				version = value
			case hasID:
				m.ID = value
			case hasMethod:
				method = value
			case hasParams:
				m.Params = value
			case hasResult:
				m.Result = value
			case hasError:
				m.Err = value
			}
			if i < len(frame) && frame[i] <= ' ' {
				i = skipSpace(frame, i, false)
			}
			if i < len(frame) && frame[i] == ',' {
				i = skipSpace(frame, i+1, false)
				continue
			}
			if i < len(frame) && frame[i] == '}' {
				i++
				break
			}
			i, why = unexpected(frame, i)
			return syntaxError(frame, i, why)
		}
	}
	if i = skipSpace(frame, i, false); i != len(frame) {
		i, why = unexpected(frame, i)
		return syntaxError(frame, i, why)
	}
	if why := m.classify(seen, twice, version, method); why != "" {
		e := &ParseError{Code: CodeInvalidRequest, Message: "invalid message: " + why}
		if twice&hasID == 0 && isID(m.ID.Of(frame)) {
			e.ID = m.ID.Of(frame)
		}
		return e
	}
	return nil
}

// classify sets the kind of a frame that is a JSON object, or says why it is no message.
func (m *Message) classify(seen, twice uint, version, method Span) string {
	if twice != 0 {
		return "a member of the envelope is repeated"
	}
	if v := version.Of(m.Frame); len(v) == 0 || v[0] != '"' || string(decoded(v)) != "2.0" {
		return `"jsonrpc" is not "2.0"`
	}
	id := m.ID.Of(m.Frame)
	null := string(id) == "null"
	if id != nil && !null && !isID(id) {
		return "the id is neither a number nor a string"
	}
	switch {
	case seen&hasMethod != 0:
		if seen&(hasResult|hasError) != 0 {
			return "a method stands beside a result or an error"
		}
		raw := method.Of(m.Frame)
		if raw[0] != '"' {
			return "the method is not a string"
		}
		if null {
			return "the id of a request is null"
		}
		if p := m.Params.Of(m.Frame); p != nil && p[0] != '{' && p[0] != '[' && p[0] != 'n' {
			return "params are neither an object nor an array"
		}
		m.Method = decoded(raw)
		m.Kind = Notification
		if id != nil {
			m.Kind = Request
		}
	case seen&(hasResult|hasError) == hasResult|hasError:
		return "a result stands beside an error"
	case seen&hasResult != 0:
		if id == nil {
			return "a result has no id"
		}
		m.Kind = Result
	case seen&hasError != 0:
		m.Kind = Error
	default:
		return "there is no method, result or error"
	}
	return ""
}

// isID reports whether raw, a JSON value, may identify a request.
func isID(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// refuseValue is the error for a frame that is anything but an object; its first token is at i.
func refuseValue(frame []byte, i int) *ParseError {
	batch := i < len(frame) && frame[i] == '['
	_, end, why := scanValue(frame, i, 0, false)
	if why == "" {
		if end = skipSpace(frame, end, false); end != len(frame) {
			end, why = unexpected(frame, end)
		}
	}
	if why != "" {
		e := syntaxError(frame, end, why)
		e.Batch = batch
		return e
	}
	e := &ParseError{Code: CodeInvalidRequest, Message: "invalid message: not a JSON object", Batch: batch}
	if batch {
		e.Message = "invalid message: batches are not supported; send one message a line"
	}
	return e
}

// syntaxError is the error for a frame that stops being JSON at offset i.
func syntaxError(frame []byte, i int, why string) *ParseError {
	deep := why == whyDepth
	if why == whyByte {
		r, _ := utf8.DecodeRune(frame[i:])
		why = fmt.Sprintf("%s %q", why, r)
	}
	return &ParseError{Code: CodeParseError, Message: fmt.Sprintf("invalid JSON: %s at byte %d", why, i), TooDeep: deep}
}
