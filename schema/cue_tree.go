package schema

import (
	"fmt"
	"strconv"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// span is the place of a syntax node.
func (c *cueReader) span(n ast.Node) Pos {
	start, end := n.Pos(), n.End()
	if !start.IsValid() || start.Filename() != c.src.file {
		return c.src.pos(0, 0)
	}
	if !end.IsValid() || end.Offset() <= start.Offset() {
		return c.src.next(start.Offset(), start.Offset()+1)
	}
	return c.src.next(start.Offset(), end.Offset())
}

func (c *cueReader) at(p token.Pos) Pos {
	if !p.IsValid() || p.Filename() != c.src.file {
		return c.src.pos(0, 0)
	}
	return c.src.next(p.Offset(), p.Offset()+1)
}

// node converts a value; field is where it is written, if that is known.
func (c *cueReader) node(v cue.Value, field *ast.Field, path string) *node {
	n := &node{pos: c.at(v.Pos())}
	var written ast.Node = v.Source()
	if f, ok := written.(*ast.Field); ok {
		written = f.Value
	}
	if field != nil {
		written = field.Value
	}
	if e, ok := written.(ast.Expr); ok && e.Pos().IsValid() && e.Pos().Filename() == c.src.file {
		n.pos = c.span(e)
	}
	if c.count++; c.count > maxNodes {
		if c.count == maxNodes+1 {
			c.report.errorAt(n.pos, "syntax", "", "the file holds more than %d values", maxNodes)
		}
		n.bad = true
		return n
	}
	if c.failed[path] {
		n.bad = true
		return n
	}
	if d, ok := v.Default(); ok {
		v = d
	}
	switch v.IncompleteKind() {
	case cue.StructKind:
		n.kind, n.pos.Len = object, 1
		c.fields(n, v, path)
		return n
	case cue.ListKind:
		n.kind, n.pos.Len = list, 1
		items, err := v.List()
		if err != nil {
			c.report.fault(n, "bad-value", "state its items", "this list has no definite items")
			return n
		}
		for i := 0; items.Next(); i++ {
			n.items = append(n.items, c.node(items.Value(), nil, path+"\x00"+strconv.Itoa(i)))
		}
		return n
	}
	c.scalar(n, v, written, path)
	return n
}

func (c *cueReader) fields(n *node, v cue.Value, path string) {
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		c.report.fault(n, "bad-value", "", "%s has no definite fields", lastName(path))
		return
	}
	for it.Next() {
		sel := it.Selector()
		if sel.ConstraintType() == cue.OptionalConstraint || sel.LabelType() != cue.StringLabel {
			continue
		}
		name := sel.Unquoted()
		p := path + "\x00" + name
		key := &node{kind: text, text: name, pos: c.at(it.Value().Pos())}
		written := c.written(p)
		if written == nil {
			if f, ok := it.Value().Source().(*ast.Field); ok {
				written = f
			}
		}
		if written != nil && written.Label.Pos().Filename() == c.src.file {
			key.pos = c.span(written.Label)
		}
		if sel.ConstraintType() == cue.RequiredConstraint {
			c.report.errorAt(key.pos, "missing-key", "give it a value", "the field %q is required and has no value", name)
			n.fields = append(n.fields, field{key: key, value: &node{pos: key.pos, bad: true}})
			continue
		}
		n.fields = append(n.fields, field{key: key, value: c.node(it.Value(), written, p)})
	}
	for _, f := range c.banned[path] {
		if n.key(f.key.text) == nil {
			n.fields = append(n.fields, f)
		}
	}
}

func (c *cueReader) scalar(n *node, v cue.Value, written ast.Node, path string) {
	switch kind := v.Kind(); kind {
	case cue.NullKind:
		n.kind, n.text = null, "null"
	case cue.BoolKind:
		b, _ := v.Bool()
		n.kind, n.text, n.plain = boolean, strconv.FormatBool(b), true
	case cue.IntKind, cue.FloatKind, cue.NumberKind:
		b, err := v.MarshalJSON()
		n.kind, n.text, n.plain = number, string(b), true
		if err != nil {
			n.bad = true
		}
	case cue.StringKind, cue.BytesKind:
		n.kind = text
		if s, err := v.String(); err == nil {
			n.text = s
		} else if b, err := v.Bytes(); err == nil {
			n.text = string(b)
		}
		if lit, ok := written.(*ast.BasicLit); ok && lit.Kind == token.STRING && lit.Pos().Filename() == c.src.file {
			start, raw, value := lit.Pos().Offset(), lit.Value, n.text
			n.at = c.src.mapped(n.pos, func() []int { return cueOffsets(raw, start, value) })
		}
	default:
		c.report.fault(n, "bad-value", "give it a value", "%s is not a value but a constraint: %s",
			lastName(path), shorten(fmt.Sprint(v)))
	}
}
