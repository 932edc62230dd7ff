package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

const (
	logDelay   = 10 * time.Millisecond // how long a record may wait for company
	logSoon    = 1024                  // records that are not made to wait
	logRecords = 8192                  // records that may wait; beyond that, the oldest are dropped
	logBytes   = 4 << 20               // the same, in bytes of their texts
	logChunk   = 64 << 10              // bytes per write, at least, while there is more
	logRetry   = 5 * time.Millisecond  // before the next try, if stderr shares its non-blocking mode with stdout
)

// A logger writes records as lines. Whoever has a record only queues it: a goroutine that lives as long as there is
// something to write formats and writes. A writer that blocks, for ever even, costs records and nothing else.
type logger struct {
	level     slog.Level
	w         io.Writer
	formatter formatter

	mu      sync.Mutex
	queue   []entry // from head on
	head    int
	bytes   int // of the texts in queue
	dropped int // records since the last notice
	spare   []entry
	writing bool          // run is running or about to
	timer   *time.Timer   // starts run
	idle    chan struct{} // closed when writing ends; nil if nobody waits

	buf bytes.Buffer // of run
}

// An entry is a record and when it was made.
type entry struct {
	at   time.Time
	rec  engine.Record
	text string // what a server wrote to its stderr
}

func (e *entry) size() int {
	return len(e.text) + len(e.rec.Detail) + len(e.rec.RequestID) + len(e.rec.Tool) + len(e.rec.Scope)
}

// A formatter appends the line of an entry.
type formatter interface {
	format(buf *bytes.Buffer, e *entry)
}

// newLogger returns a logger that writes to w, or nowhere if w is nil.
func newLogger(w io.Writer, level slog.Level, f formatter) *logger {
	if w == nil {
		w, level = io.Discard, slog.Level(127)
	}
	return &logger{level: level, w: w, formatter: f}
}

// Bounds of what a client or a server can have a record say, in bytes.
const (
	maxLogName   = 256     // of a tool or a scope
	maxLogDetail = 4 << 10 // of the rest
)

// record queues a record of the engine.
func (l *logger) record(now time.Time, r *engine.Record) {
	if slog.Level(r.Level) < l.level {
		return
	}
	e := entry{at: now, rec: *r}
	e.rec.Tool, e.rec.Scope = clipped(r.Tool, maxLogName), clipped(r.Scope, maxLogName)
	e.rec.Detail = clipped(r.Detail, maxLogDetail)
	l.add(e)
}

// clipped is the beginning of a text that is longer than most bytes, and else the text.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strings.Clone(text[:most]) + "…"
}

// serverStderr queues a line that a server wrote to stderr.
func (l *logger) serverStderr(server, line string) {
	if l.level <= slog.LevelInfo {
		l.add(entry{at: time.Now(), rec: engine.Record{Event: "server_stderr", Server: server}, text: line})
	}
}

// stderrDropped queues a record of lines that a server wrote to stderr and that are not logged.
func (l *logger) stderrDropped(server string, lines int) {
	if l.level <= slog.LevelInfo {
		l.record(time.Now(), &engine.Record{
			Level: engine.LevelWarn, Event: "log_dropped", Server: server,
			Detail: fmt.Sprintf("%d lines of its stderr were left out: it writes more than %d a second", lines, lineRate),
		})
	}
}

func (l *logger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, e)
	l.bytes += e.size()
	for len(l.queue)-l.head > logRecords || l.bytes > logBytes {
		l.bytes -= l.queue[l.head].size()
		l.queue[l.head] = entry{}
		l.head++
		l.dropped++
	}
	if l.head > logRecords {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	switch {
	case !l.writing:
		l.writing = true
		if l.timer == nil {
			l.timer = time.AfterFunc(logDelay, l.run)
		} else {
			l.timer.Reset(logDelay)
		}
	case len(l.queue) == logSoon && l.timer.Stop():
		go l.run()
	}
}

// run writes what is queued, then rests if more has come meanwhile.
func (l *logger) run() {
	for {
		l.mu.Lock()
		batch, dropped := l.queue[l.head:], l.dropped
		whole := l.queue
		if len(batch) == 0 && dropped == 0 {
			l.writing = false
			if l.idle != nil {
				close(l.idle)
				l.idle = nil
			}
			l.mu.Unlock()
			return
		}
		l.queue, l.head, l.bytes, l.dropped = l.spare[:0], 0, 0, 0
		l.spare = nil
		l.mu.Unlock()

		if dropped > 0 {
			l.formatter.format(&l.buf, &entry{at: time.Now(), rec: engine.Record{
				Level: engine.LevelWarn, Event: "log_dropped", Detail: fmt.Sprintf("%d records were dropped: stderr is not read", dropped),
			}})
		}
		for i := range batch {
			l.formatter.format(&l.buf, &batch[i])
			if l.buf.Len() >= logChunk {
				l.write()
			}
		}
		l.write()
		clear(batch)

		l.mu.Lock()
		if cap(whole) <= 2*logSoon {
			l.spare = whole
		}
		rest := len(l.queue) > 0 && l.idle == nil
		if rest {
			l.timer.Reset(logDelay)
		}
		l.mu.Unlock()
		if rest {
			return
		}
	}
}

// write writes the buffer. Errors are ignored: there is nowhere to report them.
func (l *logger) write() {
	for p := l.buf.Bytes(); len(p) > 0; {
		n, err := l.w.Write(p)
		p = p[min(n, len(p)):]
		if errors.Is(err, syscall.EAGAIN) {
			time.Sleep(logRetry)
		} else if err != nil {
			break
		}
	}
	if l.buf.Cap() > 4*logChunk {
		l.buf = bytes.Buffer{}
	}
	l.buf.Reset()
}

// flush waits until everything is written, but not longer than limit.
func (l *logger) flush(limit time.Duration) {
	l.mu.Lock()
	if !l.writing {
		l.mu.Unlock()
		return
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	if l.timer.Stop() {
		go l.run()
	}
	l.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}
