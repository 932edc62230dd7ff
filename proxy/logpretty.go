package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// A prettyFormatter writes an entry as one line for people:
//
//	15:04:05.123 info  tool_call_end github/get_issue success 245.1ms attempt=1
type prettyFormatter struct {
	color bool
	attrs []slog.Attr
}

// Colours of a terminal.
const (
	plain  = "\x1b[0m"
	faint  = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
)

// newPrettyFormatter returns a formatter for lines that go to w: coloured if that is a terminal and NO_COLOR is not set.
func newPrettyFormatter(w io.Writer) *prettyFormatter {
	return &prettyFormatter{color: isTerminal(w) && os.Getenv("NO_COLOR") == ""}
}

// isTerminal reports whether w is a terminal, or another device that minds colours no more than one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (f *prettyFormatter) format(buf *bytes.Buffer, e *entry) {
	r := &e.rec
	f.colored(buf, faint, e.at.Format("15:04:05.000"))
	level := levelName(slog.Level(r.Level))
	buf.WriteByte(' ')
	switch {
	case slog.Level(r.Level) >= slog.LevelError:
		f.colored(buf, red, level)
	case slog.Level(r.Level) >= slog.LevelWarn:
		f.colored(buf, yellow, level)
	default:
		buf.WriteString(level)
	}
	buf.WriteString(strings.Repeat(" ", max(0, len("error")-len(level))))
	buf.WriteByte(' ')
	buf.WriteString(harmless(r.Event, false))
	f.attrs = appendAttrs(f.attrs[:0], e, false)
	for _, a := range f.attrs {
		f.attr(buf, r.Server != "", a)
	}
	clear(f.attrs)
	buf.WriteByte('\n')
}

// attr writes one field: those that everybody knows without their name.
func (f *prettyFormatter) attr(buf *bytes.Buffer, hasServer bool, a slog.Attr) {
	if a.Key == "tool" && hasServer {
		buf.WriteByte('/')
	} else {
		buf.WriteByte(' ')
	}
	value := a.Value.String()
	if raw, ok := a.Value.Any().(json.RawMessage); ok {
		value = string(raw)
	}
	switch a.Key {
	case "server", "tool":
		buf.WriteString(value)
	case "text", "detail":
		buf.WriteString(value)
	case "duration_ms":
		buf.WriteString(strconv.FormatFloat(a.Value.Float64(), 'f', -1, 64) + "ms")
	case "status":
		f.colored(buf, statusColor(value), value)
	default:
		f.colored(buf, faint, a.Key+"=")
		if strings.Contains(value, " ") {
			value = strconv.Quote(value)
		}
		buf.WriteString(value)
	}
}

// statusColor returns the colour of a call's status.
func statusColor(status string) string {
	switch status {
	case "success":
		return green
	case "tool_error", "refused", "denied", "cancelled":
		return yellow
	}
	return red
}

func (f *prettyFormatter) colored(buf *bytes.Buffer, color, text string) {
	if !f.color {
		buf.WriteString(text)
		return
	}
	buf.WriteString(color)
	buf.WriteString(text)
	buf.WriteString(plain)
}
