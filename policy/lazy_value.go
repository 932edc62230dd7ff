package policy

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

var errConvert = errors.New("this value has no form outside CEL")

// decode makes a CEL value of one JSON value without white space around it. Objects and arrays are not looked into. A
// value that CEL cannot hold is an error value: it fails the expression that reads it, and no other.
func decode(b []byte, depth int) ref.Val {
	if len(b) == 0 {
		return malformedErr()
	}
	switch b[0] {
	case '{', '[':
		if depth > maxDepth {
			return types.NewErr("nested deeper than %d levels", maxDepth)
		}
		if b[0] == '{' {
			return &object{raw: b, depth: depth}
		}
		return &list{raw: b, depth: depth}
	case '"':
		s, ok := unquote(b)
		if !ok {
			return malformedErr()
		}
		return types.String(s)
	case 't':
		if string(b) == "true" {
			return types.True
		}
	case 'f':
		if string(b) == "false" {
			return types.False
		}
	case 'n':
		if string(b) == "null" {
			return types.NullValue
		}
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return decodeNumber(b)
	}
	return malformedErr()
}

// decodeNumber keeps integers exact: int where it fits, else uint, else a [bigNumber]. A number with a fraction or an
// exponent is a double.
func decodeNumber(b []byte) ref.Val {
	if bytes.IndexByte(b, '.') < 0 && bytes.IndexByte(b, 'e') < 0 && bytes.IndexByte(b, 'E') < 0 {
		if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return types.Int(n)
		}
		if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
			return types.Uint(n)
		}
		return bigNumber(b)
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsInf(f, 0) {
		return bigNumber(b)
	}
	return types.Double(f)
}

// short cuts a text from a call for use in a message.
func short(s string) string { return shorten(s, 40) }

// shorten cuts s at a character, at most limit bytes from its start.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
