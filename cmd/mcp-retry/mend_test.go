package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const faultyShop = "servers:\n  shop:\n    command: x # it\n    call_timout: \"30\"\n"

func TestMendKeepsModeAndLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(file, []byte(faultyShop), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if err := os.Symlink("real.yaml", link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	var stderr bytes.Buffer
	u := &ui{stdout: &stderr, stderr: &stderr}
	if _, err := u.mend(link, loadText(link, []byte(faultyShop)), false); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "servers:\n  shop:\n    command: x # it\n    call_timeout: 30\n" {
		t.Errorf("%s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Error(info.Mode(), err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

func TestMendSaysThatAFileCannotBeWritten(t *testing.T) {
	u := &ui{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	file := filepath.Join(t.TempDir(), "gone", "a.yaml")
	if _, err := u.mend(file, loadText(file, []byte(faultyShop)), false); err == nil || u.finish(err) != exitUsage {
		t.Error(err)
	}
}

// patched applies a unified diff to a text, as patch does.
func patched(t *testing.T, text, diff string) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	at := 0
	for _, line := range strings.SplitAfter(diff, "\n")[2:] {
		switch {
		case strings.HasPrefix(line, "@@"):
			var start, n int
			if _, err := fmt.Sscanf(line, "@@ -%d,%d ", &start, &n); err != nil {
				t.Fatal(line, err)
			}
			if n == 0 {
				start++
			}
			for ; at < start-1; at++ {
				out.WriteString(lines[at])
			}
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "-"):
			if line[1:] != lines[at] {
				t.Fatalf("line %d is %q, not %q", at+1, lines[at], line[1:])
			}
			if line[0] == ' ' {
				out.WriteString(lines[at])
			}
			at++
		case strings.HasPrefix(line, "+"):
			out.WriteString(line[1:])
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func TestTheDiffMakesTheNewTextOfTheOld(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var before, after strings.Builder
		for i := range 1 + random.IntN(40) {
			fmt.Fprintf(&before, "line %d\n", i)
			switch random.IntN(12) {
			case 0:
				fmt.Fprintf(&after, "changed %d\n", i)
			case 1:
				fmt.Fprintf(&after, "line %d\nline %d\nmore\n", i, random.IntN(40))
			case 2: // it goes
			default:
				fmt.Fprintf(&after, "line %d\n", i)
			}
		}
		var diff bytes.Buffer
		writeDiff(&diff, "a.yaml", []byte(before.String()), []byte(after.String()))
		if got := patched(t, before.String(), diff.String()); got != after.String() {
			t.Fatalf("got\n%s\nwant\n%s\nby\n%s", got, after.String(), diff.String())
		}
	}
}

func TestTheDiffOfTextsThatShareNothing(t *testing.T) {
	old, now := strings.Repeat("a\n", 3000), strings.Repeat("b\n", 3000)
	var diff bytes.Buffer
	writeDiff(&diff, "a.yaml", []byte(old), []byte(now))
	if got := patched(t, old, diff.String()); got != now {
		t.Error("the diff does not make the one of the other")
	}
	diff.Reset()
	writeDiff(&diff, "a.yaml", nil, []byte("a\n"))
	if want := "--- a.yaml\n+++ a.yaml\n@@ -0,0 +1,1 @@\n+a\n"; diff.String() != want {
		t.Errorf("%s", diff.String())
	}
}

func TestTheDiffTellsOfALastLineWithoutEnd(t *testing.T) {
	var diff bytes.Buffer
	writeDiff(&diff, "a.yaml", []byte("a\nb"), []byte("a\nc"))
	want := "--- a.yaml\n+++ a.yaml\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
	if diff.String() != want {
		t.Errorf("%s", diff.String())
	}
}
