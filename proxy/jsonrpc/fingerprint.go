package jsonrpc

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// Fingerprint returns a number that is the same for all values that have the same canonical form, see [AppendCanonical], and
// under one seed. Two values with one number may be different all the same. raw must be a part of a frame that [Parse]
// accepted. It costs a fraction of what the canonical form does: the strings, numbers and words are summed up as they come, each
// with the name of the member that it is the value of, wherever they stand.
func Fingerprint(seed maphash.Seed, raw []byte) uint64 {
	var sum, name uint64
	for i := 0; i < len(raw); {
		end := i + 1
		switch byteClass[raw[i]] {
		case opensString:
			end, _ = skipString(raw, i)
			token := raw[i:end]
			if bytes.IndexByte(token, '\\') >= 0 {
				token = appendCanonicalString(nil, token)
			}
			hash := maphash.Bytes(seed, token)
			if next := skipSpace(raw, end, true); next < len(raw) && raw[next] == ':' {
				name, end = bits.RotateLeft64(hash, 1), next+1
			}
			sum += hash ^ name
		case inScalar:
			for end < len(raw) && byteClass[raw[end]] == inScalar {
				end++
			}
			token := raw[i:end]
			if token[0] < 'a' {
				var room [32]byte
				token, _ = appendCanonicalNumber(room[:0], token) // nothing is appended for an exponent that has no canonical form
			}
			sum += maphash.Bytes(seed, token) ^ name
		case opens:
			sum += uint64(raw[i])
			name = 0
		case closes:
			name = 0
		default:
			if raw[i] == ',' {
				name = 0
			}
		}
		i = end
	}
	return sum
}
