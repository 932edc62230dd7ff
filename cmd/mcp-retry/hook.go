package main

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of check --hook. A host gives a hook some seconds and kills it then; the README says 15. What is told must be told
// before, and leave time for the start of a program on a machine that is busy starting others.
const (
	longestHookTimeout = 10 * time.Second // for a server to answer
	hookDeadline       = 12 * time.Second // for everything
)

// mostHookText is how much a hook prints: it becomes part of a session's context.
const mostHookText = 8 << 10

// isHook reports whether a command line is that of a hook.
func isHook(args []string) bool {
	return len(args) > 1 && args[0] == "check" && slices.ContainsFunc(args[1:], func(word string) bool {
		value, stated := strings.CutPrefix(word, "--hook=")
		on, err := strconv.ParseBool(value)
		return word == "--hook" || stated && err == nil && on
	})
}

// hook carries out a command as a hook: what it prints, on stdout and on stderr, comes as one text on stdout, and it always
// succeeds, for hosts take up the output of no other. Past the deadline the work is left where it is.
func (u *ui) hook(ctx context.Context, command func(*ui) error) error {
	var text lockedText
	inner := &ui{stdin: u.stdin, stdout: &text, stderr: &text}
	done := make(chan struct{})
	go func() {
		defer close(done)
		inner.finish(command(inner))
	}()
	deadline := time.NewTimer(hookDeadline)
	defer deadline.Stop()
	select {
	case <-done:
	case <-deadline.C:
		inner.warnf("check did not come to an end within %s", hookDeadline)
	}
	said := text.take()
	if len(said) > mostHookText {
		said = append(bytes.ToValidUTF8(said[:mostHookText], nil), "…\n"...)
	}
	_, _ = u.stdout.Write(said) // a host that does not read it does not want it
	return nil
}

// lockedText takes in a text from several goroutines.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *lockedText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// take is the text so far.
func (t *lockedText) take() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.text.Bytes())
}
