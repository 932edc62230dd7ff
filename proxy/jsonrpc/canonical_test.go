package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		`null`: `null`, ` true `: `true`, `false`: `false`, `""`: `""`,
		"{ \"b\" : 1 ,\r\n\t\"a\" : [ ] }":             `{"a":[],"b":1}`,
		`{"b":{"z":1,"y":[{"d":1,"c":2}]},"a":{}}`:     `{"a":{},"b":{"y":[{"c":2,"d":1}],"z":1}}`,
		`{"\u0062":1,"a":2}`:                           `{"a":2,"b":1}`,
		`{"é":1,"z":2,"😀":3,"":4,"aa":5,"a":6}`:        `{"":4,"a":6,"aa":5,"z":2,"é":1,"😀":3}`,
		`"\u00e9\/\u0041\u001F\u000a\"\\` + "\x7f<&\"": `"é/A\u001f\n\"\\` + "\x7f<&\"",
		`"\ud83d\ude00 \uD83D \ude00"`:                 `"😀 \ud83d \ude00"`,
		`["퟿","\uE000","\uD7ff"]`:                      `["퟿","` + "\uE000" + `","퟿"]`,
		`[[],[[1]],{}]`:                                `[[],[[1]],{}]`,
	} {
		got, err := AppendCanonical([]byte("> "), []byte(raw))
		if err != nil || string(got) != "> "+want {
			t.Errorf("AppendCanonical(%s) = %s, %v; want > %s", raw, got, err, want)
		}
	}
}

func TestAppendCanonicalNumbers(t *testing.T) {
	for want, spellings := range map[string]string{
		`0`:                      `0 -0 0.0 -0.00 0e5 -0E-5 0e99999999999999999999`,
		`1`:                      `1 1.0 1e0 10e-1 0.1e1 1.000E+00`,
		`-1500`:                  `-1500 -1.5e3 -15e2 -1500.0`,
		`0.1`:                    `0.1 0.10 1e-1`,
		`1.5`:                    `1.5 15e-1 1.50`,
		`1915883588174806058`:    `1915883588174806058 1915883588174806058.0`,
		`12345678901234567890`:   `12345678901234567890 1234567890123456789e1`,
		`9007199254740993`:       `9007199254740993`,
		`9007199254740992`:       `9007199254740992`,
		`0.0000001`:              `0.0000001 1e-7`,
		`1e-8`:                   `0.00000001 1e-8 0.1e-7`,
		`1.25e-10`:               `1.25e-10 125e-12`,
		`1000000000000000000000`: `1e21 1000000000000000000000`,
		`1e22`:                   `1e22 10000000000000000000000 0.1e23`,
		`1e400`:                  `1e400 10e399`,
		`-1.7e-400`:              `-1.7e-400 -17e-401`,
		`0.1000000000000000055`:  `0.1000000000000000055 0.10000000000000000550`,
		strings.Repeat("7", 400): strings.Repeat("7", 400),
		`1e999999999999999999`:   `1e999999999999999999 10e999999999999999998`,
	} {
		for _, raw := range strings.Fields(spellings) {
			got, err := AppendCanonical(nil, []byte(raw))
			if err != nil || string(got) != want {
				t.Errorf("AppendCanonical(%s) = %s, %v; want %s", raw, got, err, want)
			}
		}
	}
}

func TestAppendCanonicalRefuses(t *testing.T) {
	for raw, text := range map[string]string{
		``:                                  "unexpected end",
		`{"a":1`:                            "unexpected end",
		`1 2`:                               "'2'",
		"\"\xff\"":                          "UTF-8",
		`{"a":1,"b":2,"a":1}`:               `repeats a name: "a"`,
		`[{"x":{"é":1,"\u00e9":2}}]`:        `repeats a name: "é"`,
		`1e9999999999999999999`:             "exponent",
		strings.Repeat("[", 2*maxDepth):     "deep",
		strings.Repeat(`{"a":`, maxDepth*2): "deep",
	} {
		got, err := AppendCanonical([]byte("> "), []byte(raw))
		if err == nil || !strings.Contains(err.Error(), text) || string(got) != "> " {
			t.Errorf("AppendCanonical(%.40s) = %.40s, %v; want an error about %q", raw, got, err, text)
		}
	}
}

func TestAppendCanonicalOfDeepValues(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`[{"a":`, depth/2) + `1` + strings.Repeat(`}]`, depth/2)
	}
	raw := nested(maxCanonicalDepth)
	if got, err := AppendCanonical(nil, []byte(raw)); err != nil || string(got) != raw {
		t.Errorf("a value %d deep: %v", maxCanonicalDepth, err)
	}
	if _, err := AppendCanonical(nil, []byte(nested(maxCanonicalDepth+2))); err == nil {
		t.Errorf("a value %d deep is accepted", maxCanonicalDepth+2)
	}
}

