package schema

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// written is how a server is started as the file says it, before variables were replaced: a token may stand there.
type written struct {
	command string
	args    []string
	env     map[string]string // those included whose variables are not set
	cwd     string
}

// WriteNormal prints the normal form of a config as YAML: of each server how it is started, the parameters of its machines, and
// all its rules in the order in which they are asked, defaults and built-in policy included. Comments say where each comes from.
// Variables are shown as the file names them; values of env are not shown at all.
func WriteNormal(w io.Writer, c *Config) error {
	p := &printer{}
	if c.Separator != "" && c.Separator != DefaultSeparator {
		p.line(0, "compose: {separator: %s}", scalar(c.Separator))
	}
	p.line(0, "servers:")
	for _, s := range c.Servers {
		p.server(s)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

type printer struct{ out strings.Builder }

func (p *printer) line(indent int, format string, args ...any) {
	p.out.WriteString(strings.Repeat("  ", indent))
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

// masked is a text with "[redacted]" in the place of each secret: the same at each run.
func (r *Redactor) masked(s string) string {
	var out strings.Builder
	done := 0
	for _, span := range r.spans(s) {
		out.WriteString(s[done:span[0]] + "[redacted]")
		done = span[1]
	}
	return out.String() + s[done:]
}

func (p *printer) server(s *Server) {
	origin := ""
	if s.Pos.Line > 0 {
		origin = "  # " + s.Pos.String()
	}
	p.line(1, "%s:%s", scalar(s.Name), origin)
	secrets := NewRedactor(s)
	p.line(2, "command: %s", scalar(secrets.masked(s.written.command)))
	if len(s.written.args) > 0 {
		args := make([]string, len(s.written.args))
		for i, arg := range s.written.args {
			args[i] = secrets.masked(arg)
		}
		p.line(2, "args: %s", flowList(args))
	}
	if len(s.Env) > 0 {
		p.line(2, "env: %s  # values are not shown", flowList(slices.Sorted(maps.Keys(s.Env))))
	}
	if s.written.cwd != "" {
		p.line(2, "cwd: %s", scalar(s.written.cwd))
	}
	p.line(2, "startup_timeout: %s", duration(s.StartupTimeout))
	p.line(2, "restart: %s", s.Restart)
	p.line(2, "max_message_bytes: %s", bytesWords(float64(s.MaxMessageBytes)))
	p.line(2, "errors: %s", s.Errors)
	p.line(2, "trust_annotations: %t", s.TrustAnnotations)
	p.line(2, "mark_results: %t", s.MarkResults)
	if s.MaxConcurrency > 0 {
		p.line(2, "max_concurrency: %d", s.MaxConcurrency)
	}
	p.line(2, "cache: {max_entries: %d, max_bytes: %s}", s.CacheLimit.MaxEntries, bytesWords(float64(s.CacheLimit.MaxBytes)))
	if b := s.Budget; b != nil {
		p.line(2, "retry_budget: {ratio: %v, per_second: %v, burst: %v}", b.Ratio, b.PerSecond, b.Burst)
	} else {
		p.line(2, "retry_budget: false")
	}
	if f := s.ToolFilter; f.Allow != nil || len(f.Deny) > 0 {
		p.line(2, "tool_filter:")
		if f.Allow != nil {
			p.line(3, "allow: %s", flowList(f.Allow))
		}
		if len(f.Deny) > 0 {
			p.line(3, "deny: %s", flowList(f.Deny))
		}
	}
	p.line(2, "rules:")
	for i := range s.Rules {
		p.rule(&s.Rules[i])
	}
}

func (p *printer) rule(r *Rule) {
	from := r.Origin
	if r.Pos.Line > 0 {
		from += ", " + r.Pos.String()
	}
	p.line(3, "- name: %s  # %s", scalar(r.Name), from)
	if r.Tools != "" {
		p.line(4, "tools: %s", scalar(r.Tools))
	}
	if r.When != nil {
		p.expr(4, "when", r.When)
	}
	for _, s := range r.Decides {
		switch inv, isList := s.Literal.([]Invalidation); {
		case s.Expr != nil:
			p.expr(4, string(s.Decision), s.Expr)
		case isList:
			p.invalidations(inv)
		default:
			p.line(4, "%s: %s", s.Decision, value(s.Literal))
		}
		if s.Required {
			p.line(4, "required: true")
		}
	}
}

// expr prints an expression: on its line, or as a block if it has several.
func (p *printer) expr(indent int, key string, e *Expr) {
	text := strings.TrimSpace(e.Text)
	if !strings.ContainsAny(text, "\r\n") {
		p.line(indent, "%s: %s", key, scalar(text))
		return
	}
	p.line(indent, "%s: |-", key)
	for line := range strings.Lines(text) {
		p.line(indent+1, "%s", strings.TrimRight(line, "\r\n"))
	}
}

func (p *printer) invalidations(list []Invalidation) {
	if len(list) == 0 {
		p.line(4, "%s: []", Invalidates)
		return
	}
	p.line(4, "%s:", Invalidates)
	for _, i := range list {
		if i.Args == nil {
			p.line(5, "- %s", scalar(i.Tool))
			continue
		}
		p.line(5, "- tool: %s", scalar(i.Tool))
		p.expr(6, "args", i.Args)
	}
}

// value prints a literal.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return scalar(v)
	case time.Duration:
		return duration(v)
	case []string:
		return flowList(v)
	case RateLimit:
		burst := v.Burst
		if burst == 0 {
			burst = v.Calls
		}
		return fmt.Sprintf("{calls: %d, per: %s, burst: %d, max_wait: %s}", v.Calls, duration(v.Per), burst, duration(v.MaxWait))
	}
	return fmt.Sprint(v)
}

// duration prints a duration as a file may state it: 0, 500ms, 20s, 1.5s.
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + "ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

// scalar prints a text so that YAML reads the same text: bare if it is one plain word, else in quotes.
func scalar(s string) string {
	if plainWord(s) && plainKind(s) == text && !leadingZero().MatchString(s) {
		return s
	}
	for _, c := range s {
		if c < ' ' || c == 0x7f || c == '\u0085' || c == '\u2028' || c == '\u2029' || c == '\uFEFF' {
			return strconv.QuoteToASCII(s)
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// plainWord reports whether a text needs no quotes anywhere in YAML, in the eyes of every reader of it.
func plainWord(s string) bool {
	switch strings.ToLower(s) {
	case "", "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '/'
		if !letter && (i == 0 || (c < '0' || c > '9') && !strings.ContainsRune("-._/@*+[]", c)) {
			return false
		}
	}
	return !strings.ContainsAny(s, "[]") || strings.IndexByte(s, '[') > 0
}

func flowList(items []string) string {
	out := make([]string, len(items))
	for i, s := range items {
		if out[i] = scalar(s); strings.ContainsAny(out[i], "[]") && out[i][0] != '\'' && out[i][0] != '"' {
			out[i] = "'" + out[i] + "'"
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}
