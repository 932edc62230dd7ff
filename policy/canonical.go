package policy

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// appendCanonical appends the JSON text of v in the one form that equal values share: names sorted by their bytes, no
// white space, integers exact, doubles in the shortest form that reads back (an integral one without fraction, as JCS
// has it, so 1 and 1.0 agree), bytes in base64, timestamps and durations as text.
func appendCanonical(dst []byte, v ref.Val, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case *object:
		return appendCanonicalObject(dst, v, depth)
	case *list:
		return appendCanonicalList(dst, v, depth)
	case types.String:
		return appendQuoted(dst, string(v)), nil
	case types.Int:
		return strconv.AppendInt(dst, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(dst, uint64(v), 10), nil
	case types.Double:
		return appendDouble(dst, float64(v))
	case bigNumber:
		return append(dst, v...), nil
	case types.Bool:
		return strconv.AppendBool(dst, bool(v)), nil
	case types.Null:
		return append(dst, "null"...), nil
	case types.Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v)
		return append(dst, '"'), nil
	case types.Duration:
		return appendQuoted(dst, v.Duration.String()), nil
	case types.Timestamp:
		dst = append(dst, '"')
		dst = v.Time.UTC().AppendFormat(dst, time.RFC3339Nano)
		return append(dst, '"'), nil
	case *types.Optional:
		if !v.HasValue() {
			return append(dst, "null"...), nil
		}
		return appendCanonical(dst, v.GetValue(), depth+1)
	case fielder:
		return appendCanonicalFields(dst, v, depth)
	case *types.Err:
		return dst, v
	case traits.Mapper:
		return appendCanonicalMap(dst, v, depth)
	case traits.Lister:
		return appendCanonicalItems(dst, v, depth)
	}
	return dst, fmt.Errorf("a value of type %s has no JSON form", v.Type().TypeName())
}

// appendCanonicalRaw is appendCanonical for JSON text that nothing has decoded. Numbers beyond 64 bits keep their digits.
func appendCanonicalRaw(dst, raw []byte, depth int) ([]byte, error) {
	if len(raw) == 0 {
		return dst, errMalformed
	}
	switch raw[0] {
	case '{':
		return appendCanonicalObject(dst, &object{raw: raw, depth: depth}, depth)
	case '[':
		return appendCanonicalList(dst, &list{raw: raw, depth: depth}, depth)
	case '"':
		s, ok := unquote(raw)
		if !ok {
			return dst, errMalformed
		}
		return appendQuoted(dst, s), nil
	case 't', 'f', 'n':
		return append(dst, raw...), nil
	}
	switch n := decodeNumber(raw).(type) {
	case types.Double:
		return appendDouble(dst, float64(n))
	case types.Int:
		return strconv.AppendInt(dst, int64(n), 10), nil
	}
	return append(dst, raw...), nil
}

var errMalformed = fmt.Errorf("malformed JSON")

func appendCanonicalObject(dst []byte, o *object, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if !o.index() {
		return dst, errMalformed
	}
	var few [16]int
	order := few[:0]
	for i := range o.members {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		return slices.Compare(o.nameBytes(&o.members[a]), o.nameBytes(&o.members[b]))
	})
	dst = append(dst, '{')
	var err error
	for n, i := range order {
		if n > 0 {
			dst = append(dst, ',')
		}
		m := &o.members[i]
		if m.escaped {
			dst = appendQuoted(dst, m.name)
		} else {
			dst = append(dst, o.raw[m.nameStart-1:m.nameEnd+1]...)
		}
		dst = append(dst, ':')
		if dst, err = appendCanonicalRaw(dst, o.raw[m.valueStart:m.valueEnd], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendCanonicalList(dst []byte, l *list, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if !l.index() {
		return dst, errMalformed
	}
	dst = append(dst, '[')
	var err error
	for i := range l.elements {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendCanonicalRaw(dst, l.raw[l.elements[i].start:l.elements[i].end], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendCanonicalMap(dst []byte, m traits.Mapper, depth int) ([]byte, error) {
	type entry struct {
		name  string
		value ref.Val
	}
	var entries []entry
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, err := keyText(key)
		if err != nil {
			return dst, err
		}
		entries = append(entries, entry{name, m.Get(key)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return compareNames(a.name, b.name) })
	dst = append(dst, '{')
	var err error
	for i, e := range entries {
		if i > 0 {
			if entries[i-1].name == e.name {
				return dst, fmt.Errorf("two keys of a map read %q", e.name)
			}
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, e.name), ':')
		if dst, err = appendCanonical(dst, e.value, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func appendCanonicalItems(dst []byte, l traits.Lister, depth int) ([]byte, error) {
	dst = append(dst, '[')
	size, _ := l.Size().(types.Int)
	var err error
	for i := types.Int(0); i < size; i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = appendCanonical(dst, l.Get(i), depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

func appendCanonicalFields(dst []byte, f fielder, depth int) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for i, field := range f.fields() { // the tables of fields are in the order of the manual; stable is all that matters
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendQuoted(dst, field.Name), ':')
		if dst, err = appendCanonical(dst, field.get(f), depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// keyText is the name that a key of a CEL map has in JSON.
func keyText(key ref.Val) (string, error) {
	switch k := key.(type) {
	case types.String:
		return string(k), nil
	case types.Int:
		return strconv.FormatInt(int64(k), 10), nil
	case types.Uint:
		return strconv.FormatUint(uint64(k), 10), nil
	case types.Bool:
		return strconv.FormatBool(bool(k)), nil
	case types.Double:
		text, err := appendDouble(nil, float64(k))
		return string(text), err
	}
	return "", fmt.Errorf("a map key of type %s has no JSON form", key.Type().TypeName())
}

func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("the number %v has no JSON form", f)
	}
	if f == 0 {
		return append(dst, '0'), nil // −0 equals 0
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64), nil
}

// appendQuoted appends s as a JSON string with the fewest escapes, so that a string without any is its own source text.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), "\uFFFD"...)
				i++
				start = i
			} else {
				i += size
			}
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
