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
)

// A stderrLog takes in what a server writes to stderr and hands it out line by line. A carriage return ends a line too, so
// that progress bars do.
type stderrLog struct {
	log func(line string)

	mu     sync.Mutex
	part   []byte // the line so far
	cut    bool   // it was longer than maxLine
	last   []string
	prompt *time.Timer
}

func newStderrLog(log func(string)) *stderrLog {
	l := &stderrLog{log: log}
	l.prompt = time.AfterFunc(time.Hour, l.end)
	l.prompt.Stop()
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
	l.log(line)
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
