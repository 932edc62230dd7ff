package flaky

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Values of [Faults.Framing].
const (
	framingContentLength = "content-length"
	framingPretty        = "pretty"
)

const byteOrderMark = "\uFEFF"

// badByteMark stands for [Outcome.BadByte] in a text until the line is made.
const badByteMark = "<bad byte>"

// wire is the server's stdout, with whatever is wrong with it.
type wire struct {
	faults  *Faults
	journal *journal

	closed  atomic.Bool // not under the lock, which a writer holds while nobody reads
	buffers atomic.Bool // output is kept back until the end of input

	mu   sync.Mutex
	out  io.Writer
	held bytes.Buffer // what is kept back
}

// message writes one message in the script's framing.
func (w *wire) message(text []byte, pretty bool) {
	if pretty || w.faults.Framing == framingPretty {
		var lines bytes.Buffer
		if json.Indent(&lines, text, "", "  ") == nil {
			text = lines.Bytes()
		}
	}
	if w.faults.Framing == framingContentLength {
		w.write(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n%s", len(text), text))
		return
	}
	w.line(string(text))
}

// line writes one line, whatever it holds.
func (w *wire) line(text string) {
	var b strings.Builder
	if w.faults.BOM {
		b.WriteString(byteOrderMark)
	}
	b.WriteString(text)
	if w.faults.CRLF {
		b.WriteByte('\r')
	}
	b.WriteByte('\n')
	w.write([]byte(b.String()))
}

// write writes a message or a line, and records it.
func (w *wire) write(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed.Load() {
		return
	}
	w.journal.record(Entry{Event: EventSent, Line: strings.TrimRight(string(data[:min(len(data), ledgerCut)]), "\r\n")})
	w.put(data)
}

// Write writes bytes as they are, unrecorded. That nobody reads any more is no error: the end of input will say so.
func (w *wire) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed.Load() {
		w.put(data)
	}
	return len(data), nil
}

// put writes bytes, or keeps them back; the caller holds the lock.
func (w *wire) put(data []byte) {
	if w.faults.BufferOutput || w.buffers.Load() {
		w.held.Write(data)
		return
	}
	w.out.Write(data)
}

// release writes what was kept back.
func (w *wire) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held.Len() > 0 && !w.closed.Load() {
		w.out.Write(w.held.Bytes())
		w.held.Reset()
	}
}

// shut makes later writes go nowhere.
func (w *wire) shut() { w.closed.Store(true) }

// close ends the stream for its reader, although the server lives on.
func (w *wire) close() {
	w.shut()
	if c, ok := w.out.(io.Closer); ok {
		c.Close()
	}
}

// answerID is the id of an answer to a request with this id.
func (f *Faults) answerID(id Raw) Raw {
	text := string(id)
	number, isNumber := new(big.Int).SetString(text, 10)
	switch f.IDs {
	case IDsFloat:
		if isNumber {
			return Raw(text + ".0")
		}
	case IDsExponent:
		if isNumber {
			return Raw(text + "e0")
		}
	case IDsString:
		if isNumber {
			return Raw(strconv.Quote(text))
		}
		var word string
		if json.Unmarshal(id, &word) == nil {
			if _, ok := new(big.Int).SetString(word, 10); ok {
				return Raw(word)
			}
		}
	case IDsZero:
		return Raw("0")
	case IDsNull:
		return Raw("null")
	case IDs32Bit:
		if isNumber {
			return Raw(number.Mod(number, big.NewInt(1<<32)).String())
		}
	}
	return id
}

// flood writes n bytes without a newline, in pieces.
func flood(out io.Writer, n int) {
	piece := bytes.Repeat([]byte("x"), min(n, 64<<10))
	for ; n > 0; n -= len(piece) {
		out.Write(piece[:min(n, len(piece))])
	}
}
