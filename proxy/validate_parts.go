package proxy

import (
	"errors"
	"fmt"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// part is what is known of a subschema besides what it says.
type part struct {
	refs     []*jsonschema.Schema // what its $ref and $dynamicRef point to
	weight   int                  // work to hold any value against its own keywords
	patterns int                  // size of the programs of its regular expressions
	scope    scope
}

// parts are all subschemas of a schema. Names are resolved here and made JSON Pointers from the root, for the library alone would
// not say what a reference points to.
type parts struct {
	of      map[*jsonschema.Schema]*part
	at      map[string]*jsonschema.Schema // by JSON Pointer, "" = the root
	named   map[string]string             // JSON Pointer by the URI of $id, and by that of $anchor
	draft07 bool
	dynamic bool // there is a $dynamicRef
	scoped  bool // there is an $id below the root
}

// partsOf reads a schema that the library has decoded, next to what it was decoded from: it refuses what the library lets pass,
// puts exact numbers into const and enum, and resolves the references.
func partsOf(root *jsonschema.Schema, doc any) (*parts, error) {
	p := &parts{of: map[*jsonschema.Schema]*part{}, at: map[string]*jsonschema.Schema{}, named: map[string]string{}, draft07: root.Schema != ""}
	if err := p.add(root, doc, "", scope{uri: &url.URL{}}); err != nil {
		return nil, err
	}
	if p.dynamic && p.scoped {
		return nil, errors.New("a $dynamicRef is not followed where parts have an $id of their own")
	}
	for s := range p.of {
		if err := errors.Join(p.resolve(s, &s.Ref), p.resolve(s, &s.DynamicRef)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// scope is the closest part around that has an $id, or the root.
type scope struct {
	uri *url.URL
	at  string // JSON Pointer
}

// name gives a part the names that it asks for, and returns the scope of what is in it.
func (p *parts) name(s *jsonschema.Schema, path string, in scope) (scope, error) {
	anchors := []string{s.Anchor, s.DynamicAnchor}
	if id, err := url.Parse(s.ID); err != nil {
		return in, fmt.Errorf("at '%s': $id %q is no URI", path, oneLine(s.ID))
	} else if p.draft07 && s.Ref != "" {
		anchors = nil // a $ref is alone
	} else if p.draft07 && strings.HasPrefix(s.ID, "#") {
		anchors = []string{id.Fragment}
	} else if s.ID != "" {
		id.Fragment, id.RawFragment = "", ""
		in = scope{uri: in.uri.ResolveReference(id), at: path}
	}
	names := []string{}
	if in.at == path {
		names = append(names, in.uri.String())
	}
	for _, anchor := range slices.Compact(anchors) {
		if anchor != "" {
			names = append(names, in.uri.String()+"#"+anchor)
		}
	}
	for _, name := range names {
		if _, taken := p.named[name]; taken {
			return in, fmt.Errorf("at '%s': another part has the name %q, too", path, oneLine(name))
		}
		p.named[name] = path
	}
	s.ID, s.Anchor = "", ""
	p.dynamic = p.dynamic || s.DynamicRef != ""
	p.scoped = p.scoped || in.at != ""
	return in, nil
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func (p *parts) add(s *jsonschema.Schema, doc any, path string, in scope) error {
	keywords, isObject := doc.(object)
	if _, isBool := doc.(bool); !isObject && !isBool {
		return fmt.Errorf("at '%s': a schema is an object or a boolean", path)
	}
	if len(path) > maxSchemaPath {
		return fmt.Errorf("the names of its parts are too long: %s", oneLine(path))
	}
	if s.Schema != "" && path != "" {
		return fmt.Errorf("at '%s': a $schema within a schema is not followed", path)
	}
	for _, name := range append(slices.Clone(s.Types), s.Type) {
		if name != "" && !slices.Contains(typeNames, name) {
			return fmt.Errorf("at '%s': %q is no type", path, oneLine(name))
		}
	}
	info := &part{weight: 1 + len(path)/64}
	p.of[s], p.at[path] = info, s
	in, err := p.name(s, path, in)
	if err != nil {
		return err
	}
	info.scope = in
	s.Enum, s.Const = nil, nil
	if values, ok := keywords["enum"].(array); ok {
		s.Enum = untyped(values).([]any)
		info.weight += size(values) / 8
	}
	if value, ok := keywords["const"]; ok {
		info.weight += size(value) / 8
		value = untyped(value)
		s.Const = &value
	}
	info.weight += (len(s.Required) + len(s.Properties) + len(s.DependentRequired) + len(s.DependencyStrings)) / 8
	for _, list := range s.DependentRequired {
		info.weight += len(list) / 8
	}
	for _, list := range s.DependencyStrings {
		info.weight += len(list) / 8
	}
	if err := info.measure(s); err != nil {
		return fmt.Errorf("at '%s': %s", path, oneLine(err.Error()))
	}
	return p.addChildren(s, keywords, path, in)
}

func (p *parts) addChildren(s *jsonschema.Schema, keywords object, path string, in scope) error {
	for name, child := range map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems,
		"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames, "unevaluatedProperties": s.UnevaluatedProperties,
		"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else, "contentSchema": s.ContentSchema,
	} {
		if child == nil || keywords == nil { // the library has a part in false
			continue
		}
		if err := p.add(child, keywords[name], path+"/"+name, in); err != nil {
			return err
		}
	}
	for name, children := range map[string][]*jsonschema.Schema{
		"prefixItems": s.PrefixItems, "items": s.ItemsArray, "allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf,
	} {
		docs, _ := keywords[name].(array)
		for i, child := range children {
			if child == nil || i >= len(docs) {
				return fmt.Errorf("at '%s/%s': a schema is an object or a boolean", path, name)
			}
			if err := p.add(child, docs[i], path+"/"+name+"/"+strconv.Itoa(i), in); err != nil {
				return err
			}
		}
	}
	for name, children := range map[string]map[string]*jsonschema.Schema{
		"$defs": s.Defs, "definitions": s.Definitions, "dependencies": s.DependencySchemas, "properties": s.Properties,
		"patternProperties": s.PatternProperties, "dependentSchemas": s.DependentSchemas,
	} {
		docs, _ := keywords[name].(object)
		for key, child := range children {
			if child == nil {
				return fmt.Errorf("at '%s/%s': a schema is an object or a boolean", path, name)
			}
			if err := p.add(child, docs[key], path+"/"+name+"/"+pointerEscaper.Replace(key), in); err != nil {
				return err
			}
		}
	}
	return nil
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// measure sums up the programs of a subschema's regular expressions.
func (info *part) measure(s *jsonschema.Schema) error {
	expressions := []string{s.Pattern}
	for e := range s.PatternProperties {
		expressions = append(expressions, e)
	}
	for _, e := range expressions {
		if e == "" {
			continue
		}
		tree, err := syntax.Parse(e, syntax.Perl)
		if err != nil {
			return fmt.Errorf("regex %q: %w", e, err)
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			return fmt.Errorf("regex %q: %w", e, err)
		}
		info.patterns += len(program.Inst)
	}
	return nil
}

// resolve finds what a reference of s points to, and rewrites it to be one within the schema.
func (p *parts) resolve(s *jsonschema.Schema, ref *string) error {
	if *ref == "" {
		return nil
	}
	uri, err := url.Parse(*ref)
	if err != nil {
		return fmt.Errorf("the reference %q is malformed", oneLine(*ref))
	}
	uri = p.of[s].scope.uri.ResolveReference(uri)
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	path, known := p.named[uri.String()]
	if !known {
		return fmt.Errorf("references to other documents are not followed: %q", oneLine(*ref))
	}
	if fragment == "" || fragment[0] == '/' {
		path += fragment
	} else if path, known = p.named[uri.String()+"#"+fragment]; !known {
		return fmt.Errorf("the reference %q leads nowhere", oneLine(*ref))
	}
	target := p.at[path]
	if target == nil {
		return fmt.Errorf("the reference %q leads nowhere", oneLine(*ref))
	}
	if ref == &s.Ref || target.DynamicAnchor != fragment {
		*ref = "#" + (&url.URL{Fragment: path}).EscapedFragment()
	} else {
		*ref = "#" + fragment
	}
	p.of[s].refs = append(p.of[s].refs, target)
	return nil
}
