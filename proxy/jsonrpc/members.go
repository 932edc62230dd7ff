package jsonrpc

import (
	"bytes"
	"iter"
)

// Member is one member of a JSON object.
type Member struct {
	Key   []byte // the decoded name: a part of the frame if it is written without escapes
	Pair  Span   // from the opening quote of the name to the end of the value
	Value Span   // the raw value
}

// Members iterates over the members of the object at obj, in their order, in a frame that [Parse] accepted. Spans count
// from the start of frame. It yields nothing if there is no object at obj, and stops where the bytes are not JSON.
func Members(frame []byte, obj Span) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for i := firstItem(frame, obj, '{'); i > 0; {
			m, ok := memberAt(frame, i, obj.End)
			if !ok || !yield(m) {
				return
			}
			i = nextItem(frame, m.Value.End, obj.End)
		}
	}
}

// Elements iterates over the values of the array at arr, in their order, in a frame that [Parse] accepted. It yields
// nothing if there is no array at arr, and stops where the bytes are not JSON.
func Elements(frame []byte, arr Span) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for i := firstItem(frame, arr, '['); i > 0; {
			end, ok := skipValue(frame[:arr.End], i)
			if !ok || !yield(Span{i, end}) {
				return
			}
			i = nextItem(frame, end, arr.End)
		}
	}
}

// Lookup returns the value of the first member with exactly that (decoded) name of the object at obj, in a frame that
// [Parse] accepted.
func Lookup(frame []byte, obj Span, key string) (Span, bool) {
	for i := firstItem(frame, obj, '{'); i > 0; {
		m, ok := memberAt(frame, i, obj.End)
		if !ok {
			break
		}
		if string(m.Key) == key {
			return m.Value, true
		}
		i = nextItem(frame, m.Value.End, obj.End)
	}
	return Span{}, false
}

// firstItem returns the offset of the first token in the container at s, which must open with that byte, or 0 if it is
// empty or not such a container.
func firstItem(frame []byte, s Span, open byte) int {
	raw := s.Of(frame)
	if len(raw) < 2 || raw[0] != open {
		return 0
	}
	i := skipSpace(frame, s.Start+1, true)
	if i >= s.End-1 {
		return 0
	}
	return i
}

// nextItem returns the offset of the token after the comma at or after i, or 0 if there is none before end.
func nextItem(frame []byte, i, end int) int {
	if i < end && frame[i] <= ' ' {
		i = skipSpace(frame[:end], i, true)
	}
	if i >= end || frame[i] != ',' {
		return 0
	}
	i++
	if i < end && frame[i] <= ' ' {
		i = skipSpace(frame[:end], i, true)
	}
	return i
}

// memberAt reads the member whose name opens at frame[i], and which ends before end.
func memberAt(frame []byte, i, end int) (m Member, ok bool) {
	b := frame[:end]
	if i >= end || b[i] != '"' {
		return m, false
	}
	n := i + 1
	for n < end && b[n] != '"' && b[n] != '\\' { // names are short
		n++
	}
	if n == end {
		return m, false
	}
	m.Pair.Start = i
	if b[n] == '"' {
		m.Key = b[i+1 : n : n]
		n++
	} else {
		if n, ok = skipString(b, i); !ok {
			return m, false
		}
		if _, why := scanString(b[:n], i); why != "" {
			return m, false
		}
		m.Key = decoded(b[i:n])
	}
	if n < end && b[n] <= ' ' {
		n = skipSpace(b, n, true)
	}
	if n >= end || b[n] != ':' {
		return m, false
	}
	n++
	if n < end && b[n] <= ' ' {
		n = skipSpace(b, n, true)
	}
	m.Value.Start = n
	m.Value.End, ok = skipValue(b, n)
	m.Pair.End = m.Value.End
	return m, ok
}

// skipString returns the offset after the string that opens at b[i]. It tells where a string ends, not whether it is
// valid.
func skipString(b []byte, i int) (end int, ok bool) {
	first := i + 1
	for i = first; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b), false
		}
		n += i
		// An odd number of backslashes before a quote escapes it. Counting them from the quote back, instead of
		// looking for each one from the front, leaves the work to IndexByte.
		slash := n
		for slash > first && b[slash-1] == '\\' {
			slash--
		}
		if i = n + 1; (n-slash)%2 == 0 {
			return i, true
		}
	}
}

// skipValue returns the offset after the value that begins at b[i], in what is already known to be JSON: it only
// balances brackets. ok is false if the value does not end in b.
func skipValue(b []byte, i int) (end int, ok bool) {
	if i >= len(b) {
		return i, false
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
	default:
		end = i
		for end < len(b) && byteClass[b[end]] == inScalar {
			end++
		}
		return end, end > i
	}
	for level := 0; i < len(b); {
		switch byteClass[b[i]] {
		case opensString:
			if i, ok = skipString(b, i); !ok {
				return i, false
			}
			continue
		case opens:
			level++
		case closes:
			level--
			if level == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return i, false
}

// What a byte outside strings is.
const (
	other = iota
	opensString
	opens
	closes
	inScalar // part of a number, true, false or null
)

var byteClass = func() (t [256]uint8) {
	for class, set := range []string{opensString: `"`, opens: `{[`, closes: `}]`, inScalar: "0123456789+-.eEtrufalsn"} {
		for _, c := range []byte(set) {
			t[c] = uint8(class)
		}
	}
	return t
}()
