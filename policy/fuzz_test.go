package policy

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/bentabol/mcp-retry/schema"
)

// FuzzCompile: no text makes compiling or evaluating panic, every fault has a place within the text, and what compiles
// can be asked.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		`args.a == 1`, `error.kind in ["timeout"] && tool.readOnly`, `tool.nmae`, `"é" + error`, `args.map(x, x).exists(y, y == args["b"])`,
		`"a".matches("a{3}")`, `args.s.matches(args.p)`, `regex.replace(args.s, "a", "b")`, `[?args.?x]`, `{?"a": args.?b}`, `args.?a.?b`, `a.b.c(`, `duration("1h")`,
		`"\u00e9" ==`, "'''x\n''' + foo", `cel.bind(x, x, x)`, `has(args.a.b)`, `1/0`, `tool{name: "x"}`, `.args.a`, `result.map(k, v, [k, v])`, `hash(tool)`, `json.encode(args)`,
		`google.protobuf.Duration{seconds: 1}`, `timestamp("x")`, `"%.9999999f".format([1.0])`, `b"\xff"`, `string(b"\xff")`, `type(error)`, `args.o.transformMap(k, v, v)`,
		`optional.of(optional.none())`, `math.greatest()`, `lists.range(10000000)`, `args == args`, `text(args)`, `pick(args, ["a"])`, `!!!!!true`, `9223372036854775808`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x := &schema.Expr{Text: text, At: func(offset int) schema.Pos {
			if offset < 0 || offset > len(text) {
				t.Errorf("offset %d of a text of %d bytes", offset, len(text))
			}
			return schema.Pos{Line: 1, Col: offset + 1}
		}}
		for _, d := range []schema.Decision{schema.Deny, schema.IdempotencyKey, schema.Invalidates, schema.CallTimeout, schema.BreakerFailure, schema.RetryDelay, schema.CacheTTL} {
			s := newServer(schema.Rule{Name: "r", When: &schema.Expr{Text: "true"}, Decides: []schema.Setting{{Decision: d, Expr: x}, {Decision: schema.Retry, Literal: true}}})
			p, findings := Compile(s)
			if p == nil {
				if len(findings) == 0 {
					t.Error("no policy and no finding")
				}
				for _, found := range findings {
					if found.Message == "" || !utf8.ValidString(found.Message) {
						t.Errorf("message %q", found.Message)
					}
				}
				continue
			}
			plan := p.For("t")
			c := newCall(everyKind)
			var b Before
			plan.Before(c, &b)
			plan.AfterAttempt(c, &timeout, 1, 0)
			plan.BreakerFailure(c, &timeout, []byte(`{"content":[]}`))
			plan.CacheTTL(c, []byte(`{"content":[]}`), 0)
			for _, e := range c.Errors {
				if strings.Contains(e.Message, "internal error") && !strings.Contains(e.Message, "unhashable") {
					t.Errorf("%q: %s", text, e.Message)
				}
			}
		}
	})
}

