package proxy

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

const (
	maxLine    = 4 << 10                // bytes of a line on stderr; what is beyond is left out
	tailLines  = 10                     // lines kept for the report of the server's end
	promptWait = 200 * time.Millisecond // after which a line without an end is logged as it is: a prompt, say
	cutMark    = " …"                   // stands for what was left out of a line

	lineRate  = 50              // lines a second that are handed out in the long run
	lineBurst = 1000            // lines that may come at once: the trace of a crash, the chatter of a start
	dropEvery = 5 * time.Second // between reports of how many were not
)

// A stderrLog takes in what a server writes to stderr and hands it out line by line. A carriage return ends a line too, so
// that progress bars do. A server that writes without end is cut short: it must not bury what else is in the log, or fill a disk.
type stderrLog struct {
	log     func(line string)
	dropped func(lines int) // how many were not handed out since the last time

	mu     sync.Mutex
	part   []byte // the line so far
	cut    bool   // it was longer than maxLine
	last   []string
	prompt *time.Timer
	room   float64 // lines that may be handed out, as it was at filled
	filled time.Time
	lost   int         // lines not handed out and not reported
	report *time.Timer // of them
}

func newStderrLog(log func(string), dropped func(int)) *stderrLog {
	l := &stderrLog{log: log, dropped: dropped, room: lineBurst, filled: time.Now()}
	l.prompt = time.AfterFunc(time.Hour, l.end)
	l.prompt.Stop()
	l.report = time.AfterFunc(time.Hour, l.tellDropped)
	l.report.Stop()
	return l
}

// Write implements io.Writer; it never fails.
func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		i := bytes.IndexAny(p, "\r\n")
		if i < 0 {
			break
		}
		l.append(p[:i])
		l.emit()
		p = p[i+1:]
	}
	l.append(p)
	if len(l.part) > 0 {
		l.prompt.Reset(promptWait)
	}
	return n, nil
}

// append adds to the line, up to its greatest length.
func (l *stderrLog) append(p []byte) {
	room := maxLine - len(l.part)
	if len(p) > room {
		p = p[:room]
		l.cut = true
	}
	l.part = append(l.part, p...)
}

// emit hands out the line, unless it is blank.
func (l *stderrLog) emit() {
	line := strings.ToValidUTF8(string(bytes.TrimRight(l.part, " \t")), "\uFFFD")
	if l.cut {
		line += cutMark
	}
	l.part, l.cut = l.part[:0], false
	if line = plainText(line); line == "" {
		return
	}
	if len(l.last) == tailLines {
		l.last = l.last[:copy(l.last, l.last[1:])]
	}
	l.last = append(l.last, line)
	now := time.Now()
	l.room = min(l.room+now.Sub(l.filled).Seconds()*lineRate, lineBurst)
	l.filled = now
	if l.room >= 1 {
		l.room--
		l.log(line)
		return
	}
	if l.lost++; l.lost == 1 {
		l.report.Reset(dropEvery)
	}
}

// tellDropped reports how many lines were not handed out, if any.
func (l *stderrLog) tellDropped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		l.dropped(l.lost)
		l.lost = 0
	}
}

// finish hands out what is left, for nothing more will come.
func (l *stderrLog) finish() {
	l.end()
	l.prompt.Stop()
	l.report.Stop()
	l.tellDropped()
}

// end hands out what is left of a line.
func (l *stderrLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emit()
}

// tail returns the last lines.
func (l *stderrLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.last, "\n")
}
