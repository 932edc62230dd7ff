package engine

import "time"

// Level is the severity of a log record, with the numbers of log/slog.
type Level int

const (
	LevelDebug Level = -4
	LevelInfo  Level = 0
	LevelWarn  Level = 4
	LevelError Level = 8
)

// Record is one log record. Zero fields are left out. Its names are the stable vocabulary of the log.
type Record struct {
	Level     Level
	Event     string // msg: tool_call_start tool_call_end attempt_end invalid_result circuit_breaker_state_change server_start server_exit noise …
	Server    string
	Tool      string
	RequestID string        // raw JSON of the client's id
	Duration  time.Duration // duration_ms
	Status    string        // success tool_error error timeout refused denied cancelled
	Attempt   int           // number of the (last) attempt; 0 = none was made
	Code      int           // of the error that was answered; 0 = none
	Kind      string        // error kind: timeout, exit, …
	Delivery  string        // of the attempt
	EndedBy   string        // why there was no further attempt
	Cache     string        // hit, stale, stored; "" = not involved
	Dedup     string        // joined, replayed, kept
	Scope     string        // of the breaker
	From, To  string        // states of the breaker
	Rule      string        // the rule that decided
	Delay     time.Duration // delay_ms: the wait before the next attempt
	Detail    string        // free text
}

// Status is what a call came to, in the one vocabulary of logs, metrics and tests.
const (
	statusSuccess   = "success"
	statusToolError = "tool_error" // the server answered with isError
	statusError     = "error"      // the server's error, or one of ours that has no word of its own
	statusTimeout   = "timeout"
	statusRefused   = "refused" // by breaker, rate limit or idempotency: it was not sent
	statusDenied    = "denied"
	statusCancelled = "cancelled"
)
