package schema

import (
	"slices"
	"strings"
	"time"
)

// expectations reads what is expected of a call, in the order of the file.
func (b *testBuilder) expectations(n *node) []Expectation {
	var list []Expectation
	for i := range n.fields {
		f := &n.fields[i]
		if f.key.bad || f.value.bad {
			continue
		}
		name, v := f.key.text, f.value
		switch name {
		case "breaker", "error", "rules":
			b.notEmpty(name, v)
			for j := range v.fields {
				inner := &v.fields[j]
				if inner.key.bad || inner.value.bad || name == "rules" && !b.decision(inner.key) {
					continue
				}
				list = b.expectation(list, name+"."+inner.key.text, inner.value)
			}
		default:
			list = b.expectation(list, name, v)
		}
	}
	return list
}

func (b *testBuilder) expectation(list []Expectation, key string, n *node) []Expectation {
	e := Expectation{Key: key, Pos: n.pos, Text: n.text, Written: n.whereWritten("")}
	if n.kind == text && n.text == "" {
		e.Text = `""`
	}
	switch key {
	case "result", "idempotency_key":
		e.Text = string(n.json())
		if n.kind != null {
			e.Want = n.json()
		}
	case "took", "cache_ttl":
		e.Want = b.span(n)
	case "delays":
		spans := []Span{}
		var words []string
		for _, item := range n.items {
			if !item.bad {
				spans = append(spans, b.span(item))
				words = append(words, item.text)
			}
		}
		e.Want, e.Text = spans, "["+strings.Join(words, ", ")+"]"
	case "status":
		e.Want = n.text
		if n.text == "ok" {
			e.Want = "success"
		}
	case "error.text", "denied":
		e.Want = n.value
		if n.kind != text {
			break
		}
		p, is, err := patternOf(n.text)
		if err != nil {
			b.fault(n, "bad-value", "see https://pkg.go.dev/regexp/syntax", "%q is no regular expression: %v", shorten(n.text), err)
			return list
		}
		if is {
			e.Want = p
		}
	default:
		e.Want = n.value
	}
	return append(list, e)
}

// whereWritten says where the node and its parts stand.
func (n *node) whereWritten(name string) Written {
	w := Written{Pos: n.pos, Value: n.json(), Map: n.kind == object, Name: name}
	for _, item := range n.items {
		w.Parts = append(w.Parts, item.whereWritten(""))
	}
	for i := range n.fields {
		w.Parts = append(w.Parts, n.fields[i].value.whereWritten(n.fields[i].key.text))
	}
	return w
}

// decision checks that the key of a rules entry is one.
func (b *testBuilder) decision(key *node) bool {
	if slices.Contains(decisions, Decision(key.text)) {
		return true
	}
	var names []string
	for _, d := range decisions {
		names = append(names, string(d))
	}
	hint := "one of " + strings.Join(names, ", ")
	if near := nearest(key.text, names); near != "" {
		hint = `did you mean "` + near + `"?`
	}
	b.fault(key, "unknown-key", hint, "there is no decision %q", shorten(key.text))
	return false
}

// decisions are all that rules can decide.
var decisions = []Decision{
	Effects, Deny, IdempotencyKey, IdempotencyTTL, OnConflict, OnAmbiguous, ForwardKey, CacheKey, BreakerScope, RateLimitKey,
	CallTimeout, TotalTimeout, MaxCallTime, MaxRetries, Invalidates, Validate, Retry, RetryUnsafe, RetryDelay, BreakerFailure,
	CacheTTL, StaleIfError, BaseDelay, MaxDelay, Jitter, Backoff, FailureThreshold, Cooldown, HalfOpenProbes, Limit,
}

// notEmpty complains of a map of expectations that expects nothing.
func (b *testBuilder) notEmpty(name string, n *node) {
	if n.kind == object && len(n.fields) == 0 {
		b.errorAt(n.pos, "bad-value", "say what is expected, or leave it out", "%q expects nothing", name)
	}
}

// span is spanOf, and complains of a range in which nothing lies.
func (b *testBuilder) span(n *node) Span {
	s := spanOf(n)
	if s.Max >= 0 && (s.Max < s.Min || s.Max == s.Min && (s.AboveMin || s.BelowMax)) {
		b.fault(n, "bad-value", "write the shorter duration first", "no duration is in the range %s", found(n))
	}
	return s
}

// spanOf reads a checked duration or range of durations.
func spanOf(n *node) Span {
	if n.kind == number {
		d := toDuration(n.float())
		return Span{Min: d, Max: d}
	}
	s := strings.TrimSpace(n.text)
	if low, high, ok := strings.Cut(s, ".."); ok {
		return Span{Min: durationOf(low), Max: durationOf(high)}
	}
	for _, bound := range []struct {
		sign string
		span func(d time.Duration) Span
	}{
		{"<=", func(d time.Duration) Span { return Span{Max: d} }},
		{">=", func(d time.Duration) Span { return Span{Min: d, Max: -1} }},
		{"<", func(d time.Duration) Span { return Span{Max: d, BelowMax: true} }},
		{">", func(d time.Duration) Span { return Span{Min: d, Max: -1, AboveMin: true} }},
	} {
		if rest, ok := strings.CutPrefix(s, bound.sign); ok {
			return bound.span(durationOf(rest))
		}
	}
	d := durationOf(s)
	return Span{Min: d, Max: d}
}

func durationOf(s string) time.Duration {
	f, _ := seconds(strings.TrimSpace(s))
	return toDuration(f)
}
