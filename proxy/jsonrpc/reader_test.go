package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// chunks reads its elements one by one and counts the reads.
type chunks struct {
	left  []string
	reads int
}

func (c *chunks) Read(p []byte) (int, error) {
	c.reads++
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.left[0])
	if c.left[0] = c.left[0][n:]; c.left[0] == "" {
		c.left = c.left[1:]
	}
	return n, nil
}

// tooLong stands for a line of that size over the limit among the frames that readAll returns.
func tooLong(size int64) string { return fmt.Sprintf("too long: %d", size) }

// readAll returns all frames of r and checks the promises about ownership: it overwrites frames it does not own, and looks at
// the others again at the end.
func readAll(t testing.TB, r *Reader) []string {
	t.Helper()
	var items []string
	owned := map[int][]byte{}
	for {
		frame, mine, err := r.Next()
		var long *TooLong
		switch {
		case errors.As(err, &long):
			items = append(items, tooLong(long.Size))
		case err != nil:
			for i, frame := range owned {
				if string(frame) != items[i] {
					t.Errorf("frame %d of %d bytes changed after it was given away", i, len(frame))
				}
			}
			if err != io.EOF {
				t.Errorf("Next: %v", err)
			}
			if _, _, again := r.Next(); again != err {
				t.Errorf("Next after %v: %v", err, again)
			}
			return items
		default:
			items = append(items, string(frame))
			if mine {
				owned[len(items)-1] = frame
			} else {
				for i := range frame {
					frame[i] = '!'
				}
			}
		}
	}
}

func TestReaderSplitsLines(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "{}\n[1]\n", []string{"{}", "[1]"}},
		{"no newline at the end", "{}\n[1]", []string{"{}", "[1]"}},
		{"blank lines", "\n\n{}\n \t\n\r\n\n[1]\n \n", []string{"{}", "[1]"}},
		{"blank at the end", "{}\n  ", []string{"{}"}},
		{"white space stays", " {} \n", []string{" {} "}},
		{"carriage return inside", "a\rb\n", []string{"a\rb"}},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"at once":       func(r io.Reader) io.Reader { return r },
			"byte by byte":  iotest.OneByteReader,
			"end with data": iotest.DataErrReader,
			"by halves":     iotest.HalfReader,
		} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				if got := readAll(t, NewReader(wrap(strings.NewReader(tt.in)), 0)); !slices.Equal(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	}
}

func TestReaderServesManyFramesFromOneRead(t *testing.T) {
	src := &chunks{left: []string{"1\n2\n3\n", "4", "\n"}}
	r := NewReader(src, 0)
	for i, reads := range []int{1, 1, 1, 3} {
		frame, owned, err := r.Next()
		if want := string(rune('1' + i)); err != nil || owned || string(frame) != want {
			t.Fatalf("frame %s: %q, %v, %v", want, frame, owned, err)
		}
		if src.reads != reads {
			t.Errorf("frame %d took %d reads, want %d", i+1, src.reads, reads)
		}
	}
}

func TestReaderFramesCanBeAppendedTo(t *testing.T) {
	r := NewReader(strings.NewReader("1\n2\n"), 0)
	first, _, _ := r.Next()
	_ = append(first, "xyz"...)
	if second, _, err := r.Next(); string(second) != "2" || err != nil {
		t.Errorf("second frame: %q, %v", second, err)
	}
}

