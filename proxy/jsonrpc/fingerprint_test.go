package jsonrpc

import (
	"bytes"
	"hash/maphash"
	"testing"
)

func TestFingerprintIsThatOfTheCanonicalForm(t *testing.T) {
	seed := maphash.MakeSeed()
	for _, same := range [][]string{
		{`{}`, `{ }`, "{\t}"},
		{`{"a":1,"b":[true,null]}`, `{"b" : [ true , null ], "a":1.0}`, `{"\u0061":10e-1,"b":[true,null]}`},
		{`"a/b"`, `"a\/b"`, `"\u0061/b"`},
		{`0`, `-0`, `0.0`, `0e5`},
		{`[1e400,-12.50]`, `[10e399,-12.5]`},
		{`{"a":[1,{"x":2,"y":[3]},4],"b":5}`, `{"b":5,"a":[1,{"y":[3],"x":2},4]}`},
		{`"\ud800"`, `"\uD800"`},
	} {
		want := Fingerprint(seed, []byte(same[0]))
		for _, raw := range same {
			if got := Fingerprint(seed, []byte(raw)); got != want {
				t.Errorf("%s has the fingerprint %x, %s has %x", raw, got, same[0], want)
			}
		}
	}
}

func TestFingerprintTellsValuesApart(t *testing.T) {
	seed := maphash.MakeSeed()
	seen := map[uint64]string{}
	for _, raw := range []string{
		`{}`, `[]`, `[[]]`, `""`, `"a"`, `"b"`, `1`, `"1"`, `10`, `-1`, `true`, `"true"`, `null`, `{"a":1}`, `{"a":2}`, `{"b":1}`, `["a",1]`, `{"a":{"b":1}}`,
		`{"a":[1]}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":"b","b":"a"}`, `{"a":"a","b":"b"}`, `1e30`, `1e31`, `1e99999999999999999999`,
	} {
		sum := Fingerprint(seed, []byte(raw))
		if other, taken := seen[sum]; taken {
			t.Errorf("%s and %s have the same fingerprint", raw, other)
		}
		seen[sum] = raw
	}
}

func FuzzFingerprint(f *testing.F) {
	for _, raw := range []string{`{"b":1,"a":[1.50,"\u0061\/",{"x":null}]}`, `-0e0`, `"\ud83d\ude00"`, `[99e999999999999999999, 0e99999999999999999999999]`} {
		f.Add([]byte(raw))
	}
	seed := maphash.MakeSeed()
	f.Fuzz(func(t *testing.T, raw []byte) {
		canonical, err := AppendCanonical(nil, raw)
		if err != nil {
			return
		}
		again, err := AppendCanonical(nil, canonical)
		if err != nil {
			return // an exponent has grown a digit too many
		}
		if !bytes.Equal(again, canonical) {
			t.Errorf("%s is not canonical", canonical)
		}
		if Fingerprint(seed, raw) != Fingerprint(seed, canonical) {
			t.Errorf("%s has another fingerprint than %s", raw, canonical)
		}
	})
}
