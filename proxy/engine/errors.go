package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// Codes of the errors that we make. They lie outside −32768…−32000, which belongs to JSON-RPC and MCP, so that they cannot be
// taken for an error of the server (MCP 2026-07-28, basic, "Error Codes").
const (
	CodeTimeout        = -31001
	CodeCircuitOpen    = -31002
	CodeRateLimited    = -31003
	CodeUnavailable    = -31004
	CodeDenied         = -31005
	CodeInvalidResult  = -31006
	CodeOutcomeUnknown = -31007
	CodeConflict       = -31008
	CodeTooLarge       = -31009
	CodeShutdown       = -31010
)

// codeRateLimited is the server's "not now, and nothing was done" (SEP-3304, a draft).
const codeRateLimited = -32023

// Codes of JSON-RPC 2.0 for frames that are none.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeParams  = -32602
)

// kindOf is the word for a code of ours in error.data.kind where the failure itself has none.
var kindOf = map[int]string{
	CodeTimeout: kindTimeout, CodeCircuitOpen: "circuit_open", CodeRateLimited: "rate_limited", CodeUnavailable: "unavailable",
	CodeDenied: "denied", CodeInvalidResult: kindMalformed, CodeOutcomeUnknown: "outcome_unknown", CodeConflict: "idempotency_conflict",
	CodeTooLarge: "too_large", CodeShutdown: "shutdown",
}

// fault is an error that we make. Its text is for a model to act on, its data for a program.
type fault struct {
	code       int
	text       string
	kind       string // "" = by the code
	tool       string // "" = not about a call
	attempts   int
	delivery   string
	executed   string // "no", "yes", "unknown", or "" = not about a call
	endedBy    string
	rule       string
	retryAfter time.Duration // 0 = nothing to say
	original   []byte        // raw JSON: what the server said in place of an answer; nil = nothing
}

// maxOriginal bounds what an error shows of what the server said, in bytes.
const maxOriginal = 4 << 10

// appendError appends the JSON object of an error.
func (e *Engine) appendError(b []byte, f *fault) []byte {
	b = append(b, `{"code":`...)
	b = strconv.AppendInt(b, int64(f.code), 10)
	b = append(b, `,"message":`...)
	b = jsonrpc.AppendQuoted(b, f.text)
	b = append(b, `,"data":`...)
	b = e.appendFacts(b, f)
	return append(b, '}')
}

func (e *Engine) appendFacts(b []byte, f *fault) []byte {
	kind := f.kind
	if kind == "" {
		kind = kindOf[f.code]
	}
	b = append(b, `{"source":"mcp-retry"`...)
	text := func(name, value string) {
		if value != "" {
			b = append(b, `,"`...)
			b = append(b, name...)
			b = append(b, `":`...)
			b = jsonrpc.AppendQuoted(b, value)
		}
	}
	text("kind", kind)
	text("server", e.server.Name)
	text("tool", f.tool)
	if f.tool != "" {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(f.attempts), 10)
	}
	text("delivery", f.delivery)
	text("mayHaveExecuted", f.executed)
	text("endedBy", f.endedBy)
	text("rule", f.rule)
	if f.retryAfter > 0 {
		b = append(b, `,"retryAfterMs":`...)
		b = strconv.AppendInt(b, max(1, f.retryAfter.Milliseconds()), 10)
	}
	switch {
	case len(f.original) > maxOriginal: // the beginning of it, as a text
		text("original", string(bytes.ToValidUTF8(f.original[:maxOriginal], nil))+"…")
	case f.original != nil:
		b = append(append(b, `,"original":`...), f.original...)
	}
	return append(b, '}')
}

// appendErrorResult appends a tool result that reports an error, for clients that show a model only results. Its shape is good
// in every revision of MCP.
func (e *Engine) appendErrorResult(b []byte, f *fault) []byte {
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = jsonrpc.AppendQuoted(b, f.text)
	b = append(b, `}],"isError":true,`...)
	if e.modern {
		b = append(b, `"resultType":"complete",`...)
	}
	b = append(b, `"_meta":{"`+metaError+`":{"code":`...)
	b = strconv.AppendInt(b, int64(f.code), 10)
	b = append(b, `,"data":`...)
	b = e.appendFacts(b, f)
	return append(b, `}}}`...)
}

