package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// AppendCanonical appends the canonical form of the JSON value raw to dst and returns the extended slice. Two values
// have the same canonical form if and only if they are equal as JSON values:
//
//   - members are sorted by their decoded names, byte by byte; there is no white space;
//   - strings carry only the escapes that they need (and those of lone surrogates, which UTF-8 cannot express);
//   - numbers are equal if they are the same decimal number, however large or precise: 1, 1.0 and 10e-1 are all 1, -0
//     is 0, and no two integers are rounded into one.
//
// It returns an error, and dst as it was, if raw is not one valid JSON value, if an object repeats a name (peers differ
// in which one counts), if arrays and objects nest deeper than 256, or if an exponent has more than 18 digits.
func AppendCanonical(dst, raw []byte) ([]byte, error) {
	start, end, why := scanValue(raw, 0, 0, true)
	if why == "" {
		if end = skipSpace(raw, end, true); end != len(raw) {
			end, why = unexpected(raw, end)
		}
	}
	if why != "" {
		return dst, syntaxError(raw, end, why)
	}
	c := canonicalizers.Get().(*canonicalizer)
	defer c.done()
	c.raw, c.out = raw, dst
	if _, err := c.value(start, 0); err != nil {
		return dst, err
	}
	return c.out, nil
}

// canonicalizers are used again for the room that they have for members.
var canonicalizers = sync.Pool{New: func() any { return &canonicalizer{members: make([]canonicalMember, 0, 8)} }}

// mostSpareMembers bounds the room that is kept for the next value.
const mostSpareMembers = 1024

func (c *canonicalizer) done() {
	if cap(c.members) > mostSpareMembers {
		return
	}
	clear(c.members[:cap(c.members)]) // their names lie in what was read
	c.raw, c.out, c.members = nil, nil, c.members[:0]
	canonicalizers.Put(c)
}

// maxCanonicalDepth bounds the work: names out of order cost one move of what stands below them for each level.
const maxCanonicalDepth = 256

var (
	errCanonicalDepth = fmt.Errorf("arrays and objects nest deeper than %d", maxCanonicalDepth)
	errExponent       = fmt.Errorf("the exponent of a number has more than %d digits", maxExponentDigits)
	errRepeated       = errors.New("an object repeats a name")
)

// canonicalizer writes the canonical form of a valid value in one pass: members are written in the order in which
// they come, and moved where that is not the order of their names.
type canonicalizer struct {
	raw     []byte
	out     []byte
	members []canonicalMember // of all objects that are open, innermost last
}

type canonicalMember struct {
	name []byte // decoded, with lone surrogates kept
	text Span   // name, colon and value in out
}

// value writes the value that begins at raw[i] and returns the offset after it.
func (c *canonicalizer) value(i, depth int) (end int, err error) {
	switch b := c.raw[i]; b {
	case '{', '[':
		if depth == maxCanonicalDepth {
			return i, errCanonicalDepth
		}
		if b == '{' {
			return c.object(i, depth+1)
		}
		return c.array(i, depth+1)
	case '"':
		end, _ = skipString(c.raw, i)
		c.out = appendCanonicalString(c.out, c.raw[i:end])
		return end, nil
	case 't', 'f', 'n':
		end = i + literal(c.raw, i)
		c.out = append(c.out, c.raw[i:end]...)
		return end, nil
	}
	end, _ = scanNumber(c.raw, i)
	var ok bool
	if c.out, ok = appendCanonicalNumber(c.out, c.raw[i:end]); !ok {
		return end, errExponent
	}
	return end, nil
}

func (c *canonicalizer) array(i, depth int) (end int, err error) {
	c.out = append(c.out, '[')
	i = skipSpace(c.raw, i+1, true)
	for c.raw[i] != ']' {
		if i, err = c.value(i, depth); err != nil {
			return i, err
		}
		i = skipSpace(c.raw, i, true)
		if c.raw[i] == ',' {
			c.out = append(c.out, ',')
			i = skipSpace(c.raw, i+1, true)
		}
	}
	c.out = append(c.out, ']')
	return i + 1, nil
}

func (c *canonicalizer) object(i, depth int) (end int, err error) {
	c.out = append(c.out, '{')
	first, base := len(c.members), len(c.out)
	ordered := true
	i = skipSpace(c.raw, i+1, true)
	for c.raw[i] != '}' {
		nameEnd, _ := skipString(c.raw, i)
		m := canonicalMember{name: c.raw[i+1 : nameEnd-1]}
		if bytes.IndexByte(m.name, '\\') >= 0 {
			m.name = appendUnescaped(make([]byte, 0, len(m.name)), m.name, true)
		}
		if n := len(c.members); n > first && bytes.Compare(c.members[n-1].name, m.name) >= 0 {
			ordered = false
		}
		m.text.Start = len(c.out)
		c.out = appendCanonicalString(c.out, c.raw[i:nameEnd])
		c.out = append(c.out, ':')
		i = skipSpace(c.raw, nameEnd, true) + 1
		if i, err = c.value(skipSpace(c.raw, i, true), depth); err != nil {
			return i, err
		}
		m.text.End = len(c.out)
		c.members = append(c.members, m)
		i = skipSpace(c.raw, i, true)
		if c.raw[i] == ',' {
			c.out = append(c.out, ',')
			i = skipSpace(c.raw, i+1, true)
		}
	}
	if !ordered {
		if err := c.reorder(c.members[first:], base); err != nil {
			return i, err
		}
	}
	c.members = c.members[:first]
	c.out = append(c.out, '}')
	return i + 1, nil
}

// reorder sorts the members of an object, which were written from out[base] on, by name.
func (c *canonicalizer) reorder(members []canonicalMember, base int) error {
	slices.SortFunc(members, func(a, b canonicalMember) int { return bytes.Compare(a.name, b.name) })
	end := len(c.out) // behind it there is room that the next object, and the next call, need not allocate again
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(m.name, members[i-1].name) {
				return fmt.Errorf("%w: %q", errRepeated, m.name)
			}
			c.out = append(c.out, ',')
		}
		c.out = append(c.out, m.text.Of(c.out)...)
	}
	copy(c.out[base:end], c.out[end:])
	c.out = c.out[:end]
	return nil
}

// appendCanonicalString appends a valid string token with the fewest escapes.
func appendCanonicalString(dst, raw []byte) []byte {
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		return append(dst, raw...)
	}
	text = appendUnescaped(make([]byte, 0, len(text)), text, true)
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if plain[c] && c != 0xED {
			continue
		}
		if c != 0xED {
			dst = append(dst, text[done:i]...)
			dst = appendEscape(dst, c)
			done = i + 1
		} else if text[i+1] >= 0xA0 { // a lone surrogate
			dst = append(dst, text[done:i]...)
			u := 0xD000 | uint(text[i+1]&0x3F)<<6 | uint(text[i+2]&0x3F)
			dst = append(dst, '\\', 'u', 'd', hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
			i += 2
			done = i + 1
		}
	}
	dst = append(dst, text[done:]...)
	return append(dst, '"')
}
