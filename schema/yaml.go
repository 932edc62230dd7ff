package schema

import (
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on what a config file may be. Real ones are a thousandth of these.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 100_000 // after aliases are replaced by what they name: a few lines can name billions
	maxDepth     = 200
)

// parseYAML reads one YAML document. Scalars keep the text as written: whether 0123 is a number or a tool's name depends on
// where it stands.
func parseYAML(src *source, r *report) *node {
	y := yamlReader{src: src, report: r, lines: yamlLines(src.text)}
	doc, err := decodeYAML(src.text)
	if err != nil && looksLikeJSON(src.text) { // all JSON is YAML 1.2, but this parser refuses \ud83d\ude00
		var again report
		if n := parseJSON(src, &again); n != nil {
			return n
		}
	}
	if more := (*secondDocument)(nil); errors.As(err, &more) {
		r.errorAt(Pos{File: src.file, Line: more.line, Col: more.col}, "syntax", "keep one, and delete the line of dashes", "%s", more.Error())
		return nil
	}
	if err != nil {
		faults := explainYAML(src, err, r)
		y.faulty = map[int]bool{}
		for _, f := range faults {
			y.faulty[f.begin] = true
		}
		doc, err = decodeYAML(blanked(src.text, faults))
		if err != nil || len(faults) == 0 || !mendable(src, r.findings) {
			for i := range r.findings {
				r.findings[i].Fix = Fix{} // there is more that is wrong
			}
		}
		if err != nil || len(faults) == 0 {
			return nil
		}
	}
	if doc == nil || doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 {
		return &node{kind: null, pos: Pos{File: src.file, Line: 1, Col: 1}}
	}
	if strings.Contains(src.text, "&") {
		y.known = map[*yaml.Node]node{}
	}
	root := y.node(doc.Content[0], "", 0)
	if y.full {
		return nil
	}
	return root
}

// decodeYAML parses a text that holds one document; nil = it holds none.
func decodeYAML(text string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); errors.Is(err, io.EOF) {
		return &doc, nil
	} else if err != nil {
		return nil, err
	}
	return nil, &secondDocument{more.Line, more.Column}
}

type secondDocument struct{ line, col int }

func (*secondDocument) Error() string { return "the file holds more than one YAML document" }

// blanked replaces faulty values, so that the rest of the file can be read too.
func blanked(text string, faults []span) string {
	b := []byte(text)
	for _, f := range faults {
		for i := f.begin; i < f.end; i++ {
			b[i] = ' '
		}
		b[f.begin] = '~'
	}
	return string(b)
}

