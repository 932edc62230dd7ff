package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// maxDuration is far beyond any use: a longer one is a slip of units.
const maxDuration = 366 * 24 * time.Hour

// maxRetries is the most that a rule can ask for; see the table of decisions.
const maxRetries = 10

func toBool(v ref.Val) (bool, error) {
	if b, ok := v.(types.Bool); ok {
		return bool(b), nil
	}
	return false, wrongType("a bool", v)
}

// toDuration takes a CEL duration or a number of seconds. A negative one counts as 0.
func toDuration(v ref.Val) (time.Duration, error) {
	var d time.Duration
	switch v := v.(type) {
	case types.Duration:
		d = v.Duration
	case types.Int:
		if v > types.Int(maxDuration/time.Second) {
			return 0, fmt.Errorf("a duration of %d seconds is longer than a year", int64(v))
		}
		d = time.Duration(max(v, 0)) * time.Second
	case types.Uint:
		if v > types.Uint(maxDuration/time.Second) {
			return 0, fmt.Errorf("a duration of %d seconds is longer than a year", uint64(v))
		}
		d = time.Duration(v) * time.Second
	case types.Double:
		f := float64(v)
		if math.IsNaN(f) || f > maxDuration.Seconds() {
			return 0, fmt.Errorf("%v is no number of seconds", f)
		}
		d = time.Duration(max(f, 0) * float64(time.Second))
	case types.String:
		return 0, fmt.Errorf("expected a duration or a number of seconds, got a string; write duration(…) around it")
	default:
		return 0, wrongType("a duration or a number of seconds", v)
	}
	if d > maxDuration {
		return 0, fmt.Errorf("the duration %v is longer than a year", d)
	}
	return max(d, 0), nil
}

// toTimeout is toDuration for a time that an attempt must fit into: none at all is no answer.
func toTimeout(v ref.Val) (time.Duration, error) {
	d, err := toDuration(v)
	if err == nil && d == 0 {
		return 0, errors.New("a timeout must be more than 0")
	}
	return d, err
}

// toCount takes a number of retries and clamps it to 0..10.
func toCount(v ref.Val) (int, error) {
	switch v := v.(type) {
	case types.Int:
		return int(min(max(v, 0), maxRetries)), nil
	case types.Uint:
		return int(min(v, maxRetries)), nil
	case types.Double:
		if f := float64(v); f == math.Trunc(f) && !math.IsInf(f, 0) {
			return int(min(max(f, 0), maxRetries)), nil
		}
		return 0, fmt.Errorf("expected a whole number, got %v", float64(v))
	}
	return 0, wrongType("an int", v)
}

// toText takes a string. Numbers and bools, which arguments often are, become their text. The string is the caller's to
// keep: it shares no memory with the call.
func toText(v ref.Val) (string, error) {
	switch v := v.(type) {
	case types.String:
		return string(v), nil
	case types.Int, types.Uint, types.Double, types.Bool:
		return keyText(v)
	case bigNumber:
		return string(v), nil
	}
	return "", wrongType("a string", v)
}

func toWord(v ref.Val, words []string) (string, error) {
	s, ok := v.(types.String)
	if !ok {
		return "", wrongType("one of "+strings.Join(words, ", "), v)
	}
	for _, w := range words {
		if w == string(s) {
			return w, nil
		}
	}
	return "", fmt.Errorf("expected one of %s, got %q", strings.Join(words, ", "), short(string(s)))
}

// toPath takes where a key is forwarded to.
func toPath(v ref.Val) (string, error) {
	s, ok := v.(types.String)
	if !ok {
		return "", wrongType("a path", v)
	}
	return string(s), checkPath(string(s))
}

func checkPath(s string) error {
	for _, prefix := range []string{"_meta.", "arguments."} {
		if strings.HasPrefix(s, prefix) && len(s) > len(prefix) {
			return nil
		}
	}
	if s == "" {
		return nil
	}
	return fmt.Errorf("expected _meta.NAME or arguments.NAME, got %q", short(s))
}

// keyAnswer is what an expression for a key came to.
type keyAnswer uint8

const (
	keyStated keyAnswer = iota
	keyNone             // null, an absent optional or an empty string: no opinion
	keyOff              // false: no key at all
)