// FuzzLazy: what expressions see of a JSON text agrees with encoding/json, and its canonical form is one form.
func FuzzLazy(f *testing.F) {
	for _, text := range []string{everyKind, `[]`, `{}`, `"x"`, `1`, ` [ 1 , 2 ] `, `{"a":{"b":[{"c":null}]}}`, `"\ud800"`, `{"a":1,"\u0061":2}`, `-0`, `1e-7`, `[1E+2,0.1e1]`, `"\/\b"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v := decodeText(text)
		touch(v, 0) // must not panic whatever the text
		canonical, canonicalErr := appendCanonical(nil, decodeText(text), 0)

		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if !utf8.Valid(text) || !json.Valid(text) || d.Decode(&want) != nil {
			return
		}
		if depth(want) > maxDepth/2 {
			return
		}
		agree(t, "$", v, want)

		if canonicalErr != nil {
			t.Fatalf("canonical form of %s: %v", text, canonicalErr)
		}
		if !json.Valid(canonical) {
			t.Fatalf("the canonical form %s of %s is no JSON", canonical, text)
		}
		again, err := appendCanonical(nil, decodeText(canonical), 0)
		if err != nil || !bytes.Equal(again, canonical) {
			t.Fatalf("canonical forms %s and %s (%v)", canonical, again, err)
		}
		if plain, err := appendCanonical(nil, native(v), 0); err == nil && !bytes.Equal(plain, canonical) {
			t.Fatalf("the canonical form is %s of the text and %s of the values", canonical, plain)
		}
	})
}

// touch reads everything of a value.
func touch(v ref.Val, level int) {
	if level > 40 {
		return
	}
	switch v := v.(type) {
	case traits.Mapper:
		v.Size()
		for it := v.Iterator(); it.HasNext() == types.True; {
			touch(v.Get(it.Next()), level+1)
		}
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		for i := range min(n, 100) {
			touch(v.Get(i), level+1)
		}
	}
}

// native is v as cel-go's own maps and lists.
func native(v ref.Val) ref.Val {
	switch v := v.(type) {
	case *object:
		return v.whole()
	case *list:
		return v.whole()
	}
	return v
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, depth(e))
		}
	}
	return deepest + 1
}

func agree(t *testing.T, path string, got ref.Val, want any) {
	t.Helper()
	switch want := want.(type) {
	case nil:
		if got != types.NullValue {
			t.Fatalf("%s: %v, want null", path, got)
		}
	case bool:
		if got != types.Bool(want) {
			t.Fatalf("%s: %v, want %v", path, got, want)
		}
	case string:
		if got != types.String(want) {
			t.Fatalf("%s: %v, want %q", path, got, want)
		}
	case json.Number:
		agreeNumber(t, path, got, string(want))
	case []any:
		l, ok := got.(traits.Lister)
		if !ok || l.Size() != types.Int(len(want)) {
			t.Fatalf("%s: %v, want a list of %d", path, got, len(want))
		}
		for i, e := range want {
			agree(t, path+"[]", l.Get(types.Int(i)), e)
		}
	case map[string]any:
		m, ok := got.(traits.Mapper)
		if !ok || m.Size() != types.Int(len(want)) {
			t.Fatalf("%s: %v, want a map of %d", path, got, len(want))
		}
		for k, e := range want {
			agree(t, path+"."+k, m.Get(types.String(k)), e)
		}
		for it := m.Iterator(); it.HasNext() == types.True; {
			if k, ok := it.Next().(types.String); !ok || !has(want, string(k)) {
				t.Fatalf("%s: a key %v", path, k)
			}
		}
	default:
		t.Fatalf("%s: %v", path, reflect.TypeOf(want))
	}
}

func has(m map[string]any, k string) bool {
	_, ok := m[k]
	return ok
}

func agreeNumber(t *testing.T, path string, got ref.Val, want string) {
	t.Helper()
	if !strings.ContainsAny(want, ".eE") {
		if n, err := strconv.ParseInt(want, 10, 64); err == nil {
			if got != types.Int(n) {
				t.Fatalf("%s: %v, want int %s", path, got, want)
			}
		} else if n, err := strconv.ParseUint(want, 10, 64); err == nil {
			if got != types.Uint(n) {
				t.Fatalf("%s: %v, want uint %s", path, got, want)
			}
		} else if got != bigNumber(want) {
			t.Fatalf("%s: %v, want %s kept as it is", path, got, want)
		}
		return
	}
	n, err := strconv.ParseFloat(want, 64)
	if err != nil || math.IsInf(n, 0) {
		if got != bigNumber(want) {
			t.Fatalf("%s: %v, want %s kept as it is", path, got, want)
		}
	} else if got != types.Double(n) {
		t.Fatalf("%s: %v, want double %s", path, got, want)
	}
}
