package jsonrpc

import (
	"strings"
	"testing"
)

func TestIntID(t *testing.T) {
	for raw, want := range map[string]int64{
		`0`: 0, `-0`: 0, `0.0`: 0, `0e7`: 0, `0e99999999999999999999`: 0, `7`: 7, `-7`: -7, `70e-1`: 7, `0.7e1`: 7, `0.007E+3`: 7, `7e2`: 700, `12.50e1`: 125,
		`100`: 100, `100.000`: 100, `9007199254740992`: 1 << 53, `-9007199254740992`: -1 << 53, `9.007199254740992e15`: 1 << 53,
		`"0"`: 0, `"10"`: 10, `"9007199254740992"`: 1 << 53, `"\u0037"`: 7,
		`7e00000000000000000000000000000001`: 70,
	} {
		if got, ok := IntID([]byte(raw)); !ok || got != want {
			t.Errorf("IntID(%s) = %d, %v; want %d", raw, got, ok, want)
		}
	}
	for _, raw := range []string{
		``, `null`, `true`, `{}`, `1.5`, `1e-1`, `0.001`, `9007199254740993`, `-9007199254740993`, `1e16`, `1e400`, `1e-400`, `1e99999999999999999999`,
		`9223372036854775808`, `18446744073709551616`, strings.Repeat("1", 5000),
		`""`, `"07"`, `"00"`, `"-7"`, `"+7"`, `" 7"`, `"7 "`, `"7.0"`, `"7e0"`, `"0x7"`, `"init-1"`, `"9007199254740993"`, `"7`, `"٧"`,
		`1 `, ` 1`, `1x`, `01`, `+1`, `.5`, `1.`, `-`, `1e`,
	} {
		if got, ok := IntID([]byte(raw)); ok {
			t.Errorf("IntID(%s) = %d, want none", raw, got)
		}
	}
}

func TestB22IDsAreNotCutTo32Bits(t *testing.T) {
	const id = 1774232524389
	if got, ok := IntID([]byte("1774232524389")); !ok || got != id {
		t.Errorf("got %d, %v", got, ok)
	}
	if got, ok := IntID([]byte("411031141")); !ok || got != id&0xFFFFFFFF {
		t.Errorf("its low 32 bits: got %d, %v; want a number of its own", got, ok)
	}
}

func TestB23IntegersSpelledAsFloats(t *testing.T) {
	for raw, want := range map[string]int64{`1.0`: 1, `0.0`: 0, `1e0`: 1} {
		if got, ok := IntID([]byte(raw)); !ok || got != want {
			t.Errorf("IntID(%s) = %d, %v; want %d", raw, got, ok, want)
		}
	}
}

func TestB24NumbersTurnedIntoStrings(t *testing.T) {
	for raw, want := range map[string]int64{`"7"`: 7, `7`: 7, `"0"`: 0} {
		if got, ok := IntID([]byte(raw)); !ok || got != want {
			t.Errorf("IntID(%s) = %d, %v; want %d", raw, got, ok, want)
		}
	}
	if SameID([]byte(`7`), []byte(`"7"`)) {
		t.Error("a client's 7 and \"7\" are the same id")
	}
}

func TestSameID(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1`, true},
		{`1`, `2`, false},
		{`1`, `"1"`, false},
		{`1`, `1.0`, false},
		{`null`, `"null"`, false},
		{`"a"`, `"A"`, false},
		{`"é"`, `"\u00e9"`, true},
		{`"\u00E9"`, `"\u00e9"`, true},
		{`"a/b"`, `"a\/b"`, true},
		{`"\n"`, `"\u000a"`, true},
		{`"\u0022"`, `"\""`, true},
		{`"😀"`, `"\ud83d\ude00"`, true},
		{`"\ud83d"`, `"\uD83D"`, true},
		{`"\ud83d"`, `"\ud83e"`, false},
		{`"\ud83d"`, `"\ufffd"`, false},
		{`"\\u00e9"`, `"\u00e9"`, false},
	} {
		if got := SameID([]byte(tt.a), []byte(tt.b)); got != tt.same {
			t.Errorf("SameID(%s, %s) = %v", tt.a, tt.b, got)
		}
		if got := CanonicalID([]byte(tt.a)) == CanonicalID([]byte(tt.b)); got != tt.same {
			t.Errorf("CanonicalID: %s and %s equal: %v", tt.a, tt.b, got)
		}
	}
}

func TestB21IDsBeyond53BitsDoNotCollide(t *testing.T) {
	ids := []string{
		"9007199254740992", "9007199254740993", "-9223372036854775808", "9223372036854775807", "9223372036854775806", "18446744073709551615",
	}
	seen := map[string]string{}
	for _, id := range ids {
		key := CanonicalID([]byte(id))
		if other, ok := seen[key]; ok {
			t.Errorf("%s and %s have one key", id, other)
		}
		seen[key] = id
	}
}

func TestCanonicalIDOfWhatIsNoID(t *testing.T) {
	for _, raw := range []string{``, `"`, `"\`, `"\"`, `"\x"`, `"a\n"b`} {
		if got := CanonicalID([]byte(raw)); got != raw {
			t.Errorf("CanonicalID(%q) = %q", raw, got)
		}
	}
}