// appendKey appends the canonical text of a key to dst.
func appendKey(dst []byte, v ref.Val) ([]byte, keyAnswer, error) {
	if o, ok := v.(*types.Optional); ok {
		if !o.HasValue() {
			return dst, keyNone, nil
		}
		v = o.GetValue()
	}
	switch x := v.(type) {
	case types.Null:
		return dst, keyNone, nil
	case types.Bool:
		if !x {
			return dst, keyOff, nil
		}
		return dst, keyNone, errors.New("expected a string, list, map or false, got true")
	case types.String:
		if x == "" {
			return dst, keyNone, nil
		}
	}
	dst, err := appendCanonical(dst, v, 0)
	return dst, keyStated, err
}

// appendInvalidates takes a list of globs or of maps {tool, args}.
func appendInvalidates(dst []Invalidates, v ref.Val) ([]Invalidates, error) {
	l, ok := v.(traits.Lister)
	if !ok {
		return dst, wrongType("a list of tools", v)
	}
	size, _ := l.Size().(types.Int)
	for i := types.Int(0); i < size; i++ {
		item, err := toInvalidates(l.Get(i))
		if err != nil {
			return dst, fmt.Errorf("item %d: %w", int64(i)+1, err)
		}
		dst = append(dst, item)
	}
	return dst, nil
}

func toInvalidates(v ref.Val) (Invalidates, error) {
	switch v := v.(type) {
	case types.String:
		return Invalidates{Tool: string(v)}, nil
	case *types.Err:
		return Invalidates{}, v
	case traits.Mapper:
		tool, _ := v.Find(types.String("tool"))
		name, ok := tool.(types.String)
		if !ok {
			return Invalidates{}, errors.New(`expected {"tool": …, "args": …} with a string for tool`)
		}
		args, found := v.Find(types.String("args"))
		if !found || args == types.NullValue {
			return Invalidates{Tool: string(name)}, nil
		}
		text, err := toArgs(args)
		return Invalidates{Tool: string(name), Args: text}, err
	}
	return Invalidates{}, wrongType("a glob or {tool, args}", v)
}

// toArgs takes the arguments of calls whose results become stale.
func toArgs(v ref.Val) ([]byte, error) {
	if _, ok := v.(traits.Mapper); !ok {
		return nil, wrongType("a map of arguments", v)
	}
	return appendCanonical(nil, v, 0)
}

func wrongType(expected string, v ref.Val) error {
	if err, ok := v.(*types.Err); ok {
		return err
	}
	return fmt.Errorf("expected %s, got %s", expected, typeName(v))
}

func typeName(v ref.Val) string {
	switch name := v.Type().TypeName(); name {
	case "null_type":
		return "null"
	case "google.protobuf.Duration":
		return "duration"
	case "google.protobuf.Timestamp":
		return "timestamp"
	default:
		return name
	}
}

// statics are the types that an answer of each form may have at compile time; dyn is always possible.
var statics = map[form][]types.Kind{
	formWord:     {types.StringKind},
	formPath:     {types.StringKind},
	formText:     {types.StringKind},
	formKey:      {types.StringKind, types.ListKind, types.MapKind, types.NullTypeKind, types.IntKind, types.UintKind, types.DoubleKind, types.BytesKind, types.TimestampKind, types.DurationKind},
	formDuration: {types.DurationKind, types.IntKind, types.UintKind, types.DoubleKind},
	formCount:    {types.IntKind, types.UintKind},
	formBool:     {types.BoolKind},
	formGlobs:    {types.ListKind},
}

// expected names what each form takes, for messages.
var expected = map[form]string{
	formWord: "string", formPath: "string", formText: "string", formKey: "string, list or map", formDuration: "duration",
	formCount: "int", formBool: "bool", formGlobs: "list of globs or of {tool, args}", formNumber: "number", formLimit: "rate limit",
}

// checkResult says why an expression of that type can never answer a question of that form, or nothing.
func checkResult(f form, e *expression) (message, hint string) {
	kind := e.result.Kind()
	if kind == types.DynKind || kind == types.AnyKind || kind == types.TypeParamKind || slices.Contains(statics[f], kind) {
		return "", ""
	}
	if f == formKey && (e.constant == types.False || isOptional(e.result)) {
		return "", ""
	}
	message = fmt.Sprintf("expected %s, got %s", expected[f], e.result)
	switch {
	case isOptional(e.result):
		hint = "say what holds without a value: .orValue(…)"
	case f == formDuration && kind == types.StringKind:
		hint = `write duration("30s") or a number of seconds`
	case f == formText && kind == types.BoolKind:
		hint = `write the string for each case: condition ? "…" : ""`
	case f == formText:
		hint = "convert it with string(…)"
	}
	return message, hint
}

func isOptional(t *types.Type) bool {
	return t.Kind() == types.OpaqueKind && t.TypeName() == "optional_type"
}
