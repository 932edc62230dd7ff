package policy

import (
	"encoding/json"
	"strings"
)

// argSchema is what an inputSchema says about one value: only what concerns names.
type argSchema struct {
	properties map[string]*argSchema
	required   map[string]bool
	open       bool // it may hold members that are not listed
	few        bool // it has but a few values: an enum, a constant, a bool
}

// maxSchemaDepth bounds how deep an inputSchema is read.
const maxSchemaDepth = 8

// readSchema reads an inputSchema; nil = it says nothing that can be used.
func readSchema(raw []byte) *argSchema {
	var root any
	if len(raw) == 0 || json.Unmarshal(raw, &root) != nil {
		return nil
	}
	reader := schemaReader{root: root, budget: 20_000}
	return reader.read(root, 0)
}

type schemaReader struct {
	root   any
	budget int // of nodes: references may repeat what they refer to
}

// read returns nil where anything is possible.
func (r *schemaReader) read(node any, depth int) *argSchema {
	m, ok := node.(map[string]any)
	if r.budget--; !ok || depth > maxSchemaDepth || r.budget < 0 {
		return nil
	}
	out := &argSchema{properties: map[string]*argSchema{}, required: map[string]bool{}}
	_, isEnum := m["enum"]
	_, isConst := m["const"]
	out.few = isEnum || isConst || m["type"] == "boolean"
	properties, listed := m["properties"].(map[string]any)
	for name, p := range properties {
		sub := r.read(p, depth+1)
		if sub == nil {
			sub = &argSchema{open: true}
		}
		out.properties[name] = sub
	}
	if list, ok := m["required"].([]any); ok {
		for _, name := range list {
			if s, ok := name.(string); ok {
				out.required[s] = true
			}
		}
	}
	additional, stated := m["additionalProperties"]
	_, patterns := m["patternProperties"]
	out.open = patterns || stated && additional != false || !listed && !stated
	for _, part := range r.parts(m) {
		sub := r.read(part.schema, depth+1)
		if sub == nil {
			out.open = true
			continue
		}
		listed = listed || len(sub.properties) > 0
		for name, p := range sub.properties {
			if out.properties[name] == nil {
				out.properties[name] = p
			}
		}
		if part.always {
			for name := range sub.required {
				out.required[name] = true
			}
			out.few = out.few || sub.few
		}
		if !sub.open && len(sub.properties) > 0 && !stated && !patterns {
			out.open = false
		}
	}
	return out
}

type schemaPart struct {
	schema any
	always bool // it always applies
}

// parts are the schemas that a schema is made of beside its own words.
func (r *schemaReader) parts(m map[string]any) []schemaPart {
	var parts []schemaPart
	if ref, ok := m["$ref"].(string); ok {
		parts = append(parts, schemaPart{r.resolve(ref), true})
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := m[key].([]any); ok {
			for _, s := range list {
				parts = append(parts, schemaPart{s, key == "allOf"})
			}
		}
	}
	for _, key := range []string{"then", "else"} {
		if s, ok := m[key]; ok {
			parts = append(parts, schemaPart{s, false})
		}
	}
	return parts
}

// resolve follows a reference within the document: "#/$defs/order".
func (r *schemaReader) resolve(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	node := r.root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		m, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return node
}

// schemaOf is the inputSchema of a tool of the snapshot, read once; nil = not known.
func (l *linter) schemaOf(sp *space) *argSchema {
	if sp.info == nil {
		return nil
	}
	if l.schemas == nil {
		l.schemas = map[*ToolInfo]*argSchema{}
	}
	s, ok := l.schemas[sp.info]
	if !ok {
		s = readSchema(sp.info.InputSchema)
		l.schemas[sp.info] = s
	}
	return s
}
