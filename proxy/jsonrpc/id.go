package jsonrpc

import "bytes"

// IntID returns the integer that an id token means, whatever its spelling, so that an id of our own making is known
// again after a peer's JSON library had its way with it: 7, 7.0, 7e0 and 70e-1 are 7, and so is the string "7" (only
// decimal digits, no leading zero). ok is false for anything else and for numbers beyond ±2^53, which such libraries
// round.
func IntID(raw []byte) (id int64, ok bool) {
	if n, plain := plainInt(raw); plain {
		return n, true
	}
	if len(raw) == 0 {
		return 0, false
	}
	if raw[0] == '"' {
		text, ok := Text(raw)
		if !ok || text == "" || digits([]byte(text), 0) != len(text) || text[0] == '0' && len(text) > 1 {
			return 0, false
		}
		raw = []byte(text)
	} else if !isID(raw) {
		return 0, false
	}
	if n, why := scanNumber(raw, 0); why != "" || n != len(raw) {
		return 0, false
	}
	d, ok := parseDecimal(raw)
	if !ok {
		return 0, false
	}
	return d.int53()
}

// plainInt is a number that is written with at most 15 digits, none in vain, and nothing else: as we write ids, and most peers.
func plainInt(raw []byte) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 15 || raw[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// CanonicalID returns a map key for a raw id token, so that two keys are equal if and only if the ids are: a number is
// taken as it is written (no id is rounded), a string in one spelling, whatever escapes it is written with. The
// number 1 and the string "1" have different keys.
func CanonicalID(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\\') < 0 {
		return string(raw)
	}
	if end, why := scanString(raw, 0); why != "" || end != len(raw) {
		return string(raw)
	}
	return string(appendCanonicalString(nil, raw))
}

// SameID reports whether two raw id tokens are the same id in the sense of [CanonicalID].
func SameID(a, b []byte) bool {
	return bytes.Equal(a, b) || CanonicalID(a) == CanonicalID(b)
}
