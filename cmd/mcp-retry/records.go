package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// records takes in the log of a proxy.
type records struct{ lockedText }

// logRecord is a record of a proxy's log, as far as we look into it.
type logRecord struct {
	Event    string  `json:"msg"`
	Tool     string  `json:"tool"`
	Status   string  `json:"status"`
	Duration float64 `json:"duration_ms"`
	Attempt  int     `json:"attempt"`
	Code     int     `json:"code"`
	Kind     string  `json:"kind"`
	Cache    string  `json:"cache"`
	Dedup    string  `json:"dedup"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Text     string  `json:"text"`
	Detail   string  `json:"detail"`
}

// all are the records so far.
func (r *records) all() []logRecord {
	var found []logRecord
	for line := range bytes.Lines(r.take()) {
		var record logRecord
		if json.Unmarshal(line, &record) == nil {
			found = append(found, record)
		}
	}
	return found
}

// describe is an attempt in a word.
func (r logRecord) describe() string {
	switch {
	case r.Code != 0:
		return "error " + strconv.Itoa(r.Code)
	case r.Kind != "":
		return r.Kind
	default:
		return r.Status
	}
}

// about waits until the log knows how so many calls of a tool ended, and returns what it says of them; the breaker's records
// name no tool.
func (r *records) about(ctx context.Context, tool string, calls int) []logRecord {
	for {
		var found []logRecord
		ended := 0
		for _, record := range r.all() {
			switch {
			case record.Tool == tool && record.Event == "tool_call_end":
				ended++
				fallthrough
			case record.Tool == tool || record.Event == "circuit_breaker_state_change":
				found = append(found, record)
			}
		}
		if ended >= calls || !pause(ctx, 5*time.Millisecond) {
			return found
		}
	}
}

// lastWords is why a server went away: how it ended, and the last lines that it wrote to stderr.
func (r *records) lastWords(said *rpcError) error {
	reason := ""
	var lines []string
	for _, record := range r.all() {
		switch record.Event {
		case "server_exit":
			reason = record.Detail
		case "server_stderr":
			if text := oneLine(record.Text); text != "" {
				lines = append(lines, text)
			}
		}
	}
	switch {
	case reason == "" && said != nil:
		return errors.New(oneLine(said.Message))
	case reason == "":
		return errClosed
	}
	if last := lines[max(0, len(lines)-3):]; len(last) > 0 {
		reason += ": " + strings.Join(last, " | ")
	}
	return errors.New(reason)
}

// noise is the first line with something on it that a server printed to its stdout and that is no message, or "".
func (r *records) noise() string {
	for _, record := range r.all() {
		if text := oneLine(record.Detail); record.Event == "noise" && text != "" {
			return text
		}
	}
	return ""
}
