package schema

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"cuelang.org/go/cue"
)

// JSONSchema returns the schema of the config as JSON Schema, for editors to complete and check a file with. It is made from
// schema.cue: bounds and words from its constraints, descriptions from its comments; defaults from those that the program uses.
// It is of draft 7, which editors know best.
//
// What it accepts is what [Load] accepts, but for what JSON Schema cannot say: what the parts of a duration such as "23h90m" come to,
// what is inside an expression, and how settings go together. A file in mcp-shield's spelling is another language: see
// [ShieldJSONSchema].
func JSONSchema() []byte { return ours.jsonSchema("#Config", "mcp-retry config") }

// ShieldJSONSchema returns the schema of configs in mcp-shield's spelling as JSON Schema. It is one of its own, for an editor that
// took either would complete keys that do not go together.
func ShieldJSONSchema() []byte { return shield.jsonSchema("#Config", "mcp-shield config") }

// jsonSchema is the dialect as JSON Schema; def is the definition of a whole file.
func (d *dialect) jsonSchema(def, title string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := generator{docs: readDocs(d.text), done: map[string]bool{}, definitions: &ordered{}}
	root := g.object(d.config(), def)
	out := &ordered{}
	out.set("$schema", "http://json-schema.org/draft-07/schema#")
	out.set("title", title)
	out.set("description", g.docs.file)
	for _, m := range root.members {
		out.set(m.name, m.value)
	}
	slices.SortFunc(g.definitions.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	out.set("definitions", g.definitions)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		panic(err) // it is made of texts, numbers and maps alone
	}
	return text.Bytes()
}

type generator struct {
	docs        docs
	done        map[string]bool // the definitions that are made
	definitions *ordered
}

// place is the schema of a place; owner.name is where its description and default stand.
func (g *generator) place(s *shape, owner, name string) *ordered {
	written := g.docs.owner(owner, name)
	out := g.constraint(s, written+"."+name)
	g.narrow(out, owner, name)
	if d := g.docs.of(owner, name); d != "" {
		if out.has("$ref") { // draft 7 ignores what stands beside $ref
			ref := out
			out = &ordered{}
			out.set("allOf", []any{ref})
		}
		out.set("description", d)
	}
	if v, ok := defaultOf(written, name); ok {
		out.set("default", v)
	}
	return out
}

// narrow makes of what the schema in CUE takes, so that findings can say more than "unknown key", what [Load] takes.
func (g *generator) narrow(out *ordered, owner, name string) {
	switch owner + "." + name {
	case "#Config.servers":
		out.set("minProperties", 1)
	case "#Server.url":
		*out = ordered{[]member{{"not", &ordered{}}}}
	case "#Server.type":
		*out = ordered{[]member{{"enum", []string{"stdio"}}}}
	}
}

// constraint is the schema of what a place takes.
func (g *generator) constraint(s *shape, path string) *ordered {
	out := &ordered{}
	switch {
	case s.kinds == cue.TopKind:
		return out
	case s.kinds == cue.StructKind && s.def != "":
		return g.reference(s, s.def)
	case s.kinds == cue.StructKind:
		return g.object(s, path)
	case s.kinds == cue.ListKind:
		out.set("type", "array")
		out.set("items", g.constraint(s.fill().elem, path))
		return out
	}
	var kinds, words []any
	for _, alt := range leaves(s.value) {
		switch {
		case alt.word != nil:
			words = append(words, alt.word)
		case alt.of.kinds == cue.StructKind && alt.of.def == "":
			kinds = append(kinds, g.object(alt.of, pathOf(s, path)))
		case alt.of.kinds&(cue.StructKind|cue.ListKind) != 0:
			kinds = append(kinds, g.constraint(alt.of, path))
		default:
			kinds = append(kinds, boundText(s, alt.of, scalarOf(alt.of, textual(s))))
		}
	}
	if len(words) > 0 {
		enum := &ordered{}
		enum.set("enum", words)
		kinds = append([]any{enum}, kinds...)
	}
	if only, ok := kinds[0].(*ordered); ok && len(kinds) == 1 {
		return only
	}
	out.set("anyOf", kinds)
	return out
}

// pathOf is where the descriptions of a map stand that is one of a place's alternatives.
func pathOf(s *shape, path string) string {
	if s.def != "" {
		return s.def
	}
	return path
}

// reference names a definition, and makes it if it is new.
func (g *generator) reference(s *shape, def string) *ordered {
	name := strings.TrimPrefix(def, "#")
	if !g.done[name] {
		g.done[name] = true
		o := g.object(s, def)
		if d := g.docs.about[def]; d != "" {
			o.set("description", d)
		}
		g.definitions.set(name, o)
	}
	out := &ordered{}
	out.set("$ref", "#/definitions/"+name)
	return out
}

