package proxy

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// A jsonFormatter writes an entry as one line of JSON, with the keys of log/slog's JSONHandler:
//
//	{"time":"…","level":"info","msg":"tool_call_end","server":"github","tool":"get_issue","request_id":7,
//	 "duration_ms":245.1,"status":"success","attempt":1}
//
// Levels are in lower case, durations are milliseconds, and zero fields are left out. It is not that handler because that
// spends more time on the record of a call than the proxy does on a call.
type jsonFormatter struct{ attrs []slog.Attr }

func (f *jsonFormatter) format(buf *bytes.Buffer, e *entry) {
	b := append(buf.AvailableBuffer(), `{"time":"`...)
	b = e.at.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","level":"`...)
	b = append(b, levelName(slog.Level(e.rec.Level))...)
	b = append(b, `","msg":`...)
	b = appendJSONString(b, harmless(e.rec.Event, true))
	f.attrs = appendAttrs(f.attrs[:0], e, true)
	for _, a := range f.attrs {
		b = append(b, `,"`...)
		b = append(b, a.Key...)
		b = append(b, `":`...)
		switch v := a.Value; v.Kind() {
		case slog.KindInt64:
			b = strconv.AppendInt(b, v.Int64(), 10)
		case slog.KindFloat64:
			b = strconv.AppendFloat(b, v.Float64(), 'f', -1, 64)
		case slog.KindString:
			b = appendJSONString(b, v.String())
		default:
			b = append(b, v.Any().(json.RawMessage)...)
		}
	}
	buf.Write(append(b, "}\n"...))
	clear(f.attrs)
}

// appendJSONString appends a harmless text as a JSON string: of what must be escaped, it holds these at most.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	for {
		i := strings.IndexAny(s, "\"\\\n")
		if i < 0 {
			return append(append(b, s...), '"')
		}
		b = append(b, s[:i]...)
		if s[i] == '\n' {
			b = append(b, `\n`...)
		} else {
			b = append(b, '\\', s[i])
		}
		s = s[i+1:]
	}
}

// levelName returns the name of a level in lower case.
func levelName(l slog.Level) string {
	switch l {
	case slog.LevelDebug:
		return "debug"
	case slog.LevelInfo:
		return "info"
	case slog.LevelWarn:
		return "warn"
	case slog.LevelError:
		return "error"
	}
	return strings.ToLower(l.String())
}

// appendAttrs appends the fields of an entry that are not zero, in the order in which a reader looks for them. Texts are
// made harmless; newlines are kept where the format escapes them.
func appendAttrs(attrs []slog.Attr, e *entry, newlines bool) []slog.Attr {
	str := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, harmless(value, newlines)))
		}
	}
	num := func(key string, value int) {
		if value != 0 {
			attrs = append(attrs, slog.Int(key, value))
		}
	}
	dur := func(key string, value time.Duration) {
		if value != 0 {
			attrs = append(attrs, slog.Float64(key, milliseconds(value)))
		}
	}
	r := &e.rec
	str("server", r.Server)
	str("tool", r.Tool)
	if r.RequestID != "" {
		attrs = append(attrs, slog.Attr{Key: "request_id", Value: idValue(r.RequestID, newlines)})
	}
	dur("duration_ms", r.Duration)
	str("status", r.Status)
	num("attempt", r.Attempt)
	num("code", r.Code)
	str("kind", r.Kind)
	str("delivery", r.Delivery)
	str("ended_by", r.EndedBy)
	str("cache", r.Cache)
	str("dedup", r.Dedup)
	str("scope", r.Scope)
	str("from", r.From)
	str("to", r.To)
	str("rule", r.Rule)
	dur("delay_ms", r.Delay)
	str("text", e.text)
	str("detail", r.Detail)
	return attrs
}

// milliseconds rounds a duration to microseconds, as a number of milliseconds.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond).Microseconds()) / 1000
}

// idValue returns the value of a request id, which is raw JSON: a string as the string that it means, a number with all of
// its digits.
func idValue(raw string, newlines bool) slog.Value {
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil && raw[0] != '-' && raw[0] != '+' {
		return slog.Int64Value(n)
	}
	var s string
	switch {
	case raw[0] == '"' && json.Unmarshal([]byte(raw), &s) == nil:
		return slog.StringValue(harmless(s, newlines))
	case json.Valid([]byte(raw)) && strings.Trim(raw, "0123456789+-.eE") == "":
		return slog.AnyValue(json.RawMessage(raw))
	}
	return slog.StringValue(harmless(raw, newlines))
}
