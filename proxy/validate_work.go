package proxy

import (
	"github.com/google/jsonschema-go/jsonschema"
)

// work counts, before a value is held against a schema, what that can take at most; the library cannot be stopped in the middle. The
// unit is a subschema that a value is held against, or as much as takes about the same time or memory.
type work struct {
	parts *parts
	left  int
}

// affords reports whether there is enough left to hold v against s. It takes every alternative as tried to its end, save those whose
// type rules the value out at once.
func (w *work) affords(s *jsonschema.Schema, v any, depth int) bool {
	if s == nil {
		return true
	}
	info := w.parts.of[s]
	if info == nil { // within false
		return w.spend(1)
	}
	if depth > maxCheckDepth || !w.spend(info.weight) {
		return false
	}
	for _, target := range info.refs {
		if !w.affords(target, v, depth+1) {
			return false
		}
	}
	if !admits(s, v) {
		return true
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not, s.If, s.Then, s.Else}} {
		for _, child := range list {
			if !w.affords(child, v, depth+1) {
				return false
			}
		}
	}
	switch v := v.(type) {
	case text:
		return s.Pattern == "" && s.MinLength == nil && s.MaxLength == nil || w.spend(len(v)/64+len(v)*info.patterns/512)
	case array:
		return w.affordsItems(s, v, depth+1)
	case object:
		return w.affordsProperties(s, info, v, depth+1)
	}
	return true
}

func (w *work) affordsItems(s *jsonschema.Schema, v array, depth int) bool {
	if s.UniqueItems && !w.affordsUnique(v) {
		return false
	}
	first := max(len(s.PrefixItems), len(s.ItemsArray))
	for i, item := range v {
		if i < len(s.PrefixItems) && !w.affords(s.PrefixItems[i], item, depth) ||
			i < len(s.ItemsArray) && !w.affords(s.ItemsArray[i], item, depth) ||
			i >= first && !(w.affords(s.Items, item, depth) && w.affords(s.AdditionalItems, item, depth)) ||
			!w.affords(s.Contains, item, depth) || !w.affords(s.UnevaluatedItems, item, depth) {
			return false
		}
	}
	return w.spend(len(v) / 64)
}

// affordsUnique counts the hash of every item; those that hold others can be made to have the same one.
func (w *work) affordsUnique(v array) bool {
	holders := 0
	for _, item := range v {
		switch item.(type) {
		case array, object:
			holders++
		}
	}
	return w.spend(size(v)/8) && w.spend(holders*min(holders, maxValueBytes)/32)
}

func (w *work) affordsProperties(s *jsonschema.Schema, info *part, v object, depth int) bool {
	if !w.spend(len(v) / 8) {
		return false
	}
	for key, value := range v {
		if !w.spend(len(key)/64 + (len(key)+1)*info.patterns/512) {
			return false
		}
		child, known := s.Properties[key]
		if known && !w.affords(child, value, depth) ||
			!known && !w.affords(s.AdditionalProperties, value, depth) ||
			!w.affords(s.PropertyNames, text(key), depth) || !w.affords(s.UnevaluatedProperties, value, depth) {
			return false
		}
		for _, child := range s.PatternProperties {
			if !w.affords(child, value, depth) {
				return false
			}
		}
	}
	for _, children := range []map[string]*jsonschema.Schema{s.DependentSchemas, s.DependencySchemas} {
		for key, child := range children {
			if _, has := v[key]; has && !w.affords(child, v, depth) {
				return false
			}
		}
	}
	return true
}

func (w *work) spend(n int) bool {
	w.left -= n
	return w.left >= 0
}

// admits reports whether the type of v is one that s allows, as far as that rules out the rest of s.
func admits(s *jsonschema.Schema, v any) bool {
	if s.Type == "" && s.Types == nil {
		return true
	}
	for _, name := range append([]string{s.Type}, s.Types...) {
		switch v.(type) {
		case nil:
			if name == "null" {
				return true
			}
		case bool:
			if name == "boolean" {
				return true
			}
		case text:
			if name == "string" {
				return true
			}
		case array:
			if name == "array" {
				return true
			}
		case object:
			if name == "object" {
				return true
			}
		default:
			if name == "number" || name == "integer" {
				return true
			}
		}
	}
	return false
}

// size measures a value: one for each of what it holds, and for 8 bytes of text.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case text:
		n += len(v) / 8
	case array:
		for _, item := range v {
			n += size(item)
		}
	case object:
		for key, value := range v {
			n += 1 + len(key)/8 + size(value)
		}
	}
	return n
}
