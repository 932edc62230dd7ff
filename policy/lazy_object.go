package policy

import (
	"bytes"
	"math"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// object is a JSON object as CEL sees it. It is indexed when something is first asked of it, and a member is decoded when it is
// first read. Not safe for concurrent use: an object belongs to one call.
type object struct {
	raw     []byte
	depth   int
	state   indexState
	members []member       // in the order of the text; of a repeated name the last value counts, as in encoding/json
	byName  map[string]int // of a large object only
}

type indexState uint8

const (
	unindexed indexState = iota
	indexed
	malformed
)

// member is a name and a value within the object's text.
type member struct {
	nameStart, nameEnd   int32 // without the quotes
	valueStart, valueEnd int32
	name                 string // decoded; set only where the text holds an escape
	escaped              bool
	value                ref.Val // once decoded
}

// largeObject is the number of members from which names are looked up in a map.
const largeObject = 24

// reset makes o the object of raw; nil stands for an empty object. A buffer of usual size is kept.
func (o *object) reset(raw []byte) {
	clear(o.members)
	if cap(o.members) > 256 {
		o.members = nil
	}
	o.raw, o.depth, o.state, o.members, o.byName = raw, 0, unindexed, o.members[:0], nil
	if raw == nil {
		o.state = indexed
	}
}

func (o *object) index() bool {
	if o.state == unindexed {
		o.state = malformed
		if len(o.raw) <= math.MaxInt32 && o.scan() {
			o.state = indexed
		}
	}
	return o.state == indexed
}

func (o *object) scan() bool {
	b := o.raw
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for i < len(b) && b[i] == '"' {
		end, escaped, ok := scanString(b, i)
		if !ok {
			return false
		}
		m := member{nameStart: int32(i + 1), nameEnd: int32(end - 1), escaped: escaped}
		if escaped {
			if m.name, ok = unquote(b[i:end]); !ok {
				return false
			}
		}
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
		if end, ok = scanValue(b, i); !ok {
			return false
		}
		m.valueStart, m.valueEnd = int32(i), int32(end)
		o.add(m)
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return i < len(b) && b[i] == '}'
		}
		i = skipSpace(b, i+1)
	}
	return false
}

// add appends m, or puts it in the place of the member of the same name.
func (o *object) add(m member) {
	name := o.nameBytes(&m)
	if i := o.lookup(name); i >= 0 {
		o.members[i] = m
		return
	}
	o.members = append(o.members, m)
	if o.byName != nil {
		o.byName[string(name)] = len(o.members) - 1
	} else if len(o.members) == largeObject {
		o.byName = make(map[string]int, 2*largeObject)
		for i := range o.members {
			o.byName[string(o.nameBytes(&o.members[i]))] = i
		}
	}
}

func (o *object) nameBytes(m *member) []byte {
	if m.escaped {
		return []byte(m.name)
	}
	return o.raw[m.nameStart:m.nameEnd]
}

// lookup returns the index of the member of that name, or -1.
func (o *object) lookup(name []byte) int {
	if o.byName != nil {
		if i, ok := o.byName[string(name)]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		m := &o.members[i]
		if m.escaped {
			if m.name == string(name) {
				return i
			}
		} else if bytes.Equal(o.raw[m.nameStart:m.nameEnd], name) {
			return i
		}
	}
	return -1
}

// find is lookup for the name that an expression gives. It does not copy the name.
func (o *object) find(name string) (ref.Val, bool) {
	if !o.index() {
		return malformedErr(), false
	}
	i := -1
	if o.byName != nil {
		if at, ok := o.byName[name]; ok {
			i = at
		}
	} else {
		for j := range o.members {
			m := &o.members[j]
			if m.escaped && m.name == name || !m.escaped && string(o.raw[m.nameStart:m.nameEnd]) == name {
				i = j
				break
			}
		}
	}
	if i < 0 {
		return nil, false
	}
	return o.at(i), true
}

func (o *object) at(i int) ref.Val {
	m := &o.members[i]
	if m.value == nil {
		v := decode(o.raw[m.valueStart:m.valueEnd], o.depth+1)
		if types.IsError(v) {
			return v // labelled by the expression that meets it, so each needs an error of its own
		}
		m.value = v
	}
	return m.value
}

func (o *object) nameAt(i int) string {
	m := &o.members[i]
	if m.escaped {
		return m.name
	}
	return string(o.raw[m.nameStart:m.nameEnd])
}

func malformedErr() ref.Val { return types.NewErr("malformed JSON") }

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		if types.IsUnknownOrError(key) {
			return key, false
		}
		return nil, false // a JSON object has no keys of another type
	}
	return o.find(string(name))
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	v, ok := o.Find(key)
	switch {
	case ok:
		return v
	case v != nil:
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	v, ok := o.Find(key)
	if !ok && v != nil {
		return v
	}
	return types.Bool(ok)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val {
	o.index()
	return types.Int(len(o.members))
}

// Iterator implements traits.Iterable.
func (o *object) Iterator() traits.Iterator {
	o.index()
	return &objectIterator{o: o}
}

type objectIterator struct {
	o    *object
	next int
}

func (it *objectIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.o.members)) }

func (it *objectIterator) Next() ref.Val {
	if it.next >= len(it.o.members) {
		return nil
	}
	it.next++
	return types.String(it.o.nameAt(it.next - 1))
}

func (it *objectIterator) Type() ref.Type        { return types.IteratorType }
func (it *objectIterator) Value() any            { return it }
func (it *objectIterator) Equal(ref.Val) ref.Val { return types.False }
func (it *objectIterator) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("iterators do not convert")
}
func (it *objectIterator) ConvertToNative(reflect.Type) (any, error) {
	return nil, errConvert
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o }

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val {
	if !o.index() {
		return malformedErr()
	}
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	if size, ok := m.Size().(types.Int); !ok || int(size) != len(o.members) {
		return types.False
	}
	for i := range o.members {
		v, found := m.Find(types.String(o.nameAt(i)))
		if !found {
			if v != nil && types.IsUnknownOrError(v) {
				return v
			}
			return types.False
		}
		if eq := types.Equal(o.at(i), v); eq != types.True {
			return eq
		}
	}
	return types.True
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from map to %q", t.TypeName())
}

// ConvertToNative implements ref.Val. It is for functions that want the whole value, such as json.encode.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return o.whole().ConvertToNative(t)
}

// whole is the object as one of cel-go's own maps.
func (o *object) whole() ref.Val {
	if !o.index() {
		return malformedErr()
	}
	m := make(map[ref.Val]ref.Val, len(o.members))
	for i := range o.members {
		v := o.at(i)
		if types.IsError(v) {
			return v
		}
		m[types.String(o.nameAt(i))] = v
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, m)
}

var _ traits.Mapper = (*object)(nil)
