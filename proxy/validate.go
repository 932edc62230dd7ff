package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Bounds of what a server may have us compute. Schemas of real tools stay far below them.
const (
	maxSchemaBytes = 512 << 10
	maxSchemaMaps  = 4096    // objects in a schema
	maxSchemaDepth = 64      // of what a schema nests; the library reads a part once for every level above it
	maxSchemaPath  = 1 << 10 // bytes of a JSON Pointer into a schema
	maxValueBytes  = 8 << 20 // structured content that is held against a schema
	maxCheckWork   = 1 << 17 // see work: alternatives in alternatives multiply
	maxCheckDepth  = 128     // subschemas within each other while a value is held against them
	maxFaultBytes  = 400     // of the words about what does not match
)

// compileSchema makes a check of a tool's outputSchema: JSON Schema 2020-12, or draft-07 where $schema says so. Nothing is ever
// loaded for a $ref; one that points outside of the schema makes it unusable, as does a $dynamicRef where parts have an $id of their own.
//
// Integers of up to 64 bits are exact in values, const and enum. The limits of minimum, maximum and their kin, and all other
// numbers, are rounded to a float64.
func compileSchema(text []byte) (engine.CheckValue, error) {
	switch {
	case len(text) > maxSchemaBytes:
		return nil, fmt.Errorf("it is larger than %d KiB", maxSchemaBytes>>10)
	case bytes.Count(text, []byte("{")) > maxSchemaMaps:
		return nil, fmt.Errorf("it has more than %d parts", maxSchemaMaps)
	case nesting(text) > maxSchemaDepth:
		return nil, fmt.Errorf("it nests more than %d deep", maxSchemaDepth)
	}
	doc, err := decodeExactly(text)
	if err != nil {
		return nil, err
	}
	root := &jsonschema.Schema{}
	if err := json.Unmarshal(text, root); err != nil {
		return nil, misplaced(err)
	}
	if root.Schema, err = dialect(root.Schema); err != nil {
		return nil, err
	}
	parts, err := partsOf(root, doc)
	if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, errors.New(oneLine(err.Error()))
	}
	return func(value []byte) (wrong string, err error) {
		if len(value) > maxValueBytes {
			return "", fmt.Errorf("structuredContent is larger than %d MiB", maxValueBytes>>20)
		}
		v, err := decodeExactly(value)
		if err != nil {
			return "", err
		}
		if w := (work{parts: parts, left: maxCheckWork}); !w.affords(root, v, 0) {
			return "", errors.New("the tool's outputSchema takes too long to check")
		}
		return parts.fault(resolved.Validate(v)), nil
	}, nil
}

// dialect returns the name that the library knows a dialect by.
func dialect(uri string) (string, error) {
	switch strings.TrimSuffix(uri, "#") {
	case "", "https://json-schema.org/draft/2020-12/schema":
		return "", nil
	case "http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema":
		return "http://json-schema.org/draft-07/schema#", nil
	}
	return "", fmt.Errorf("$schema %q is not followed: JSON Schema 2020-12 and draft-07 are known", oneLine(uri))
}

// misplaced says what keyword of a schema has a value that it cannot have.
func misplaced(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return errors.New(oneLine(err.Error()))
	case wrong.Field == "":
		return fmt.Errorf("a schema is an object or a boolean, not a JSON %s", wrong.Value)
	}
	return fmt.Errorf("%s cannot be a JSON %s", oneLine(wrong.Field), wrong.Value)
}

// oneLine fits what a library says into a log record.
func oneLine(s string) string {
	if len(s) > 4*maxFaultBytes {
		s = s[:4*maxFaultBytes]
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxFaultBytes {
		s = strings.ToValidUTF8(s[:maxFaultBytes], "") + "…"
	}
	return s
}