// object is the schema of a map.
func (g *generator) object(s *shape, owner string) *ordered {
	s.fill()
	out := &ordered{}
	out.set("type", "object")
	required := slices.Clone(s.required)
	if owner == "#Server" && !slices.Contains(required, "command") {
		required = append(required, "command") // see builder.launch
	}
	if len(s.names) > 0 {
		properties := &ordered{}
		for _, name := range g.docs.order(owner, s.names) {
			properties.set(name, g.place(s.fields[name], owner, name))
		}
		out.set("properties", properties)
	}
	switch key, value := s.keyPattern(); {
	case s.pattern == nil:
		out.set("additionalProperties", false)
	case len(s.names) > 0: // x-
		patterns := &ordered{}
		patterns.set(key, g.constraint(value, owner))
		out.set("patternProperties", patterns)
		out.set("additionalProperties", false)
	default:
		out.set("additionalProperties", g.constraint(value, owner))
		if key != "" {
			names := &ordered{}
			names.set("pattern", key)
			out.set("propertyNames", names)
		}
	}
	if len(required) > 0 {
		out.set("required", required)
	}
	if one := exclusives[owner]; one != nil {
		out.set("oneOf", one)
	}
	return out
}

// scalarOf is the schema of a text or number. Where free text is wanted, a number or word of YAML's is taken as it is written.
func scalarOf(s *shape, free bool) *ordered {
	out := &ordered{}
	b := boundsOf(s.value)
	switch s.kinds {
	case cue.NullKind:
		out.set("type", "null")
	case cue.BoolKind:
		out.set("type", "boolean")
	case cue.IntKind, cue.NumberKind:
		out.set("type", map[cue.Kind]string{cue.IntKind: "integer", cue.NumberKind: "number"}[s.kinds])
		if b.hasMin && b.above {
			out.set("exclusiveMinimum", b.min)
		} else if b.hasMin {
			out.set("minimum", b.min)
		}
		if b.hasMax {
			out.set("maximum", b.max)
		}
	default:
		if out.set("type", "string"); free {
			out.set("type", []string{"string", "number", "boolean"})
		}
		if s.def == "#Glob" {
			out.set("type", []string{"string", "number", "boolean", "null"}) // a tool may be named null
		}
		if p := regexpOf(s.value); p != "" {
			out.set("pattern", p)
		}
	}
	return out
}

// leaf is one of the alternatives of a constraint: a fixed value or a kind of values.
type leaf struct {
	word any
	of   *shape
}

// leaves are the alternatives of a constraint, those of the definitions that it names included.
func leaves(v cue.Value) []leaf {
	named := definition(v)
	d := cue.Dereference(v)
	if op, args := d.Expr(); op == cue.OrOp {
		var out []leaf
		for _, a := range args {
			out = append(out, leaves(a)...)
		}
		return out
	}
	if d.IsConcrete() {
		if s, err := d.String(); err == nil {
			return []leaf{{word: s}}
		}
		if b, err := d.Bool(); err == nil {
			return []leaf{{word: b}}
		}
	}
	s := newShape(v)
	if named != "" && s.kinds != cue.StructKind {
		s = newShape(d)
		s.def = named
	}
	return []leaf{{of: s}}
}

// keyPattern is the pattern that the keys of a map match, "" for any, and the shape of its values.
func (s *shape) keyPattern() (key string, value *shape) {
	if s.pattern == nil {
		return "", nil
	}
	it, err := s.value.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		return "", s.pattern
	}
	for it.Next() {
		if sel := it.Selector(); sel.ConstraintType() == cue.PatternConstraint {
			return regexpOf(sel.Pattern()), s.pattern
		}
	}
	return "", s.pattern
}

// regexpOf is the pattern that a text must match, or "". Patterns of CUE (RE2) and of JSON Schema (ECMA 262) agree in what
// schema.cue uses.
func regexpOf(v cue.Value) string {
	op, args := cue.Dereference(v).Expr()
	switch op {
	case cue.RegexMatchOp:
		s, _ := args[len(args)-1].String() // of a constant pattern there is always one
		return s
	case cue.AndOp:
		for _, a := range args {
			if p := regexpOf(a); p != "" {
				return p
			}
		}
	}
	return ""
}

// ordered is a JSON object whose members stay in order.
type ordered struct{ members []member }

type member struct {
	name  string
	value any
}

func (o *ordered) set(name string, value any) {
	for i := range o.members {
		if o.members[i].name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

func (o *ordered) has(name string) bool {
	return slices.ContainsFunc(o.members, func(m member) bool { return m.name == name })
}

// MarshalJSON implements [json.Marshaler].
func (o *ordered) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o.members {
		if i > 0 {
			out.WriteByte(',')
		}
		for _, part := range []any{m.name, m.value} {
			encoder := json.NewEncoder(&out)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(part); err != nil {
				return nil, err
			}
			out.Truncate(out.Len() - 1) // the newline
			if part == any(m.name) {
				out.WriteByte(':')
			}
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
