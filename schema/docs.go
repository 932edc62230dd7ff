package schema

import (
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
)

// docs are the comments of schema.cue.
type docs struct {
	file   string              // of the file as a whole
	about  map[string]string   // by definition, and by definition.key; a map within: definition.key.key
	keys   map[string][]string // the keys of each, as they follow in the file
	embeds map[string][]string // the definitions that a definition includes
}

func readDocs(text []byte) docs {
	d := docs{about: map[string]string{}, keys: map[string][]string{}, embeds: map[string][]string{}}
	file, err := parser.ParseFile("schema.cue", text, parser.ParseComments)
	if err != nil {
		return d // a test compiles it
	}
	for _, decl := range file.Decls {
		if p, ok := decl.(*ast.Package); ok {
			d.file = comment(p)
		}
	}
	d.read(file.Decls, "")
	return d
}

// read records the comments of the fields of a map.
func (d *docs) read(decls []ast.Decl, owner string) {
	for _, decl := range decls {
		switch decl := decl.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(decl.Label)
			if err != nil {
				continue
			}
			path := name
			if owner != "" {
				path = owner + "." + name
				d.keys[owner] = append(d.keys[owner], name)
			}
			d.about[path] = comment(decl)
			d.inside(decl.Value, path)
		case *ast.EmbedDecl:
			if id, ok := decl.Expr.(*ast.Ident); ok {
				d.embeds[owner] = append(d.embeds[owner], id.Name)
			}
		}
	}
}

func (d *docs) inside(e ast.Expr, path string) {
	switch e := e.(type) {
	case *ast.StructLit:
		d.read(e.Elts, path)
	case *ast.BinaryExpr:
		d.inside(e.X, path)
		d.inside(e.Y, path)
	}
}

// comment is what stands above a field, and what stands behind it.
func comment(n ast.Node) string {
	var said []string
	for _, g := range ast.Comments(n) {
		if !g.Doc && !g.Line {
			continue // it stands by itself
		}
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, " ")
}

// owner is the definition in which a key of a definition is written: that itself, or one that it includes.
func (d *docs) owner(def, name string) string {
	if slices.Contains(d.keys[def], name) {
		return def
	}
	for _, e := range d.embeds[def] {
		if o := d.owner(e, name); o != "" {
			return o
		}
	}
	return ""
}

// of is what is said about a key.
func (d *docs) of(def, name string) string {
	if o := d.owner(def, name); o != "" {
		return d.about[o+"."+name]
	}
	return ""
}

// order sorts keys as they follow in the file.
func (d *docs) order(def string, names []string) []string {
	var all []string
	var walk func(string)
	walk = func(def string) {
		all = append(all, d.keys[def]...)
		for _, e := range d.embeds[def] {
			walk(e)
		}
	}
	walk(def)
	out := slices.Clone(names)
	slices.SortStableFunc(out, func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) })
	return out
}
