package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// at is when everything in these tests happens.
var at = time.Date(2026, 7, 28, 15, 4, 5, 123456789, time.UTC)

func formatted(f formatter, e entry) string {
	var buf bytes.Buffer
	e.at = at
	f.format(&buf, &e)
	return buf.String()
}

func TestJSONLogLine(t *testing.T) {
	tests := []struct {
		name  string
		entry entry
		want  string // without the time
	}{
		{
			"the end of a call",
			entry{rec: engine.Record{Event: "tool_call_end", Server: "github", Tool: "get_file_contents", RequestID: "7", Duration: 245 * time.Millisecond, Status: "success", Attempt: 1}},
			`"level":"info","msg":"tool_call_end","server":"github","tool":"get_file_contents","request_id":7,"duration_ms":245,"status":"success","attempt":1`,
		},
		{
			"all that there is",
			entry{rec: engine.Record{
				Level: engine.LevelWarn, Event: "e", Server: "s", Tool: "t", RequestID: `"a\u0062"`, Duration: 1234567, Status: "error", Attempt: 2, Code: -31001,
				Kind: "timeout", Delivery: "unknown", EndedBy: "attempts", Cache: "stale", Dedup: "joined", Scope: "server", From: "closed", To: "open",
				Rule: "reads", Delay: 1500 * time.Microsecond, Detail: "two\nlines",
			}},
			`"level":"warn","msg":"e","server":"s","tool":"t","request_id":"ab","duration_ms":1.235,"status":"error","attempt":2,"code":-31001,` +
				`"kind":"timeout","delivery":"unknown","ended_by":"attempts","cache":"stale","dedup":"joined","scope":"server","from":"closed","to":"open",` +
				`"rule":"reads","delay_ms":1.5,"detail":"two\nlines"`,
		},
		{
			"B21: an id beyond 2^53 keeps its digits",
			entry{rec: engine.Record{Level: engine.LevelDebug, Event: "e", RequestID: "9007199254740993"}},
			`"level":"debug","msg":"e","request_id":9007199254740993`,
		},
		{
			"an id that is none",
			entry{rec: engine.Record{Level: engine.LevelError, Event: "e", RequestID: "{\"a\":\x00"}},
			`"level":"error","msg":"e","request_id":"{\"a\":\\u0000"`,
		},
		{
			"the words of a server",
			entry{rec: engine.Record{Event: "server_stderr", Server: "s"}, text: "hello <&>"},
			`"level":"info","msg":"server_stderr","server":"s","text":"hello <&>"`,
		},
	}
	f := &jsonFormatter{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := formatted(f, tt.entry)
			want := `{"time":"2026-07-28T15:04:05.123456789Z",` + tt.want + "}\n"
			if got != want {
				t.Errorf("got  %swant %s", got, want)
			}
			if !json.Valid([]byte(got)) {
				t.Error("not JSON")
			}
		})
	}
}

func TestPrettyLogLine(t *testing.T) {
	call := entry{rec: engine.Record{Event: "tool_call_end", Server: "github", Tool: "get_issue", RequestID: "7", Duration: 245100 * time.Microsecond, Status: "success", Attempt: 1}}
	opened := entry{rec: engine.Record{Level: engine.LevelWarn, Event: "circuit_breaker_state_change", Server: "github", Scope: "a b", From: "closed", To: "open"}}
	tests := []struct {
		name  string
		color bool
		entry entry
		want  string
	}{
		{"a call", false, call, "15:04:05.123 info  tool_call_end github/get_issue request_id=7 245.1ms success attempt=1\n"},
		{"a breaker", false, opened, "15:04:05.123 warn  circuit_breaker_state_change github scope=\"a b\" from=closed to=open\n"},
		{"no server", false, entry{rec: engine.Record{Event: "e", Tool: "t", Detail: "why"}}, "15:04:05.123 info  e t why\n"},
		{"colours", true, call, "\x1b[2m15:04:05.123\x1b[0m info  tool_call_end github/get_issue \x1b[2mrequest_id=\x1b[0m7 245.1ms \x1b[32msuccess\x1b[0m \x1b[2mattempt=\x1b[0m1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := formatted(&prettyFormatter{color: tt.color}, tt.entry); got != tt.want {
				t.Errorf("got  %qwant %q", got, tt.want)
			}
		})
	}
}

