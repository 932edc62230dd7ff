package schema

import "fmt"

// Pos is a place in a config file. The zero value is no place.
type Pos struct {
	File      string
	Line, Col int // from 1; Col counts characters (runes), not bytes
	Len       int // characters that are meant, for the caret; 0 = one
}

// String is file:line:col, or the file alone.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Expr is the text of a CEL expression and where each of its characters stands in the file.
type Expr struct {
	Text string
	Pos  Pos // of its first character
	// At maps a byte offset in Text (up to and including its length) to a place; nil = Pos, for all offsets.
	// It sees through the quotes, escapes, folds and indentation of YAML, JSON and CUE.
	At func(offset int) Pos
}

// Place returns where the byte at offset of the expression's text stands in the file.
func (e *Expr) Place(offset int) Pos {
	if e.At == nil {
		return e.Pos
	}
	return e.At(offset)
}
