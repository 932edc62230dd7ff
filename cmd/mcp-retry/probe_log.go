package main

import (
	"bytes"
	"slices"
	"sync"
)

// probeLog takes in the log of a proxy whose server is only knocked at. It keeps what a check tells of and nothing else: a
// server may print without end, and neither the memory nor the time for that is a check's to spend.
type probeLog struct {
	mu      sync.Mutex
	partial []byte   // the beginning of a record
	printed []byte   // the first record of a line on stdout that is no message and not blank
	exit    []byte   // the last record of an end
	stderr  [][]byte // the last records of lines on stderr
}

// Bounds of a probeLog.
const (
	mostLastWords = 3       // lines of stderr that are quoted
	mostRecord    = 1 << 16 // bytes; a longer record is passed over
)

func (l *probeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		switch {
		case line[len(line)-1] != '\n':
			l.partial = append(l.partial, line[:min(len(line), max(0, mostRecord-len(l.partial)))]...)
			continue
		case len(l.partial) > 0:
			line = append(l.partial, line...)
			l.partial = nil
		}
		if len(line) < mostRecord {
			l.take(line)
		}
	}
	return len(p), nil
}

// take keeps a record if it is one that counts. Which it is shows in the bytes: to parse them all would be too slow.
func (l *probeLog) take(line []byte) {
	switch {
	case bytes.Contains(line, []byte(`"msg":"server_stderr"`)) && !bytes.Contains(line, []byte(`"text":""`)):
		if len(l.stderr) == mostLastWords {
			l.stderr = append(l.stderr[:0], l.stderr[1:]...)
		}
		l.stderr = append(l.stderr, bytes.Clone(line))
	case bytes.Contains(line, []byte(`"msg":"server_exit"`)):
		l.exit = bytes.Clone(line)
	case l.printed == nil && bytes.Contains(line, []byte(`"msg":"noise"`)):
		kept := &records{}
		_, _ = kept.Write(line)
		if kept.noise() != "" {
			l.printed = bytes.Clone(line)
		}
	}
}

// kept are the records that count.
func (l *probeLog) kept() *records {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &records{}
	_, _ = r.Write(slices.Concat(l.printed, l.exit, bytes.Join(l.stderr, nil)))
	return r
}

func (l *probeLog) noise() string { return l.kept().noise() }

func (l *probeLog) lastWords(said *rpcError) error { return l.kept().lastWords(said) }