func TestNoColorsWithoutATerminal(t *testing.T) {
	if newPrettyFormatter(&bytes.Buffer{}).color {
		t.Error("colours in a buffer")
	}
}

func TestLogLinesCannotBeForged(t *testing.T) {
	hostile := []string{
		"x\n{\"level\":\"info\",\"msg\":\"forged\"}", "x\r\nforged", "\x1b]0;title\x07", "\x1b[2J\x1b[31mred", "\u009b31m", "a\u2028b", "a\u0085b",
		"\u202egnp.exe", "nul\x00", "\x7f", "bad\xff\xfeutf8", "\x1b", "\u200b",
	}
	for name, f := range map[string]formatter{"json": &jsonFormatter{}, "pretty": &prettyFormatter{}} {
		for _, text := range hostile {
			rec := engine.Record{
				Event: text, Server: text, Tool: text, RequestID: text, Status: text, Kind: text, Delivery: text, EndedBy: text,
				Cache: text, Dedup: text, Scope: text, From: text, To: text, Rule: text, Detail: text,
			}
			got := formatted(f, entry{rec: rec, text: text})
			if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
				t.Errorf("%s: %q makes more than one line: %q", name, text, got)
			}
			for _, r := range strings.TrimSuffix(got, "\n") {
				if r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u2028\u202e\u200b", r) {
					t.Errorf("%s: %q gets through: %q", name, text, got)
					break
				}
			}
			if name == "json" && !json.Valid([]byte(got)) {
				t.Errorf("not JSON: %q", got)
			}
		}
	}
}

func TestPlainText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{"\x1b[1;31merror\x1b[0m: it broke", "error: it broke"},
		{"\x1b]8;;http://example.com\x07link\x1b]8;;\x1b\\ end", "link end"},
		{"\x1b[?25lhidden cursor", "hidden cursor"},
		{"cut off \x1b[31", "cut off "},
		{"cut off \x1b", "cut off "},
		{"\x1b(B text", "B text"},
		{"tab\there", "tab here"},
		{"bell\a", `bell\u0007`},
		{"größe 日本 ✓", "größe 日本 ✓"},
	}
	for _, tt := range tests {
		if got := plainText(tt.in); got != tt.want {
			t.Errorf("plainText(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// lines parses what a logger wrote.
func lines(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, m)
	}
	return all
}

func TestLoggerFiltersByLevel(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(&out, slog.LevelWarn, &jsonFormatter{})
	for _, level := range []engine.Level{engine.LevelDebug, engine.LevelInfo, engine.LevelWarn, engine.LevelError} {
		l.record(at, &engine.Record{Level: level, Event: "e"})
	}
	l.serverStderr("s", "chatter")
	l.flush(time.Minute)
	var levels []any
	for _, m := range lines(t, out.String()) {
		levels = append(levels, m["level"])
	}
	if want := []any{"warn", "error"}; !reflect.DeepEqual(levels, want) {
		t.Errorf("got %v, want %v", levels, want)
	}
}

func TestLoggerWritesWithoutBeingAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newLogger(w, slog.LevelInfo, &jsonFormatter{})
		start := time.Now()
		l.record(at, &engine.Record{Event: "first"})
		l.record(at, &engine.Record{Event: "second"})
		buf := make([]byte, 1<<10)
		n, _ := r.Read(buf)
		if all := lines(t, string(buf[:n])); len(all) != 2 || time.Since(start) > 2*logDelay {
			t.Errorf("%d records after %v", len(all), time.Since(start))
		}
		l.flush(time.Second)
	})
}

