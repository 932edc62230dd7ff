package jsonrpc

import (
	"bytes"
	"hash/maphash"
)

// Fingerprint returns a number that is the same for all values that have the same canonical form, see [AppendCanonical], and
// under one seed. Two values with one number may be different all the same. raw must be a part of a frame that [Parse]
// accepted. It costs a fraction of what the canonical form does: the strings, numbers and words are summed up as they come, in
// whatever objects and lists they stand.
func Fingerprint(seed maphash.Seed, raw []byte) uint64 {
	var sum uint64
	for i := 0; i < len(raw); {
		end := i + 1
		switch byteClass[raw[i]] {
		case opensString:
			if end, _ = skipString(raw, i); bytes.IndexByte(raw[i:end], '\\') < 0 {
				sum += maphash.Bytes(seed, raw[i:end])
			} else {
				sum += maphash.Bytes(seed, appendCanonicalString(nil, raw[i:end]))
			}
		case inScalar:
			for end < len(raw) && byteClass[raw[end]] == inScalar {
				end++
			}
			if token := raw[i:end]; token[0] >= 'a' {
				sum += maphash.Bytes(seed, token)
			} else {
				var room [32]byte
				token, _ = appendCanonicalNumber(room[:0], token) // nothing is appended for an exponent that has no canonical form
				sum += maphash.Bytes(seed, token)
			}
		case opens:
			sum += uint64(raw[i])
		}
		i = end
	}
	return sum
}
