package schema

import (
	_ "embed"
	"slices"
	"sync"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
)

//go:embed schema.cue
var schemaCUE []byte

//go:embed shield.cue
var shieldCUE []byte

// CUE returns the schema of the config, which is its reference manual.
func CUE() []byte { return slices.Clone(schemaCUE) }

// ShieldCUE returns the schema of configs in mcp-shield's spelling, which says of each key what it is in ours.
func ShieldCUE() []byte { return slices.Clone(shieldCUE) }

// role says how text in a place is read.
type role uint8

const (
	asDuration role = 1 << iota // "20s" stands for a number of seconds
	asBytes                     // "64MiB" stands for a number of bytes
	asCEL                       // an expression
)

// roles are those of the schema's definitions.
var roles = map[string]role{
	"#Timeout": asDuration, "#Wait": asDuration, "#TTL": asDuration,
	"#MessageBytes": asBytes, "#CacheBytes": asBytes,
	"#CEL": asCEL,
}

// shape is one place of the schema: the constraint itself, and what the walk needs to know of it. It is filled in when a file
// first comes to the place.
type shape struct {
	value cue.Value
	kinds cue.Kind
	role  role
	def   string // the definition that it names, or ""

	names    []string // of the fields, sorted
	required []string
	fields   map[string]*shape
	pattern  *shape // of keys that are not named; nil = there are none
	elem     *shape // of a list
	filled   bool

	wordList   []string // the fixed words that the place takes
	wordsKnown bool
}

// dialect is a compiled schema.
type dialect struct {
	file string
	text []byte
	once sync.Once
	ctx  *cue.Context
	root *shape
	mu   sync.Mutex // the context is not made for concurrent use
}

var (
	ours   = &dialect{file: "schema.cue", text: schemaCUE}
	shield = &dialect{file: "shield.cue", text: shieldCUE}
)

// config returns the shape of a whole file; the caller holds the lock.
func (d *dialect) config() *shape {
	d.once.Do(func() {
		d.ctx = cuecontext.New()
		v := d.ctx.CompileBytes(d.text, cue.Filename(d.file))
		d.root = newShape(v.LookupPath(cue.ParsePath("#Config")))
	})
	return d.root
}

func newShape(v cue.Value) *shape {
	s := &shape{value: v, kinds: v.IncompleteKind(), def: definition(v)}
	for _, alt := range alternatives(v) {
		s.role |= roles[definition(alt)]
	}
	return s
}

// definition is the name of the definition that a value refers to, or "".
func definition(v cue.Value) string {
	_, path := v.ReferencePath()
	if sel := path.Selectors(); len(sel) > 0 {
		return sel[len(sel)-1].String()
	}
	return ""
}

// alternatives returns the operands of a disjunction, or the value itself.
func alternatives(v cue.Value) []cue.Value {
	if definition(v) != "" {
		return []cue.Value{v}
	}
	if op, args := v.Expr(); op == cue.OrOp {
		return args
	}
	return []cue.Value{v}
}

// fill reads the fields or items of the shape.
func (s *shape) fill() *shape {
	if s.filled {
		return s
	}
	s.filled = true
	v := s.value
	if s.kinds != cue.StructKind {
		v = cue.Dereference(v) // a map is one of the alternatives that the definition has
	}
	if s.kinds&cue.StructKind != 0 {
		s.fields = map[string]*shape{}
		for _, alt := range alternatives(v) {
			if alt.IncompleteKind() != cue.StructKind {
				continue
			}
			s.readFields(alt)
		}
	}
	slices.Sort(s.names)
	if s.kinds&cue.ListKind != 0 {
		for _, alt := range alternatives(v) {
			if e := alt.LookupPath(cue.MakePath(cue.AnyIndex)); e.Exists() {
				s.elem = newShape(e)
			}
		}
	}
	return s
}

func (s *shape) readFields(v cue.Value) {
	it, err := v.Fields(cue.Optional(true), cue.Patterns(true))
	if err != nil {
		return
	}
	for it.Next() {
		if it.Selector().ConstraintType() == cue.PatternConstraint {
			if s.pattern == nil || s.pattern.kinds == cue.TopKind {
				s.pattern = newShape(it.Value())
			}
			continue
		}
		name := it.Selector().Unquoted()
		s.names = append(s.names, name)
		s.fields[name] = newShape(it.Value())
		if it.Selector().ConstraintType() == cue.RequiredConstraint {
			s.required = append(s.required, name)
		}
	}
}

// field returns the shape of a key, or nil if the schema has no such key.
func (s *shape) field(name string) *shape {
	s.fill()
	if f := s.fields[name]; f != nil {
		return f
	}
	if s.pattern != nil && s.value.Allows(cue.Str(name)) {
		return s.pattern
	}
	return nil
}