// Keys of ours in the _meta of results.
const (
	metaError  = "io.github.bentabol.mcp-retry/error"
	metaOrigin = "io.github.bentabol.mcp-retry/origin"
)

// The texts of our errors. Each says what happened, whether it may have taken effect, and what may be done.

func timeoutText(tool string, after time.Duration, executed, setting string) string {
	text := fmt.Sprintf("Tool '%s' timed out after %dms.", tool, after.Milliseconds())
	switch executed {
	case "no":
		text += " It was not executed: it is safe to call it again."
	default:
		text += " It may have taken effect. Check before you call it again."
	}
	return text + " (The user can allow it more time with " + setting + ".)"
}

func exitText(server, tool, detail, executed string) string {
	text := fmt.Sprintf("The server '%s' ended during the call of '%s' (%s).", server, tool, detail)
	if executed == "no" {
		return text + " The call was not executed: it is safe to repeat it."
	}
	return text + " The call may have taken effect. Check before you repeat it."
}

func unavailableText(server, detail, executed string) string {
	text := fmt.Sprintf("The server '%s' is not available: %s.", server, detail)
	if executed == "no" {
		return text + " Nothing was executed."
	}
	return text + " An earlier attempt may have taken effect. Check before you repeat it."
}

func endedText(server, detail string) string {
	return fmt.Sprintf("The server '%s' ended before it answered (%s).", server, detail)
}

func shuttingDown() *fault { return &fault{code: CodeShutdown, text: "mcp-retry is shutting down"} }

func clientGone() *fault { return &fault{code: CodeShutdown, text: "the client has gone"} }

func circuitText(server, scope string, wait time.Duration) string {
	what := fmt.Sprintf("the server '%s'", server)
	if scope != defaultScope {
		what += fmt.Sprintf(" (scope %q)", scope)
	}
	return fmt.Sprintf("The circuit breaker of %s is open after repeated failures: the call was not sent. Try again in %s, or go on without it.",
		what, roughly(wait))
}

func limitedText(tool string, wait time.Duration) string {
	return fmt.Sprintf("The rate limit of '%s' is used up: the call was not sent. Try again in %s.", tool, roughly(wait))
}

func crowdedText(server string, most int, wait time.Duration) string {
	return fmt.Sprintf("The server '%s' has as many calls in flight as it may (%d): the call was not sent. Try again in %s. "+
		"(The user can raise max_concurrency.)", server, most, roughly(wait))
}

func invalidText(tool, wrong string) string {
	return fmt.Sprintf("The server's answer to '%s' is invalid: %s. The tool was executed, and what it came to is lost. Check before you call it again.",
		tool, wrong)
}

func deniedText(tool, why string) string {
	return fmt.Sprintf("The call of '%s' is denied by policy: %s. It was not sent; do not repeat it.", tool, why)
}

func unknownText(tool, detail string) string {
	return fmt.Sprintf("An earlier call of '%s' with the same key or arguments was sent, and %s. It may have taken effect, so it was not sent again. "+
		"Check whether it did before you go on.", tool, detail)
}

func notKept(tool string) string {
	return fmt.Sprintf("An earlier call of '%s' with the same key was executed, but its result was not kept. It was not executed again. "+
		"Look at what it has done, or use a new key for a new operation.", tool)
}

func conflictText(tool string) string {
	return fmt.Sprintf("The idempotency key of this call of '%s' was used before with other arguments. It was not sent. "+
		"Use a new key for a new operation, or the same arguments for a repeat.", tool)
}

func tooLargeText(what string, size, limit int64) string {
	return fmt.Sprintf("%s of %d bytes is over the limit of %d bytes. (The user can raise it with max_message_bytes.)", what, size, limit)
}

// roughly shows a wait as a person would say it.
func roughly(d time.Duration) string {
	if d < time.Second {
		return max(d.Round(time.Millisecond), time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