func TestReaderPassesReadErrorsOn(t *testing.T) {
	broken := errors.New("broken pipe")
	r := NewReader(io.MultiReader(strings.NewReader("whole\nhalf a li"), iotest.ErrReader(broken)), 0)
	if frame, _, err := r.Next(); string(frame) != "whole" || err != nil {
		t.Fatalf("first: %q, %v", frame, err)
	}
	for range 2 {
		if frame, _, err := r.Next(); frame != nil || err != broken {
			t.Errorf("then: %q, %v", frame, err)
		}
	}
	silent := readerFunc(func([]byte) (int, error) { return 0, nil })
	if _, _, err := NewReader(silent, 0).Next(); err != io.ErrNoProgress {
		t.Errorf("a source that never returns anything: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestReaderDoesNotAllocateForSmallFrames(t *testing.T) {
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	r := NewReader(readerFunc(func(p []byte) (int, error) { return copy(p, line), nil }), 1<<20)
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a frame, want 0", n)
	}
}

func TestB01LinesOfAnyLength(t *testing.T) {
	var in strings.Builder
	var want []string
	for _, n := range []int{
		65535, 65536, 65537, 1 << 20, 5 << 20, keptBuffer - 1, keptBuffer, keptBuffer + 1, 300_000, 300_000, 1 << 20, 100, 9 << 20, 50_000, 200_000,
	} {
		for _, size := range []int{n, 2} {
			line := strings.Repeat("0123456789abcdef", size/16+1)[:size]
			in.WriteString(line + "\n")
			want = append(want, line)
		}
	}
	for name, src := range map[string]io.Reader{
		"from memory":  strings.NewReader(in.String()),
		"from a pipe":  chunked(in.String(), 65536),
		"in sips":      chunked(in.String(), 997),
		"byte by byte": iotest.OneByteReader(strings.NewReader(in.String())),
	} {
		t.Run(name, func(t *testing.T) {
			if got := readAll(t, NewReader(src, 64<<20)); !slices.Equal(got, want) {
				t.Errorf("%d frames differ from the %d written", len(got), len(want))
			}
		})
	}
}

// chunked returns a source that gives at most n bytes at a time.
func chunked(s string, n int) io.Reader {
	src := strings.NewReader(s)
	return readerFunc(func(p []byte) (int, error) { return src.Read(p[:min(n, len(p))]) })
}

func TestReaderGivesLargeFramesAway(t *testing.T) {
	large := strings.Repeat("x", keptBuffer+1)
	in := "a\n" + large + "\nb\n" + large + "\n" + large + "\nc\n"
	for _, size := range []int{100, 1 << 16, len(in)} {
		r := NewReader(chunked(in, size), 0)
		for i, want := range []string{"a", large, "b", large, large, "c"} {
			frame, owned, err := r.Next()
			if err != nil || string(frame) != want || owned != (want == large) {
				t.Fatalf("frame %d: %d bytes, owned %v, %v", i, len(frame), owned, err)
			}
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	}
}

func TestReaderFallsBackToASmallBuffer(t *testing.T) {
	src := &chunks{left: []string{strings.Repeat("x", 3<<20), "\n", "a\n", "b\n"}}
	r := NewReader(src, 0)
	for range 3 {
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.buf) != baseBuffer {
		t.Errorf("the buffer has %d bytes, want %d", len(r.buf), baseBuffer)
	}
}

func TestB03LinesOverTheLimit(t *testing.T) {
	const limit = 1 << 20
	fits, over := strings.Repeat("f", limit), strings.Repeat("o", limit+1)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"at the limit", fits + "\n", []string{fits}},
		{"at the limit, line end apart", "\xEF\xBB\xBF" + fits + "\r\n", []string{fits}},
		{"at the limit, no newline", fits, []string{fits}},
		{"one over", over + "\nnext\n", []string{tooLong(limit + 1), "next"}},
		{"one over, line end apart", "\xEF\xBB\xBF" + over + "\r\nnext", []string{tooLong(limit + 1), "next"}},
		{"one over, no newline", "a\n" + over, []string{"a", tooLong(limit + 1)}},
		{"far over", strings.Repeat(over, 4) + "\r\nnext\n" + over + "\n" + fits, []string{
			tooLong(4 * (limit + 1)), "next", tooLong(limit + 1), fits}},
	} {
		for _, size := range []int{1, 1000, 1 << 16, 1 << 30} {
			if got := readAll(t, NewReader(chunked(tt.in, size), limit)); !slices.Equal(got, tt.want) {
				t.Errorf("%s, read by %d: got %.100q, want %.100q", tt.name, size, got, tt.want)
			}
		}
	}
}

func TestTooLongKeepsBothEnds(t *testing.T) {
	line := `{"jsonrpc":"2.0","id":5,"result":"` + strings.Repeat("0123456789", 100_000) + `"}`
	for _, limit := range []int64{10, 5000, 100_000, 1 << 19} {
		for _, size := range []int{1, 777, 1 << 16, 1 << 30} {
			_, _, err := NewReader(chunked(line+"\r\n", size), limit).Next()
			var long *TooLong
			if !errors.As(err, &long) {
				t.Fatalf("limit %d: %v", limit, err)
			}
			if long.Size != int64(len(line)) || long.Max != limit || string(long.Head) != line[:edgeBytes] || string(long.Tail) != line[len(line)-edgeBytes:] {
				t.Errorf("limit %d, read by %d: size %d of %d, head %.20q… (%d), tail …%q (%d)", limit, size, long.Size, len(line),
					long.Head, len(long.Head), long.Tail[max(0, len(long.Tail)-20):], len(long.Tail))
			}
			if id, response, ok := LooseID(long.Head, long.Tail); !ok || string(id) != "5" || !response {
				t.Errorf("limit %d: id %s, %v, %v", limit, id, response, ok)
			}
			if !strings.Contains(err.Error(), "1000036 bytes") {
				t.Errorf("%q does not name the size", err)
			}
		}
	}
	_, _, err := NewReader(strings.NewReader("12345\n"), 4).Next()
	if long := err.(*TooLong); string(long.Head) != "12345" || string(long.Tail) != "12345" {
		t.Errorf("short line: head %q, tail %q", long.Head, long.Tail)
	}
}

// endless yields n bytes without a newline, at most 64 KiB at a time as a pipe does.
func endless(n int) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		k := min(len(p), n, 64<<10)
		for i := range p[:k] {
			p[i] = 'x'
		}
		if n -= k; k == 0 {
			return 0, io.EOF
		}
		return k, nil
	})
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