// looksLikeJSON reports whether a text, apart from blanks and comments, starts as a JSON object does.
func looksLikeJSON(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{")
}

// yamlReader turns the parser's nodes into ours.
type yamlReader struct {
	src    *source
	report *report
	lines  []int // offsets of lines as YAML 1.1 counts them: U+0085, U+2028 and U+2029 end one too
	count  int
	open   []*yaml.Node // anchors being read
	full   bool         // the bound on nodes was hit and reported
	faulty map[int]bool // offsets of values that have a finding already

	// What was read before, where aliases may come back to it: scalars whole, of others the place. nil without anchors.
	known map[*yaml.Node]node

	lastLine, lastCol, lastOff int
}

func yamlLines(s string) []int {
	lines := []int{0}
	for i, c := range s {
		switch {
		case c == '\n' || c == '\r' && !strings.HasPrefix(s[i+1:], "\n"):
			lines = append(lines, i+1)
		case c == '\u0085':
			lines = append(lines, i+2)
		case c == '\u2028' || c == '\u2029':
			lines = append(lines, i+3)
		}
	}
	return lines
}

// offset turns the parser's line and column, which counts characters, into an offset.
func (y *yamlReader) offset(line, col int) int {
	if line < 1 || line > len(y.lines) {
		return len(y.src.text)
	}
	off, at := y.lines[line-1], 1
	if line == y.lastLine && col >= y.lastCol {
		off, at = y.lastOff, y.lastCol
	}
	for i := range y.src.text[off:] {
		if at == col {
			off += i
			y.lastLine, y.lastCol, y.lastOff = line, col, off
			return off
		}
		at++
	}
	return len(y.src.text)
}

// node converts the value of the named key; the name is for what is said about it.
func (y *yamlReader) node(n *yaml.Node, key string, depth int) *node {
	if n.Kind == yaml.AliasNode {
		return y.alias(n, key, depth)
	}
	y.count++
	if k, ok := y.known[n]; ok && n.Kind == yaml.ScalarNode && !y.full {
		return &k
	}
	out := y.start(n)
	switch {
	case y.full || y.faulty[out.offset]:
		out.bad = true
		return out
	case y.count > maxNodes:
		y.full = true
		y.report.fault(out, "syntax", "", "the file grows to more than %d values once its aliases are replaced", maxNodes)
		return out
	case depth > maxDepth:
		y.report.fault(out, "syntax", "", "values are nested more than %d deep", maxDepth)
		return out
	}
	if n.Kind == yaml.ScalarNode {
		y.scalar(out, n, out.offset, key)
		if y.known != nil {
			y.known[n] = *out
		}
		return out
	}
	if n.Anchor != "" {
		y.open = append(y.open, n)
		defer func() { y.open = y.open[:len(y.open)-1] }()
	}
	if y.foreignTag(out, n, out.offset, key) {
		return out
	}
	if n.Kind == yaml.SequenceNode {
		out.kind = list
		for _, c := range n.Content {
			out.items = append(out.items, y.node(c, key, depth+1))
		}
		return out
	}
	out.kind = object
	y.object(out, n, depth)
	return out
}

// start makes a node that knows where it stands.
func (y *yamlReader) start(n *yaml.Node) *node {
	if k, ok := y.known[n]; ok {
		return &node{offset: k.offset, pos: k.pos}
	}
	off := y.offset(n.Line, n.Column)
	out := &node{offset: off, pos: y.src.next(off, off+1)}
	if y.known != nil {
		y.known[n] = node{offset: off, pos: out.pos}
	}
	return out
}

// alias reads what an alias names, anew: what it means depends on where it is used.
func (y *yamlReader) alias(n *yaml.Node, key string, depth int) *node {
	for _, o := range y.open {
		if o == n.Alias {
			out := y.start(n)
			out.pos.Len = len([]rune(n.Value)) + 1
			y.report.fault(out, "syntax", "", "anchor %q contains itself", n.Value)
			return out
		}
	}
	return y.node(n.Alias, key, depth+1)
}

func (y *yamlReader) object(out *node, n *yaml.Node, depth int) {
	var merged []*node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			switch m := y.node(v, "<<", depth+1); m.kind {
			case object:
				merged = append(merged, m)
			case list:
				merged = append(merged, m.items...)
			default:
				if !m.bad {
					y.report.fault(m, "syntax", "write <<: *NAME", "a merge key takes a map or a list of maps, not %s", m.kind)
				}
			}
			continue
		}
		key := y.node(k, "", depth+1)
		switch {
		case key.bad:
		case key.kind == object || key.kind == list:
			y.report.fault(key, "syntax", "quote it if it is meant as text", "a key is text, not %s", key.kind)
		}
		out.fields = append(out.fields, field{key: key, value: y.node(v, key.text, depth+1)})
	}
	have := map[string]bool{}
	for _, f := range out.fields {
		have[f.key.text] = true
	}
	for _, m := range merged { // a key of the map itself wins, then the first of the maps
		if m.kind != object {
			if !m.bad {
				y.report.fault(m, "syntax", "write <<: *NAME", "a merge key takes a map or a list of maps, not %s", m.kind)
			}
			continue
		}
		for _, f := range m.fields {
			if !have[f.key.text] {
				have[f.key.text] = true
				out.fields = append(out.fields, field{key: f.key, value: f.value, merged: true})
			}
		}
	}
}
