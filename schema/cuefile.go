package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/cuecontext"
	cueerrors "cuelang.org/go/cue/errors"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// parseCUE evaluates a config in CUE. Only CUE's own library can be imported: no module, no other file, no network. What the
// value holds counts; hidden fields, definitions and optional fields are the author's own.
func parseCUE(src *source, r *report) *node {
	if at, deep := tooDeep(src.text); deep {
		r.errorAt(src.pos(at, at+1), "syntax", "", "values are nested more than %d deep", maxDepth)
		return nil
	}
	type outcome struct {
		root *node
		said Findings
	}
	got, ok := bounded(func() outcome {
		own := newSource(src.file, src.text) // one that is given up goes on reading it
		var said report
		root := evaluateCUE(own, &said)
		return outcome{root, said.findings}
	})
	if !ok {
		r.errorAt(src.pos(0, 0), "syntax", "write it in YAML or JSON, or simpler: fewer values that are made of others",
			"this file takes more than %d MiB of memory or %s to evaluate", maxCUEMemory>>20, maxCUETime)
		return nil
	}
	for _, f := range got.said {
		r.add(f)
	}
	return got.root
}

// evaluateCUE is the file's value; nil = it has none, and a finding says why.
func evaluateCUE(src *source, r *report) (root *node) {
	defer func() {
		if p := recover(); p != nil { // the evaluator is not ours, and the file is not trusted to spare it
			r.errorAt(src.pos(0, 0), "syntax", "write it in YAML or JSON, or simpler", "CUE cannot evaluate this file")
			root = nil
		}
	}()
	c := cueReader{src: src, report: r, failed: map[string]bool{}, blank: map[int]blanking{}}
	v, ok := c.evaluate()
	if !ok {
		return nil
	}
	return c.node(v, nil, "")
}

// maxRounds bounds how often a file is evaluated again without what failed before.
const maxRounds = 8

// evaluate returns the file's value. Where CUE finds a fault it gives no value for all that is around it, so each fault is put in
// a finding, replaced by "anything", and the rest evaluated again; false = not even that gave a value.
func (c *cueReader) evaluate() (v cue.Value, ok bool) {
	for round := range maxRounds {
		file, err := parser.ParseFile(c.src.file, c.src.text)
		if err != nil {
			for _, e := range cueerrors.Errors(err) {
				format, args := e.Msg()
				c.report.errorAt(c.at(e.Position()), "syntax", "", "this is not CUE: %s", fmt.Sprintf(format, args...))
			}
			return v, false
		}
		if round == 0 && !c.importsAllowed(file) {
			return v, false
		}
		c.index = map[string][]*ast.Field{}
		file.Decls = c.indexFields(file.Decls, "")
		v = cuecontext.New().BuildFile(file)
		err = v.Validate()
		if err == nil {
			if v.IncompleteKind() != cue.StructKind {
				c.report.errorAt(c.src.pos(0, 1), "missing-key", startHint, "the file states nothing")
				return v, false
			}
			return v, true
		}
		if !c.explain(err, round) {
			return v, false
		}
	}
	return v, false
}

// cueReader turns an evaluated value into nodes.
type cueReader struct {
	src    *source
	report *report
	index  map[string][]*ast.Field // fields that are written out, by path: for where they stand
	blank  map[int]blanking        // the fields that were found faulty, by their offset
	failed map[string]bool         // their paths
	banned map[string][]field      // by the path of the map, what a definition of the file does not allow in it
	count  int
}

func (c *cueReader) importsAllowed(file *ast.File) bool {
	ok := true
	for spec := range file.ImportSpecs() {
		name, err := strconv.Unquote(spec.Path.Value)
		first, _, _ := strings.Cut(name, "/")
		numbers := name == "math/bits" // a shift makes a number of any size at once
		if err != nil || strings.Contains(first, ".") || first == "tool" || numbers {
			c.report.errorAt(c.span(spec.Path), "syntax", `CUE's own library may be imported: import "strings"`, "a config cannot import %q", name)
			ok = false
		}
	}
	return ok
}

// blanking says what becomes of a faulty field when the file is evaluated again.
type blanking uint8

const (
	keep    blanking = iota
	empty            // any value will do
	removed          // the field itself is not allowed
)

// indexFields records where fields are written and blanks those that were found faulty; it returns what is left.
func (c *cueReader) indexFields(decls []ast.Decl, path string) []ast.Decl {
	left := decls[:0]
	for _, d := range decls {
		switch d := d.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(d.Label)
			if err != nil {
				break
			}
			p := path + "\x00" + name
			switch c.blank[d.Pos().Offset()] {
			case removed:
				continue
			case empty:
				d.Value = ast.NewIdent("_")
				c.index[p] = append(c.index[p], d)
			default:
				c.index[p] = append(c.index[p], d)
				c.indexExpr(d.Value, p)
			}
		case *ast.EmbedDecl:
			c.indexExpr(d.Expr, path)
		case *ast.ImportDecl:
			d.Specs = slices.DeleteFunc(d.Specs, func(s *ast.ImportSpec) bool {
				return c.blank[s.Pos().Offset()] == removed || c.blank[s.Path.Pos().Offset()] == removed
			})
			if len(d.Specs) == 0 {
				continue
			}
		}
		left = append(left, d)
	}
	return left
}