func TestB05AFloodWithoutNewlineTakesBoundedMemory(t *testing.T) {
	const limit, flood = 4 << 20, 200 << 20
	r := NewReader(io.MultiReader(endless(flood), strings.NewReader("\nnext\n")), limit)
	var err error
	if n := allocated(func() { _, _, err = r.Next() }); n > 2*limit {
		t.Errorf("%d bytes allocated with a limit of %d", n, limit)
	}
	if long, ok := err.(*TooLong); !ok || long.Size != flood {
		t.Fatalf("flood: %v", err)
	}
	if frame, _, err := r.Next(); string(frame) != "next" || err != nil {
		t.Errorf("after the flood: %q, %v", frame, err)
	}
}

func TestReaderMemoryOfOneLargeFrame(t *testing.T) {
	const size = 50 << 20
	r := NewReader(io.MultiReader(endless(size), strings.NewReader("\n")), 64<<20)
	var frame []byte
	// The buffers of all sizes up to the limit, whether their pages are ever touched or not.
	if n := allocated(func() { frame, _, _ = r.Next() }); n > 2*size {
		t.Errorf("%d bytes allocated for a frame of %d", n, size)
	}
	if len(frame) != size {
		t.Errorf("frame of %d bytes, want %d", len(frame), size)
	}
}

func TestB07CRLFLineEnds(t *testing.T) {
	in := "{\"a\":1}\r\n\r\n{\"b\":2}\r\n\r\r\n{\"c\":3}\r\r\n{\"d\":4}\r"
	want := []string{`{"a":1}`, `{"b":2}`, `{"c":3}`, `{"d":4}`}
	for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
		if got := readAll(t, NewReader(src, 0)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestB09ByteOrderMarks(t *testing.T) {
	const bom = "\xEF\xBB\xBF"
	in := bom + "{\"a\":1}\n{\"b\":\"" + bom + "\"}\n" + bom + "\n" + bom + "\r\n" + bom + "{\"c\":3}"
	want := []string{`{"a":1}`, `{"b":"` + bom + `"}`, `{"c":3}`}
	for _, src := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
		if got := readAll(t, NewReader(src, 0)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestB12TheReaderGoesOnAfterABadLine(t *testing.T) {
	r := NewReader(strings.NewReader("\xFF\xFE\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"), 0)
	var m Message
	frame, _, err := r.Next()
	if err != nil || Parse(frame, &m) == nil {
		t.Fatalf("bad line: %q, %v", frame, err)
	}
	if frame, _, err = r.Next(); err != nil || Parse(frame, &m) != nil || string(m.Method) != "ping" {
		t.Errorf("ping: %q, %v", frame, err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{}\n[1]\r\n\n x"), uint16(3), uint16(0))
	f.Add([]byte("\xEF\xBB\xBFa\r\r\n\xEF\xBB\xBF\n*\n*b"), uint16(1), uint16(5))
	f.Add([]byte("**\n*\n\n*x*y\na\n******"), uint16(40000), uint16(30000))
	f.Fuzz(func(t *testing.T, in []byte, chunk, limit uint16) {
		// A star stands for as many bytes as it takes to reach the larger buffers.
		if n := bytes.Count(in, []byte{'*'}); n > 40 {
			return
		}
		in = bytes.ReplaceAll(in, []byte{'*'}, bytes.Repeat([]byte{'s'}, 50_000))
		limits := int64(limit) * 8
		var want []string
		for line := range bytes.SplitSeq(in, []byte{'\n'}) {
			line = bytes.TrimPrefix(bytes.TrimSuffix(line, []byte("\r")), byteOrderMark)
			switch {
			case limit > 0 && int64(len(line)) > limits:
				want = append(want, tooLong(int64(len(line))))
			case len(bytes.Trim(line, " \t\r")) > 0:
				want = append(want, string(bytes.TrimRight(line, "\r")))
			}
		}
		sources := map[string]io.Reader{
			"at once":   bytes.NewReader(in),
			"by chunks": chunked(string(in), int(chunk)+1),
		}
		if len(in) < 1000 {
			sources["byte by byte"] = iotest.OneByteReader(bytes.NewReader(in))
		}
		for name, src := range sources {
			if got := readAll(t, NewReader(src, limits)); !slices.Equal(got, want) {
				t.Errorf("%.200q, limit %d, %s (%d): got %.200q, want %.200q", in, limits, name, chunk, got, want)
			}
		}
	})
}

// A source of large frames, one after the other, costs no more memory for each than the frame takes.
func TestReaderExpectsALargeFrameAfterALargeFrame(t *testing.T) {
	frame := strings.Repeat("x", 1<<20)
	r := NewReader(chunked(strings.Repeat(frame+"\n", 4), 64<<10), 0)
	for n := range 4 {
		got, owned, err := r.Next()
		if err != nil || !owned || len(got) != len(frame) {
			t.Fatalf("frame %d: %d bytes, owned %v, %v", n, len(got), owned, err)
		}
		if n > 0 && cap(got) > len(frame)+baseBuffer {
			t.Errorf("frame %d takes %d bytes for %d", n, cap(got), len(frame))
		}
	}
}
