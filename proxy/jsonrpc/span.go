package jsonrpc

// Span is a half-open byte range [Start, End) of a frame. The zero Span means that the thing it would point at is
// absent: no JSON value is zero bytes long.
type Span struct{ Start, End int }

// Empty reports whether s covers no byte, as the span of an absent member does.
func (s Span) Empty() bool { return s.End <= s.Start }

// Of returns the bytes of frame that s covers, without copying, or nil if s is empty or does not lie in frame.
func (s Span) Of(frame []byte) []byte {
	if s.Empty() || s.Start < 0 || s.End > len(frame) {
		return nil
	}
	return frame[s.Start:s.End:s.End]
}