func TestAppendCanonicalSortsNestedObjects(t *testing.T) {
	raw := `{"c":{"z":[{"b":1,"a":2}],"y":"long enough to be moved"},"a":1,"b":{"d":{},"c":{"f":0,"e":[]}}}`
	want := `{"a":1,"b":{"c":{"e":[],"f":0},"d":{}},"c":{"y":"long enough to be moved","z":[{"a":2,"b":1}]}}`
	if got, err := AppendCanonical(nil, []byte(raw)); err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestAppendCanonicalAllocatesLittle(t *testing.T) {
	raw := []byte(`{"path":"/tmp/x","lines":[1,2,30],"mode":{"write":true,"append":false}}`)
	dst := make([]byte, 0, 200)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := AppendCanonical(dst, raw); err != nil {
			t.Fatal(err)
		}
	}); n > 5 { // none for each member or value
		t.Errorf("%v allocations", n)
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":1.0,"a":[true,null,"\u00e9"]}`), []byte(`{"a":[true,null,"é"],"b":1}`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`-0`))
	f.Add([]byte(`[1e21,1E-7,12345678901234567890,0.1]`), []byte(`[10e20,0.0000001,1234567890123456789e1,0.10]`))
	f.Add([]byte(`"\ud83d\ude00\n"`), []byte(`"😀\u000a"`))
	f.Fuzz(func(t *testing.T, x, y []byte) {
		cx, vx, ok := canonicalAndValue(t, x)
		if !ok {
			return
		}
		if again, err := AppendCanonical(nil, cx); err != nil || !bytes.Equal(again, cx) {
			t.Errorf("%s is canonically %s, and that %s, %v", x, cx, again, err)
		}
		if other, ok := decodeExact(cx); !ok || !equalValues(vx, other) {
			t.Errorf("%s is canonically %s, which is another value", x, cx)
		}
		// Another spelling of the same value: encoding/json sorts names, indents and escapes as it likes.
		respelled, err := json.MarshalIndent(vx, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if cz, err := AppendCanonical(nil, respelled); err != nil || !bytes.Equal(cz, cx) {
			t.Errorf("%s is canonically %s, but written as %s it is %s, %v", x, cx, respelled, cz, err)
		}
		if cy, vy, ok := canonicalAndValue(t, y); ok && bytes.Equal(cx, cy) != equalValues(vx, vy) {
			t.Errorf("%s and %s are canonically %s and %s", x, y, cx, cy)
		}
	})
}

var (
	surrogates   = regexp.MustCompile(`\\u[dD][89a-fA-F]`) // encoding/json folds lone ones together
	hugeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)
)

// canonicalAndValue returns the canonical form of raw and what encoding/json makes of it. ok is false if there is no
// canonical form, which it checks, or if the reference cannot express the value.
func canonicalAndValue(t *testing.T, raw []byte) (canonical []byte, value any, ok bool) {
	t.Helper()
	canonical, err := AppendCanonical(nil, raw)
	if hugeExponent.Match(raw) || errors.Is(err, errCanonicalDepth) {
		return nil, nil, false
	}
	valid := json.Valid(raw) && utf8.Valid(raw) && !repeatsName(raw)
	if surrogates.Match(raw) {
		return nil, nil, false
	}
	if valid != (err == nil) {
		t.Fatalf("AppendCanonical(%s): error %v, want valid = %v", raw, err, valid)
	}
	if err != nil {
		return nil, nil, false
	}
	value, ok = decodeExact(raw)
	return canonical, value, ok
}

func decodeExact(raw []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v) == nil && d.More() == false
}

// repeatsName reports whether an object in raw, which is JSON, repeats a name.
func repeatsName(raw []byte) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	repeated, err := repeatsNameIn(d)
	return repeated || err != nil && !errors.Is(err, io.EOF)
}

func repeatsNameIn(d *json.Decoder) (bool, error) {
	token, err := d.Token()
	if err != nil || token != json.Delim('{') && token != json.Delim('[') {
		return false, err
	}
	names := map[string]bool{}
	for d.More() {
		if token == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return false, err
			}
			if names[name.(string)] {
				return true, nil
			}
			names[name.(string)] = true
		}
		if repeated, err := repeatsNameIn(d); repeated || err != nil {
			return repeated, err
		}
	}
	_, err = d.Token()
	return false, err
}

func equalValues(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, ok1 := new(big.Rat).SetString(a.String())
		y, ok2 := new(big.Rat).SetString(b.String())
		return ok1 && ok2 && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equalValues(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}
