package proxy

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStderrLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	tests := []struct {
		name   string
		writes []string
		want   []string
	}{
		{"lines", []string{"one\ntwo\n"}, []string{"one", "two"}},
		{"in pieces", []string{"on", "e\ntw", "o", "\n"}, []string{"one", "two"}},
		{"Windows line ends", []string{"one\r", "\ntwo\r\n"}, []string{"one", "two"}},
		{"blank lines", []string{"\n\n  \n\t\none\n"}, []string{"one"}},
		{"no end", []string{"one\ntwo"}, []string{"one", "two"}},
		{"progress by carriage return", []string{"10%\r20%\r", "30%"}, []string{"10%", "20%", "30%"}},
		{"colours", []string{"\x1b[31mred\x1b[0m\n"}, []string{"red"}},
		{"titles, and what has no end", []string{"\x1b]0;title\aa\x1b]0;no end\n\x9b2Jb\x07\n"}, []string{"a", "\uFFFD2Jb\\u0007"}},
		{"bad UTF-8", []string{"caf\xe9\n"}, []string{"caf\uFFFD"}},
		{"an endless line", []string{long, long, " end\nnext\n"}, []string{long[:maxLine] + cutMark, "next"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			l := newStderrLog(func(line string) { got = append(got, line) }, nil)
			for _, w := range tt.writes {
				if n, err := io.WriteString(l, w); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			l.end()
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %.100q, want %.100q", got, tt.want)
			}
		})
	}
}

func TestStderrTailIsTheLastLines(t *testing.T) {
	l := newStderrLog(func(string) {}, nil)
	for i := range 100 {
		fmt.Fprintln(l, i)
	}
	if got, want := l.tail(), "90\n91\n92\n93\n94\n95\n96\n97\n98\n99"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStderrPromptIsShownThoughTheLineHasNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 1)
		l := newStderrLog(func(line string) { got <- line }, nil)
		start := time.Now()
		io.WriteString(l, "password: ")
		if line := <-got; line != "password:" || time.Since(start) > 2*promptWait {
			t.Errorf("%q after %v", line, time.Since(start))
		}
	})
}

func TestStderrWithoutEndIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged, dropped, reports := 0, 0, 0
		l := newStderrLog(func(string) { logged++ }, func(n int) { dropped += n; reports++ })
		const seconds, perSecond = 60, 2000
		for range seconds {
			for i := range perSecond {
				fmt.Fprintln(l, "line", i)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if most := lineBurst + lineRate*seconds; logged > most || logged < most-lineRate {
			t.Errorf("%d lines were logged, want %d at most", logged, most)
		}
		if most := seconds/int(dropEvery/time.Second) + 1; reports > most || reports < most/2 {
			t.Errorf("there were %d reports, want %d at most", reports, most)
		}
		fmt.Fprintln(l, "the end")
		l.finish()
		if logged+dropped != seconds*perSecond+1 {
			t.Errorf("%d lines were logged and %d dropped, of %d", logged, dropped, seconds*perSecond+1)
		}
		if tail := l.tail(); !strings.HasSuffix(tail, "the end") {
			t.Errorf("the tail is %q", tail)
		}
	})
}
