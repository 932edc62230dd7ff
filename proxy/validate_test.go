package proxy

import (
	"strings"
	"testing"
)

func TestStructuredContentIsHeldAgainstTheSchemaOfTheTool(t *testing.T) {
	for _, tt := range []struct {
		name, schema, value, wrong string
	}{
		{"what matches", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":1}`, ""},
		{"another type", `{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":"one"}`, `at '/n': type: a string has type "string", want "integer"`},
		{"what is missing", `{"type":"object","required":["n"]}`, `{}`, `at '': required: missing properties: ["n"]`},
		{"what 2020-12 brought", `{"prefixItems":[{"type":"string"}],"items":false}`, `["a",1]`, "at '/*': nothing is allowed here"},
		{"the dialect that the schema names", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`, `at '/0': type: 1 has type "integer", want "string"`},
		{"a reference within the schema", `{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, `{"x":1}`, `at '/x': type: 1 has type "integer", want "string"`},
		{"a large integer", `{"const":9007199254740993}`, `9007199254740992`, "at '': const: 9007199254740992 does not equal 9007199254740993"},
		{"a large integer among others", `{"enum":["a",9007199254740993]}`, `9007199254740992`, "at '': enum: 9007199254740992 does not equal any of: [a 9007199254740993]"},
		{"items", `{"properties":{"a/b":{"items":{"properties":{"n":{"type":["null","number"]}}}}}}`, `{"a/b":[{"n":1},{"n":"x"}]}`, `at '/a~1b/*/n': type: a string has type "string", want one of "null, number"`},
		{"a reference to a property", `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`, `{"b":1}`, `at '/b': type: 1 has type "integer", want "string"`},
		{"an anchor", `{"$id":"https://example.com/a","$defs":{"a":{"$anchor":"x","const":null}},"not":{"$ref":"https://example.com/a#x"}}`, `null`, "at '': not: validated against a subschema"},
		{"a part of a name of its own", `{"items":{"$id":"node","properties":{"of":{"$ref":"#/$defs/n%20"},"next":{"$ref":"node"}},"$defs":{"n ":{"type":"string"}}}}`,
			`[{"next":{"of":1}}]`, `at '/*/next/of': type: 1 has type "integer", want "string"`},
		{"draft-07 without its hash", `{"$schema":"http://json-schema.org/draft-07/schema","dependencies":{"a":["b"]}}`, `{"a":1}`, `at '': dependentRequired["a"]: missing properties ["b"]`},
		{"alternatives", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, "at '': anyOf: did not validate against any"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check, err := compileSchema([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			if wrong, err := check([]byte(tt.value)); err != nil || wrong != tt.wrong {
				t.Errorf("it says %q, %v; want %q", wrong, err, tt.wrong)
			}
		})
	}
}

// Nothing is loaded for a schema: neither from the network nor from this machine.
func TestSchemasThatCannotBeUsedAreRefused(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"a reference to the network", `{"$ref":"https://example.com/schema.json"}`, "not followed"},
		{"a reference to a file", `{"$ref":"file:///etc/passwd"}`, "not followed"},
		{"a metaschema of the network", `{"$schema":"https://example.com/meta.json"}`, "not followed"},
		{"no schema", `{"type":"colour"}`, "type"},
		{"an array", `[]`, "object or a boolean"},
		{"a keyword's wrong value", `{"properties":{"n":{"minimum":"1"}}}`, "minimum cannot be a JSON string"},
		{"null for a part", `{"items":null}`, "at '/items'"},
		{"an unknown dialect", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "draft-07"},
		{"a reference that leads nowhere", `{"$ref":"#/$defs/a"}`, "leads nowhere"},
		{"a dynamic reference across parts", `{"items":{"$id":"https://example.com/items","$dynamicRef":"#a","$dynamicAnchor":"a"}}`, "$dynamicRef"},
		{"an anchor twice", `{"anyOf":[{"$anchor":"a"},{"$anchor":"a"}]}`, `name "#a"`},
		{"too deep", strings.Repeat(`{"items":`, maxSchemaDepth) + `{}` + strings.Repeat(`}`, maxSchemaDepth), "deep"},
		{"a pattern that Go has not", `{"pattern":"(?=a)"}`, "regex"},
		{"too many parts", `{"allOf":[` + strings.Repeat("{},", maxSchemaMaps) + `{}]}`, "parts"},
		{"too large", `{"description":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := compileSchema([]byte(tt.schema)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("it says %v; want %q", err, tt.want)
			}
		})
	}
}

// A schema that takes for ever is given up, and so is content that is too large; neither counts as wrong.
func TestChecksAreBounded(t *testing.T) {
	for _, tt := range []struct{ name, schema, value string }{
		{"alternatives in alternatives", `{"items":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]},"not":{"type":"string"}}`,
			strings.Repeat("[", 40) + `"x"` + strings.Repeat("]", 40)},
		{"a reference to itself", `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{"$ref":"#/$defs/b"}},"b":{"$ref":"#/$defs/b"}}}`, `[1]`},
		{"patterns of a long text", `{"items":{"anyOf":[` + strings.Repeat(`{"pattern":"^(a{1,30}){1,30}$"},`, 50) + `{}]}}`, `["` + strings.Repeat("a", 1<<16) + `"]`},
		{"items that are to differ", `{"uniqueItems":true}`, `[` + strings.Repeat("[],", 1<<13) + `[]]`},
		{"too large", `{}`, `"` + strings.Repeat("x", maxValueBytes) + `"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check, err := compileSchema([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // it starts anew each time
				if wrong, err := check([]byte(tt.value)); err == nil || wrong != "" {
					t.Errorf("it says %q, %v; want an error", wrong, err)
				}
			}
			if wrong, err := check([]byte(`[]`)); err != nil || wrong != "" {
				t.Errorf("of another value it says %q, %v", wrong, err)
			}
		})
	}
}
