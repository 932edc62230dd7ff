package jsonrpc

import (
	"io"
	"strconv"
	"strings"
	"testing"
)

// call returns a tools/call of about n bytes that are mostly one string.
func call(n int) []byte {
	head, tail := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"/tmp/x","content":"`, `"}}}`
	line := `func main() { fmt.Println(\"hello, world\") } // a line of source code, as agents write it\n`
	return []byte(head + strings.Repeat(line, max(0, n-len(head)-len(tail))/len(line)) + tail)
}

// records returns a result of about n bytes that are mostly small members.
func records(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"rows":[`)
	for i := 0; b.Len() < n-60; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"id":` + strconv.Itoa(i*7919) + `,"name":"row ` + strconv.Itoa(i) + `","ok":true,"score":0.25}`)
	}
	b.WriteString(`]}}}`)
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	for _, bb := range []struct {
		name  string
		frame []byte
	}{
		{"64B", []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"n":1}}`)},
		{"4KiB/text", call(4 << 10)},
		{"64KiB/text", call(64 << 10)},
		{"64KiB/records", records(64 << 10)},
		{"64KiB/non-ASCII", []byte(`{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("Größe 日本語 ", 3300) + `"}`)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var m Message
			b.SetBytes(int64(len(bb.frame)))
			b.ReportAllocs()
			for b.Loop() {
				if err := Parse(bb.frame, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMembers(b *testing.B) {
	for name, frame := range map[string][]byte{"4KiB/text": call(4 << 10), "4KiB/records": records(4 << 10)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				for m := range Members(frame, Span{0, len(frame)}) {
					_ = m.Value
				}
			}
		})
	}
}

func BenchmarkAppendCanonical(b *testing.B) {
	for name, frame := range map[string][]byte{
		"small":        []byte(`{"path":"/tmp/x","lines":[1,2,30],"mode":{"write":true,"append":false}}`),
		"4KiB/text":    call(4 << 10),
		"4KiB/records": records(4 << 10),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = AppendCanonical(dst[:0], frame)
			}
		})
	}
}

func BenchmarkIntID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		IntID([]byte("123456"))
	}
}

// repeated is an endless stream of one line that comes in reads of at most 64 KiB.
type repeated struct {
	line []byte
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for p = p[:min(len(p), 64<<10)]; n < len(p); {
		k := copy(p[n:], r.line[r.at:])
		n += k
		r.at = (r.at + k) % len(r.line)
	}
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			r := NewReader(&repeated{line: []byte(strings.Repeat("x", size-1) + "\n")}, 64<<20)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("one frame a read", func(b *testing.B) {
		line := []byte(strings.Repeat("x", 63) + "\n")
		r := NewReader(readerFunc(func(p []byte) (int, error) { return copy(p, line), nil }), 64<<20)
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := r.Next(); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
	})
}
