package policytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// got is what a call came to in the terms of an expectation: its value, and that as a test file would have it.
type got struct {
	value any // string, int64, bool, time.Duration, []time.Duration, json.RawMessage, or nil for nothing
	text  string
}

// look finds what an expectation is about. executions are those of the whole step.
func (c *Call) look(key string, executions int) got {
	switch key {
	case "status":
		if c.Status == "success" {
			return got{c.Status, "ok"}
		}
		return words(c.Status)
	case "attempts":
		return number(int64(c.Sends))
	case "executions":
		return number(int64(executions))
	case "delays":
		waits := c.delays()
		return got{waits, listed(waits)}
	case "took":
		return got{c.Took, short(c.Took)}
	case "cached":
		return truth(c.Cache == "hit")
	case "cache_ttl":
		return got{c.cacheTTL(), short(c.cacheTTL())}
	case "deduplicated":
		return truth(c.Dedup == "joined" || c.Dedup == "replayed")
	case "idempotency_key":
		return raw(c.key)
	case "breaker.scope":
		scope, decided := c.values[schema.BreakerScope].(string)
		if !decided {
			return got{}
		}
		return wordsOrNone(scope)
	case "breaker.state":
		return words(c.state)
	case "denied":
		if c.Status != "denied" || c.failure == nil {
			return truth(c.Status == "denied")
		}
		if reason, _ := c.values[schema.Deny].(string); reason != "" {
			return words(reason)
		}
		return words(c.failure.Message) // it was not a rule's deny
	case "error.code":
		if c.failure == nil || c.failure.Code == 0 {
			return got{}
		}
		return number(c.failure.Code)
	case "error.kind":
		if c.failure != nil && c.failure.Kind != "" {
			return words(c.failure.Kind)
		}
		return words(c.Kind)
	case "error.mayHaveExecuted":
		if c.failure == nil {
			return got{}
		}
		return words(c.failure.May)
	case "error.text":
		if c.failure == nil {
			return got{}
		}
		return wordsOrNone(c.failure.Message)
	case "result":
		return raw(c.Result)
	case "cel_errors":
		return number(int64(len(c.CELErrors)))
	}
	if d, ok := strings.CutPrefix(key, "rules."); ok {
		return words(c.rule(schema.Decision(d)))
	}
	return got{}
}

func words(s string) got {
	if s == "" {
		return got{}
	}
	return got{s, s}
}

// wordsOrNone is a text that may well be empty.
func wordsOrNone(s string) got {
	if s == "" {
		return got{s, `""`}
	}
	return words(s)
}

func number(n int64) got { return got{n, strconv.FormatInt(n, 10)} }

func truth(b bool) got { return got{b, strconv.FormatBool(b)} }

func raw(text json.RawMessage) got {
	if text == nil {
		return got{}
	}
	return got{text, string(text)}
}

// short prints a duration as a test file would have it: "1m30s", "500ms".
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d < time.Second && d%time.Millisecond == 0:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func listed(ds []time.Duration) string {
	var all []string
	for _, d := range ds {
		all = append(all, short(d))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// meets reports whether what came is what was wanted.
func meets(want any, g got) bool {
	switch want := want.(type) {
	case nil:
		return g.value == nil
	case schema.Span:
		d, ok := g.value.(time.Duration)
		return ok && want.Contains(d)
	case []schema.Span:
		ds, _ := g.value.([]time.Duration)
		return slices.EqualFunc(want, ds, schema.Span.Contains)
	case schema.Pattern:
		s, ok := g.value.(string)
		if !ok {
			return false
		}
		re, err := regexp.Compile(string(want))
		return err == nil && re.MatchString(s)
	case json.RawMessage:
		text, ok := g.value.(json.RawMessage)
		return ok && within(decode(want), decode(text))
	case bool:
		if s, denied := g.value.(string); denied {
			return want == (s != "")
		}
		return g.value == want
	case string:
		return g.value == want
	}
	return g.value == want
}

// within reports whether a value is part of another: of a map what is stated, anything else exactly.
func within(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		of, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range want {
			other, there := of[k]
			if !there || !within(v, other) {
				return false
			}
		}
		return true
	case []any:
		of, ok := have.([]any)
		return ok && slices.EqualFunc(want, of, within)
	case json.Number:
		n, ok := have.(json.Number)
		return ok && equalNumbers(want, n)
	}
	return want == have
}

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	_, bad1 := a.Int64()
	_, bad2 := b.Int64()
	return err1 == nil && err2 == nil && x == y && (bad1 != nil || bad2 != nil) // two integers are equal only by their digits
}

func decode(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Sprintf("what is no JSON: %s", text)
	}
	return v
}
