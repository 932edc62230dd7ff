package jsonrpc

import (
	"bytes"
	"fmt"
	"io"
)

// Sizes of the reader's buffer, in bytes.
const (
	baseBuffer = 64 << 10  // what a reader starts with and falls back to: the default capacity of a pipe
	keptBuffer = 256 << 10 // the largest buffer that is kept; larger ones go to the caller with their frame
	edgeBytes  = 4 << 10   // how much of either end of an over-long line is kept
	growth     = 4         // factor by which a buffer grows when a line does not fit
	trimBytes  = 4         // a byte order mark and a carriage return, which do not count against the limit
	likelyMost = 4 << 20   // up to this size a frame is expected to be no larger than the large one before it
)

var byteOrderMark = []byte("\xEF\xBB\xBF")

// Reader splits a byte stream into frames, one a line. It is not safe for concurrent use.
type Reader struct {
	src io.Reader
	max int64

	buf     []byte
	start   int // buf[start:end] is read but not handed out
	end     int
	scanned int // bytes of it that are known to hold no newline

	spare []byte // the small buffer, while a larger one is filled
	large int    // size of the last frame that went to the caller with its buffer, if that was no more than likelyMost

	long *TooLong // the over-long line that is being dropped, or nil
	err  error    // what src ended with
}

// NewReader returns a reader of the lines of r. Lines of more than limit bytes are dropped and reported; limit 0 means
// that there is none.
func NewReader(r io.Reader, limit int64) *Reader {
	return &Reader{src: r, max: limit}
}

// TooLong is the error for a line that is over the reader's limit.
type TooLong struct {
	Size int64 // bytes of the line, without its line end
	Max  int64 // the limit

	// Head and Tail are the first and the last bytes of the line, at most 4 KiB each, for [LooseID].
	Head, Tail []byte
}

// Error implements error.
func (e *TooLong) Error() string {
	return fmt.Sprintf("message of %d bytes is over the limit of %d bytes", e.Size, e.Max)
}

// Next returns the next frame without its line end. A byte order mark before it and carriage returns behind it are
// stripped, blank lines are skipped, and what follows the last newline counts as a line too.
//
// The frame is valid until the following call, unless owned is true: then it is the caller's, and the reader never
// touches it again. Small frames are never owned, frames over 256 KiB always are.
//
// Next returns a [*TooLong] error when an over-long line has ended, and then goes on with the following line; any other
// error is final, io.EOF for the end of the stream. Bytes before a read error other than io.EOF that make no complete
// line are lost: nobody knows whether they are a whole message.
func (r *Reader) Next() (frame []byte, owned bool, err error) {
	for {
		if n := bytes.IndexByte(r.buf[r.start+r.scanned:r.end], '\n'); n >= 0 {
			n += r.scanned
			line := r.buf[r.start : r.start+n]
			r.start += n + 1
			r.scanned = 0
			if frame, owned, err = r.take(line); frame != nil || err != nil {
				return frame, owned, err
			}
			continue
		}
		r.scanned = r.end - r.start
		if r.err != nil {
			return r.last()
		}
		r.makeRoom()
		r.read()
	}
}

// last returns what is left when the source has ended.
func (r *Reader) last() (frame []byte, owned bool, err error) {
	line := r.buf[r.start:r.end]
	r.start, r.end, r.scanned = 0, 0, 0
	if r.err == io.EOF {
		if frame, owned, err = r.take(line); frame != nil || err != nil {
			return frame, owned, err
		}
	}
	r.buf, r.long = nil, nil
	return nil, false, r.err
}

// take turns a complete line, which r.start is already past, into a frame. It returns neither frame nor error if the
// line is blank.
func (r *Reader) take(line []byte) (frame []byte, owned bool, err error) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if r.long != nil {
		e := r.long
		r.long = nil
		e.Size += int64(len(line))
		e.Tail = bytes.Clone(line[max(0, len(line)-edgeBytes):])
		return nil, false, e
	}
	line = bytes.TrimPrefix(line, byteOrderMark)
	if r.max > 0 && int64(len(line)) > r.max {
		return nil, false, &TooLong{
			Size: int64(len(line)),
			Max:  r.max,
			Head: bytes.Clone(line[:min(len(line), edgeBytes)]),
			Tail: bytes.Clone(line[max(0, len(line)-edgeBytes):]),
		}
	}
	// Text mode on Windows may turn a carriage return and a newline into two of the former.
	frame = bytes.TrimRight(line, "\r")
	if skipSpace(frame, 0, true) == len(frame) {
		return nil, false, nil
	}
	if len(frame) <= keptBuffer {
		return frame[:len(frame):len(frame)], false, nil // what follows is not to be appended over
	}
	rest := r.buf[r.start:r.end]
	if len(rest) > len(frame) {
		// Moving the rest for every frame would be quadratic in a source that fills the buffer at each read.
		return bytes.Clone(frame), true, nil
	}
	if r.large = 0; len(line) <= likelyMost {
		r.large = len(line)
	}
	if r.buf = r.spare; len(r.buf) < len(rest) || len(r.buf) == 0 {
		r.buf = make([]byte, max(baseBuffer, len(rest)))
	}
	r.spare = nil
	r.start, r.end = 0, copy(r.buf, rest)
	return frame, true, nil
}

// makeRoom sees to it that there is room to read into, and begins to drop the line if it is over the limit.
func (r *Reader) makeRoom() {
	unread := r.end - r.start
	switch {
	case unread == 0:
		r.start, r.end = 0, 0
		if r.buf == nil || len(r.buf) > keptBuffer {
			r.buf = make([]byte, baseBuffer)
		}
		return
	case r.long != nil:
		if r.end == len(r.buf) {
			r.drop(r.buf)
		}
		return
	case r.max > 0 && int64(unread) > max(r.max, edgeBytes)+trimBytes:
		line := bytes.TrimPrefix(r.buf[r.start:r.end], byteOrderMark)
		r.start = r.end - len(line)
		r.long = &TooLong{Max: r.max, Head: bytes.Clone(line[:min(len(line), edgeBytes)])}
		buf := r.buf
		if len(buf) > keptBuffer {
			buf = make([]byte, baseBuffer)
		}
		r.drop(buf)
		return
	}
	free := len(r.buf) - r.end
	if free > 0 && (free >= len(r.buf)/4 || r.start < unread) {
		return
	}
	if r.start > 0 {
		// Either as much was handed out since the last move as is moved now, or the buffer was filled since then: so
		// no byte is moved more than twice.
		r.start, r.end = 0, copy(r.buf, r.buf[r.start:r.end])
		return
	}
	size := len(r.buf) * growth
	if r.large > len(r.buf) {
		size = r.large + baseBuffer
	}
	if r.max > 0 && int64(size) > r.max/2 {
		size = int(r.max + baseBuffer)
	}
	// Pages that are never written to cost no memory, so a large factor costs less than the garbage of many copies.
	buf := make([]byte, size)
	if len(r.buf) == baseBuffer {
		r.spare = r.buf
	}
	r.start, r.end = 0, copy(buf, r.buf[r.start:r.end])
	r.buf = buf
}

// drop forgets all but the last bytes of the line that is being dropped, and moves those to buf.
func (r *Reader) drop(buf []byte) {
	line := r.buf[r.start:r.end]
	kept := line[max(0, len(line)-edgeBytes):]
	r.long.Size += int64(len(line) - len(kept))
	r.start, r.end = 0, copy(buf, kept)
	r.buf = buf
	r.scanned = r.end
}

// read reads once, and again only as long as the source returns nothing at all.
func (r *Reader) read() {
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
