package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// The types of a decoded value. The library puts the value that does not match into what it says; their words keep that short.
type (
	object map[string]any
	array  []any
	text   string
)

func (object) String() string { return "an object" }
func (array) String() string  { return "an array" }
func (text) String() string   { return "a string" }

// decodeExactly reads one JSON value. An integer of up to 64 bits is an int64 or uint64, any other number a float64.
func decodeExactly(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more follows the JSON value")
	}
	return exact(v)
}

func exact(v any) (_ any, err error) {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if v[k], err = exact(v[k]); err != nil {
				return nil, err
			}
		}
		return object(v), nil
	case []any:
		for i := range v {
			if v[i], err = exact(v[i]); err != nil {
				return nil, err
			}
		}
		return array(v), nil
	case string:
		return text(v), nil
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n, nil
		}
		n, err := v.Float64()
		if err != nil {
			return nil, errors.New("a number is out of range")
		}
		return n, nil
	}
	return v, nil
}

// untyped undoes the types, for values of the schema: those the library shall show.
func untyped(v any) any {
	switch v := v.(type) {
	case object:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = untyped(value)
		}
		return m
	case array:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = untyped(item)
		}
		return list
	case text:
		return string(v)
	}
	return v
}

// nesting returns how deep JSON text nests.
func nesting(b []byte) int {
	depth, deepest, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
