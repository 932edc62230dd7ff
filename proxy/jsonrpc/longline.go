package jsonrpc

import "bytes"

// LooseID finds the id of an over-long frame from its first and last bytes (see [TooLong]), so that the one request
// that it belongs to can be told. It looks at those top-level members that can be told with certainty, if the line is
// JSON at all: at the head for as long as members are complete, at the tail back to the first value that is not a
// string, number or literal. It never looks inside other values.
//
// id is a raw number or string, a part of head or tail; isResponse reports a result or an error with no method in
// sight. ok is false if there is any doubt about the id.
func LooseID(head, tail []byte) (id []byte, isResponse, ok bool) {
	var seen looseEnvelope
	if !seen.forward(head) {
		return nil, false, false
	}
	seen.backward(tail)
	isResponse = seen.members&(hasResult|hasError) != 0 && seen.members&hasMethod == 0
	if seen.doubt || !isID(seen.id) {
		return nil, isResponse, false
	}
	return seen.id, isResponse, true
}

// looseEnvelope is what is known of an envelope of which only the ends are.
type looseEnvelope struct {
	members uint
	id      []byte
	doubt   bool // the id is cut off, or there are two
}

// note takes up a member; value is nil if it is not complete.
func (l *looseEnvelope) note(name, value []byte) {
	bit := envelope(decoded(name))
	l.members |= bit
	if bit != hasID {
		return
	}
	// Head and tail may overlap, so the same id may well be seen twice.
	if value == nil || l.id != nil && !bytes.Equal(l.id, value) {
		l.doubt = true
	}
	l.id = value
}

// forward reads members from the start of a frame. It returns false if that is no object.
func (l *looseEnvelope) forward(b []byte) bool {
	i := skipSpace(b, 0, false)
	if i == len(b) || b[i] != '{' {
		return false
	}
	for i = skipSpace(b, i+1, false); i > 0 && i < len(b) && b[i] == '"'; {
		end, why := scanString(b, i)
		if why != "" {
			break
		}
		name := b[i:end]
		if i = skipSpace(b, end, false); i == len(b) || b[i] != ':' {
			break
		}
		start, end, why := scanValue(b, i+1, 1, false)
		if why != "" || end == len(b) { // a number might go on
			l.note(name, nil)
			break
		}
		l.note(name, b[start:end])
		i = nextItem(b, end, len(b))
	}
	return true
}

// backward reads members from the end of a frame: the bracket that ends it closes the envelope, what stands before a
// closing bracket or a comma is the value of a member, and so on. In JSON, each step leaves only one reading.
func (l *looseEnvelope) backward(b []byte) {
	end := beforeSpace(b, 0, len(b))
	for closer := byte('}'); end > 0 && b[end-1] == closer; closer = ',' {
		end = beforeSpace(b, 0, end-1)
		value := scalarBefore(b, end)
		colon := beforeSpace(b, 0, value)
		if value < 0 || colon == 0 || b[colon-1] != ':' {
			return
		}
		nameEnd := beforeSpace(b, 0, colon-1)
		name := stringBefore(b, nameEnd)
		before := beforeSpace(b, 0, name)
		if name < 0 || before == 0 || b[before-1] != ',' && b[before-1] != '{' {
			return
		}
		l.note(b[name:nameEnd], b[value:end])
		end = before
	}
}

// scalarBefore returns the offset of the string, number or literal that ends at b[:end], or -1 if there is none or it
// begins before b.
func scalarBefore(b []byte, end int) int {
	if end > 0 && b[end-1] == '"' {
		return stringBefore(b, end)
	}
	start := end
	for start > 0 && byteClass[b[start-1]] == inScalar {
		start--
	}
	if start == 0 {
		return -1
	}
	if _, n, why := scanValue(b[:end], start, 1, false); why != "" || n != end {
		return -1
	}
	return start
}

// stringBefore returns the offset of the string that ends at b[:end], or -1 if there is none or it begins before b. The
// only quote inside a string is an escaped one, so the nearest that is not escaped opens it.
func stringBefore(b []byte, end int) int {
	if end == 0 || b[end-1] != '"' {
		return -1
	}
	for i := end - 1; ; {
		i = bytes.LastIndexByte(b[:i], '"')
		if i <= 0 {
			return -1
		}
		first := i
		for first > 0 && b[first-1] == '\\' {
			first--
		}
		if first == 0 {
			return -1
		}
		if (i-first)%2 == 0 {
			if n, why := scanString(b, i); why != "" || n != end {
				return -1
			}
			return i
		}
	}
}
