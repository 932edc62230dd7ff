package jsonrpc

// Edit is one change to a frame: the bytes at At are replaced by New. An At with Start == End inserts New before the
// byte at that offset (Span{0, 0} is the start of the frame); an empty New deletes.
type Edit struct {
	At  Span
	New []byte
}

// Splice appends frame, changed by the edits, to dst and returns the extended slice. Edits must be in ascending order
// and must not overlap. All other bytes stay as they are.
func Splice(dst, frame []byte, edits ...Edit) []byte {
	done := 0
	for _, e := range edits {
		dst = append(dst, frame[done:e.At.Start]...)
		dst = append(dst, e.New...)
		done = e.At.End
	}
	return append(dst, frame[done:]...)
}

// Pieces appends the edited frame to dst as consecutive pieces, none of them empty, without copying a byte: they are
// parts of frame and the New slices. It takes edits as [Splice] does.
func Pieces(dst [][]byte, frame []byte, edits ...Edit) [][]byte {
	done := 0
	for _, e := range edits {
		dst = appendPiece(dst, frame[done:e.At.Start])
		dst = appendPiece(dst, e.New)
		done = e.At.End
	}
	return appendPiece(dst, frame[done:])
}

func appendPiece(dst [][]byte, piece []byte) [][]byte {
	if len(piece) == 0 {
		return dst
	}
	return append(dst, piece)
}

// RemoveMember returns the edit that cuts m out of the object at obj, together with one comma, so that what remains is
// valid. m must come from [Members] of that object. Two removals from one object may share a comma and then overlap:
// apply one, and look for the next in the result.
func RemoveMember(frame []byte, obj Span, m Member) Edit {
	cut := m.Pair
	if end := skipSpace(frame[:obj.End], cut.End, true); end < obj.End && frame[end] == ',' {
		cut.End = skipSpace(frame[:obj.End], end+1, true)
		return Edit{At: cut}
	}
	if start := beforeSpace(frame, obj.Start, cut.Start); start > obj.Start && frame[start-1] == ',' {
		cut.Start = start - 1
	}
	return Edit{At: cut}
}

// InsertMember returns the edit that adds a member with that name and raw value at the end of the object at obj. It
// does not look whether the object has such a member already.
func InsertMember(frame []byte, obj Span, key string, value []byte) Edit {
	at := beforeSpace(frame, obj.Start, obj.End-1)
	text := make([]byte, 0, len(key)+len(value)+4)
	if frame[at-1] != '{' {
		text = append(text, ',')
	}
	text = AppendQuoted(text, key)
	text = append(text, ':')
	text = append(text, value...)
	return Edit{At: Span{at, at}, New: text}
}

// beforeSpace returns the offset after the last byte of frame[start:end] that is no white space.
func beforeSpace(frame []byte, start, end int) int {
	for end > start {
		switch frame[end-1] {
		case ' ', '\t', '\n', '\r':
			end--
		default:
			return end
		}
	}
	return end
}