// indexExpr records the fields of a struct, also of one that is unified with others.
func (c *cueReader) indexExpr(e ast.Expr, path string) {
	switch e := e.(type) {
	case *ast.StructLit:
		e.Elts = c.indexFields(e.Elts, path)
	case *ast.ParenExpr:
		c.indexExpr(e.X, path)
	case *ast.BinaryExpr:
		if e.Op == token.AND {
			c.indexExpr(e.X, path)
			c.indexExpr(e.Y, path)
		}
	case *ast.ListLit:
		for i, item := range e.Elts {
			c.indexExpr(item, path+"\x00"+strconv.Itoa(i))
		}
	}
}

// written returns where a field is written: where it is a plain value, if it is in several places.
func (c *cueReader) written(path string) *ast.Field {
	var found *ast.Field
	for _, f := range c.index[path] {
		if _, plain := f.Value.(*ast.BasicLit); plain || found == nil {
			found = f
		}
	}
	return found
}

// explain puts CUE's complaints in findings, one for each path, and marks the fields to leave out; false = it found none to.
func (c *cueReader) explain(err error, round int) bool {
	marked := false
	for _, e := range cueerrors.Errors(err) {
		path := ""
		if len(e.Path()) > 0 {
			path = "\x00" + strings.Join(e.Path(), "\x00")
		}
		format, args := e.Msg()
		if strings.HasPrefix(format, "builtin package") && e.Position().IsValid() {
			c.blank[e.Position().Offset()], marked = removed, true
		}
		if strings.HasPrefix(format, "imported and not used") {
			at := e.Position().Offset()
			left := c.blank[at] == removed
			c.blank[at], marked = removed, true
			if round > 0 || left {
				continue // what used it was left out, or there is no such package
			}
		}
		notAllowed := strings.Contains(format, "field not allowed")
		if path != "" && c.failed[path] {
			for _, f := range c.index[path] {
				if notAllowed && c.blank[f.Pos().Offset()] == empty {
					c.blank[f.Pos().Offset()], marked = removed, true
				}
			}
			continue
		}
		at := path
		for at != "" && len(c.index[at]) == 0 { // the nearest field around it that is written out
			at = at[:strings.LastIndexByte(at, 0)]
		}
		c.failed[path], c.failed[at] = true, true
		for _, f := range c.index[at] {
			c.blank[f.Pos().Offset()] = empty
			if notAllowed && at == path {
				c.blank[f.Pos().Offset()] = removed
			}
			marked = true
		}
		if strings.HasPrefix(format, "cannot find package") {
			continue // its import was left out, and has its finding
		}
		pos := c.errorPos(e)
		fields := c.index[path]
		switch {
		case notAllowed && len(fields) > 0:
			c.ban(path, c.span(fields[0].Label))
			c.report.errorAt(c.span(fields[0].Label), "unknown-key", "look for the # name that the map is unified with",
				"the key %s is not allowed by a definition of this file", lastName(path))
			continue
		case len(fields) > 0:
			pos = c.span(fields[len(fields)-1].Value)
		}
		said, hint := cueWords(format, args)
		id := "bad-value"
		if path == "" {
			id = "syntax"
		} else {
			said = "the value of " + lastName(path) + " " + said
		}
		c.report.errorAt(pos, id, hint, "%s", said)
	}
	delete(c.failed, "")
	return marked
}

// ban keeps a field that a finding has refused: a map that states it does not lack it.
func (c *cueReader) ban(path string, pos Pos) {
	i := strings.LastIndexByte(path, 0)
	if c.banned == nil {
		c.banned = map[string][]field{}
	}
	c.banned[path[:i]] = append(c.banned[path[:i]], field{
		key:   &node{kind: text, text: path[i+1:], pos: pos, bad: true},
		value: &node{pos: pos, bad: true},
	})
}

// errorPos is the first place in the file that an error of CUE's names.
func (c *cueReader) errorPos(e cueerrors.Error) Pos {
	for _, p := range append([]token.Pos{e.Position()}, e.InputPositions()...) {
		if p.IsValid() && p.Filename() == c.src.file {
			return c.at(p)
		}
	}
	return c.src.pos(0, 0)
}

// lastName is the last name of a path, in quotes.
func lastName(path string) string { return named(path[strings.LastIndexByte(path, 0)+1:]) }

// cueWords puts a complaint of CUE's in our words, to follow "the value of X".
func cueWords(format string, args []any) (said, hint string) {
	msg := fmt.Sprintf(format, args...)
	switch {
	case strings.HasPrefix(msg, "conflicting values "):
		both, _, _ := strings.Cut(strings.TrimPrefix(msg, "conflicting values "), " (mismatched")
		if a, b, ok := strings.Cut(both, " and "); ok {
			return "is given twice, as " + shorten(b) + " and as " + shorten(a), "keep one of the two"
		}
	case strings.HasPrefix(msg, "reference ") && strings.HasSuffix(msg, " not found"):
		name := strings.TrimSuffix(strings.TrimPrefix(msg, "reference "), " not found")
		return "refers to " + name + ", which this file does not define", "define it, or put it in quotes if text is meant"
	case strings.HasPrefix(msg, "invalid value "):
		return "is " + strings.TrimPrefix(msg, "invalid value ") + ", which the file itself forbids", ""
	case strings.HasPrefix(msg, "builtin package ") && strings.HasSuffix(msg, " undefined"):
		return "CUE's own library has no " + strings.TrimSuffix(strings.TrimPrefix(msg, "builtin "), " undefined"), "only that library may be imported"
	case strings.HasPrefix(msg, "imported and not used: "):
		return strings.TrimPrefix(msg, "imported and not used: ") + " is imported and not used", "delete the import"
	case strings.Contains(msg, "cycle"):
		return "depends on itself", ""
	}
	return "does not evaluate: " + msg, ""
}