// TestB61ABlockedLogCostsRecordsAndNothingElse has nobody read the log for a while.
func TestB61ABlockedLogCostsRecordsAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newLogger(w, slog.LevelInfo, &jsonFormatter{})
		l.record(at, &engine.Record{Event: "first"})
		time.Sleep(time.Second) // the writer is stuck with it now
		const n = 3 * logRecords
		for i := range n {
			l.record(at, &engine.Record{Event: "e", Attempt: i + 1, Detail: strings.Repeat("x", 1<<10)})
		}
		if len(l.queue)-l.head > logRecords || l.bytes > logBytes {
			t.Errorf("%d records of %d bytes are kept", len(l.queue)-l.head, l.bytes)
		}
		start := time.Now()
		l.flush(logFlush)
		if took := time.Since(start); took > logFlush {
			t.Errorf("flush took %v", took)
		}
		var out bytes.Buffer
		var reading sync.WaitGroup
		reading.Go(func() { io.Copy(&out, r) })
		l.flush(time.Minute)
		w.Close()
		reading.Wait()
		all := lines(t, out.String())
		if len(all) < 3 || all[0]["msg"] != "first" || all[1]["msg"] != "log_dropped" {
			t.Fatalf("%d records, starting %v", len(all), all[:min(3, len(all))])
		}
		kept := len(all) - 2
		if want := fmt.Sprintf("%d records were dropped: stderr is not read", n-kept); all[1]["detail"] != want {
			t.Errorf("got %v, want %v", all[1]["detail"], want)
		}
		if last := all[len(all)-1]["attempt"]; last != float64(n) {
			t.Errorf("the last record is number %v, want %d: the oldest go first", last, n)
		}
	})
}

func TestLoggerIsSafeForConcurrentUse(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(&out, slog.LevelInfo, &jsonFormatter{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				l.record(at, &engine.Record{Event: "e"})
			}
		})
	}
	wg.Wait()
	l.flush(time.Minute)
	if n := len(lines(t, out.String())); n != 8*500 {
		t.Errorf("%d records", n)
	}
}

func BenchmarkLogRecord(b *testing.B) {
	rec := engine.Record{Event: "tool_call_end", Server: "github", Tool: "get_file_contents", RequestID: "7", Duration: 245 * time.Millisecond, Status: "success", Attempt: 1, Rule: "reads"}
	for name, f := range map[string]formatter{"json": &jsonFormatter{}, "pretty": &prettyFormatter{}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf bytes.Buffer
			for b.Loop() {
				buf.Reset()
				f.format(&buf, &entry{at: at, rec: rec})
			}
		})
	}
	b.Run("queue", func(b *testing.B) {
		b.ReportAllocs()
		l := newLogger(io.Discard, slog.LevelInfo, &jsonFormatter{})
		for b.Loop() {
			l.record(at, &rec)
		}
		l.flush(time.Minute)
	})
}

func TestNobodyMakesARecordLong(t *testing.T) {
	log := &syncBuffer{}
	l := newLogger(log, slog.LevelInfo, &jsonFormatter{})
	long := strings.Repeat("ü", 1<<20)
	l.record(at, &engine.Record{Event: "e", Tool: "x" + long, Scope: long, Detail: long})
	l.record(at, &engine.Record{Event: "e", Tool: strings.Repeat("y", maxLogName)})
	l.flush(5 * time.Second)
	all := lines(t, log.String())
	tool, scope, detail := all[0]["tool"].(string), all[0]["scope"].(string), all[0]["detail"].(string)
	if tool != "x"+strings.Repeat("ü", maxLogName/2-1)+"…" || scope != strings.Repeat("ü", maxLogName/2)+"…" || detail != strings.Repeat("ü", maxLogDetail/2)+"…" {
		t.Errorf("the record has %d, %d and %d bytes", len(tool), len(scope), len(detail))
	}
	if got := all[1]["tool"]; got != strings.Repeat("y", maxLogName) {
		t.Errorf("what is not too long is %v", got)
	}
}
