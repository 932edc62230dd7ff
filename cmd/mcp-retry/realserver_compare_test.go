package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// closeUnaltered ends the session and demands that all frames, in both directions, arrived in order and byte for byte, but
// for ids.
func (w *wire) closeUnaltered() {
	w.t.Helper()
	w.close()
	lives := w.at.lives(w.t)
	if len(lives) != 1 {
		w.t.Errorf("the server was started %d times, want once", len(lives))
		return
	}
	var read, written [][]byte
	for _, f := range lives[0].frames {
		if f.read {
			read = append(read, f.frame)
		} else {
			written = append(written, f.frame)
		}
	}
	w.compare("the client's frames at the server", w.sent, read)
	got := slices.DeleteFunc(slices.Clone(w.got), func(frame []byte) bool {
		return bytes.Contains(frame, []byte(`"error":{"code":-31010,`)) // to what was open at the end
	})
	if len(written) > len(got) { // what the server says after the end is nobody's
		for _, frame := range written[len(got):] {
			if m := decode(w.t, frame); m.Method == "" {
				w.t.Errorf("an answer of the server is missing at the client: %.300s", frame)
			}
		}
		written = written[:len(got)]
	}
	w.compare("the server's frames at the client", written, got)
}

func (w *wire) compare(what string, from, to [][]byte) {
	w.t.Helper()
	for i := range max(len(from), len(to)) {
		switch {
		case i >= len(from):
			w.t.Errorf("%s: one too many: %.300s", what, to[i])
		case i >= len(to):
			w.t.Errorf("%s: one is missing: %.300s", what, from[i])
		default:
			if a, b := w.withoutIDs(from[i]), w.withoutIDs(to[i]); a != b {
				w.t.Errorf("%s:\n  %.300s\nbecame\n  %.300s", what, a, b)
				return
			}
		}
	}
}

// idReference are the members beside "id" that hold an id of a request.
var idReference = regexp.MustCompile(`("(?:progressToken|requestId|io\.modelcontextprotocol/subscriptionId)" *: *)("(?:[^"\\]|\\.)*"|[0-9]+)`)

// withoutIDs is a frame with an X for each id.
func (w *wire) withoutIDs(frame []byte) string {
	var m jsonrpc.Message
	if err := jsonrpc.Parse(frame, &m); err != nil {
		w.t.Errorf("%v: %.300s", err, frame)
		return string(frame)
	}
	text := string(frame)
	if !m.ID.Empty() {
		text = text[:m.ID.Start] + "X" + text[m.ID.End:]
	}
	return idReference.ReplaceAllString(text, "${1}X")
}

// sameOnAllRoutes plays a scene directly and through mcp-retry, and demands that its notes are the same but for what
// differs from one run to the next, which volatile finds.
func sameOnAllRoutes(t *testing.T, s realServer, volatile *regexp.Regexp, scene func(w *wire)) {
	s.need(t, "")
	t.Parallel()
	play := func(t *testing.T, r route) []string {
		w := dial(t, r, s, newPlace(t), nil)
		scene(w)
		if r == direct {
			w.close()
		} else {
			w.closeUnaltered()
		}
		for i, note := range w.notes {
			note = strings.NewReplacer(w.at.dir, "DIR", w.at.tap, "TAP").Replace(note)
			if volatile != nil {
				note = volatile.ReplaceAllString(note, "VOLATILE")
			}
			w.notes[i] = note
		}
		return w.notes
	}
	want := play(t, direct)
	for _, r := range proxied {
		t.Run(r.String(), func(t *testing.T) {
			got := play(t, r)
			if len(got) != len(want) {
				t.Fatalf("%d notes, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("through mcp-retry\n%.2000s\nwithout it\n%.2000s", got[i], want[i])
				}
			}
		})
	}
}
