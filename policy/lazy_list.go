package policy

import (
	"math"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// list is a JSON array as CEL sees it, indexed and decoded as late as [object] is.
type list struct {
	raw      []byte
	depth    int
	state    indexState
	elements []element
}

type element struct {
	start, end int32
	value      ref.Val // once decoded
}

func (l *list) index() bool {
	if l.state == unindexed {
		l.state = malformed
		if len(l.raw) <= math.MaxInt32 && l.scan() {
			l.state = indexed
		}
	}
	return l.state == indexed
}

func (l *list) scan() bool {
	b := l.raw
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return true
	}
	for {
		end, ok := scanValue(b, i)
		if !ok {
			return false
		}
		l.elements = append(l.elements, element{start: int32(i), end: int32(end)})
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ',' {
			return i < len(b) && b[i] == ']'
		}
		i = skipSpace(b, i+1)
	}
}

func (l *list) at(i int) ref.Val {
	e := &l.elements[i]
	if e.value == nil {
		v := decode(l.raw[e.start:e.end], l.depth+1)
		if types.IsError(v) {
			return v
		}
		e.value = v
	}
	return e.value
}

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	if !l.index() {
		return malformedErr()
	}
	i, err := types.IndexOrError(index)
	if err != nil {
		return types.WrapErr(err)
	}
	if i < 0 || i >= len(l.elements) {
		return types.NewErr("index out of bounds: %d", i)
	}
	return l.at(i)
}

// Size implements traits.Sizer.
func (l *list) Size() ref.Val {
	l.index()
	return types.Int(len(l.elements))
}

// Contains implements traits.Container.
func (l *list) Contains(v ref.Val) ref.Val {
	if !l.index() {
		return malformedErr()
	}
	if types.IsUnknownOrError(v) {
		return v
	}
	for i := range l.elements {
		e := l.at(i)
		if types.IsError(e) {
			return e
		}
		if types.Equal(e, v) == types.True {
			return types.True
		}
	}
	return types.False
}

// Add implements traits.Adder.
func (l *list) Add(other ref.Val) ref.Val {
	whole, ok := l.whole().(traits.Lister)
	if !ok {
		return l.whole()
	}
	return whole.Add(other)
}

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator {
	l.index()
	return &listIterator{l: l}
}

type listIterator struct {
	l    *list
	next int
}

func (it *listIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.l.elements)) }

func (it *listIterator) Next() ref.Val {
	if it.next >= len(it.l.elements) {
		return nil
	}
	it.next++
	return it.l.at(it.next - 1)
}

func (it *listIterator) Type() ref.Type        { return types.IteratorType }
func (it *listIterator) Value() any            { return it }
func (it *listIterator) Equal(ref.Val) ref.Val { return types.False }
func (it *listIterator) ConvertToType(ref.Type) ref.Val {
	return types.NewErr("iterators do not convert")
}
func (it *listIterator) ConvertToNative(reflect.Type) (any, error) {
	return nil, errConvert
}

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l }

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val {
	if !l.index() {
		return malformedErr()
	}
	o, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if size, ok := o.Size().(types.Int); !ok || int(size) != len(l.elements) {
		return types.False
	}
	for i := range l.elements {
		if eq := types.Equal(l.at(i), o.Get(types.Int(i))); eq != types.True {
			return eq
		}
	}
	return types.True
}

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from list to %q", t.TypeName())
}

// ConvertToNative implements ref.Val.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	return l.whole().ConvertToNative(t)
}

// whole is the list as one of cel-go's own.
func (l *list) whole() ref.Val {
	if !l.index() {
		return malformedErr()
	}
	values := make([]ref.Val, len(l.elements))
	for i := range l.elements {
		if values[i] = l.at(i); types.IsError(values[i]) {
			return values[i]
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

var _ traits.Lister = (*list)(nil)
