package schema

import (
	"strconv"
	"sync"
)

// kind is what a node is. YAML, JSON and CUE agree on these.
type kind uint8

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// String names the kind as a user would.
func (k kind) String() string {
	return [...]string{"nothing", "a yes-or-no value", "a number", "text", "a list", "a map"}[k]
}

// node is a value of a config file, whichever way the file is spelled.
type node struct {
	kind   kind
	text   string // of a scalar: decoded; a number, true or null as written
	plain  bool   // written without quotes: the spelling, not the writer, chose its kind
	pos    Pos
	offset int // of its first byte, in YAML
	fields []field
	items  []*node

	at      func(offset int) Pos // maps an offset in text to its place; nil = pos for all
	written string               // of a key that was renamed: as the file spells it
	cut     Pos                  // where YAML took the rest of the line for a comment, if it did

	// What checking found: the value in our terms (bool, int64, float64, string, time.Duration, or nil), and whether the
	// node, or its key, cannot be used.
	value any
	bad   bool
}

// field is one entry of a map.
type field struct {
	key    *node
	value  *node
	merged bool // it came by a YAML merge key, so an entry of the same name beside it is no repetition
}

// get returns the value of a usable field, or nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if f := &n.fields[i]; f.key.text == name && !f.key.bad && !f.value.bad {
			return f.value
		}
	}
	return nil
}

// key returns the key of a field, or nil.
func (n *node) key(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].key.text == name {
			return n.fields[i].key
		}
	}
	return nil
}

// bool is true as Go would print it: YAML writes true in three ways.
func (n *node) bool() bool {
	b, _ := strconv.ParseBool(n.text)
	return b
}

// place returns where the byte at offset of the node's text stands, for a span of length bytes.
func (n *node) place(offset, length int) Pos {
	p := n.pos
	if n.at == nil {
		return p
	}
	p = n.at(offset)
	if end := n.at(offset + length); end.Line == p.Line {
		p.Len = end.Col - p.Col
	}
	return p
}

// expr returns the node's text as an expression.
func (n *node) expr() *Expr {
	e := &Expr{Text: n.text, Pos: n.pos, At: n.at}
	if n.at != nil {
		e.Pos = n.at(0)
		e.Pos.Len = n.pos.Len
	}
	return e
}

// mapped makes the function at of a node from one that finds, for each byte of its text and one past the end, the offset in
// the file. It is called when first needed; nil offsets mean that they are not known.
func (s *source) mapped(whole Pos, offsets func() []int) func(int) Pos {
	find := sync.OnceValue(offsets)
	return func(i int) Pos {
		at := find()
		if at == nil {
			return whole
		}
		off := at[min(max(i, 0), len(at)-1)]
		return s.pos(off, off+1)
	}
}
