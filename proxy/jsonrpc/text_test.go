package jsonrpc

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                           "",
		`"plain ä €"`:                  "plain ä €",
		`"\"\\\/\b\f\n\r\t\u00e4"`:     "\"\\/\b\f\n\r\tä",
		`"\ud83d\ude00\uD83D\uDE00"`:   "😀😀",
		`"\ud83dx\ude00"`:              "\uFFFDx\uFFFD",
		`"\ud83d\ud83d\ude00\ud83d\n"`: "\uFFFD😀\uFFFD\n",
		`"\u0000"`:                     "\x00",
	} {
		if got, ok := Text([]byte(raw)); !ok || got != want {
			t.Errorf("Text(%s) = %q, %v; want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{``, `"`, `a`, `1`, `null`, `"a`, `"a"b`, `"a" `, ` "a"`, `"\x"`, "\"\n\"", "\"\xff\"", `"\u123"`, `"a\"`} {
		if got, ok := Text([]byte(raw)); ok {
			t.Errorf("Text(%q) = %q, want it refused", raw, got)
		}
	}
}

func TestAppendQuoted(t *testing.T) {
	for s, want := range map[string]string{
		"":                        `""`,
		"plain <b>&'/ ä \u2028":   "\"plain <b>&'/ ä \u2028\"",
		"\"\\\b\f\n\r\t\x00\x1f":  `"\"\\\b\f\n\r\t\u0000\u001f"`,
		"\x7f":                    "\"\x7f\"",
		"a\xffb\xc3":              "\"a\uFFFDb\uFFFD\"",
		"\xed\xa0\x80\uFFFD\xf0x": "\"\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDx\"",
	} {
		got := AppendQuoted([]byte("> "), s)
		if string(got) != "> "+want {
			t.Errorf("AppendQuoted(%q) = %s, want > %s", s, got, want)
		}
	}
}

func TestB13RepairReplacesForeignBytes(t *testing.T) {
	frame := []byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"instructions\":\"a \x97 b\",\"x\":\"\x81\x82ä\"}}")
	before := string(frame)
	got, changed := Repair(frame)
	if !changed || string(frame) != before {
		t.Fatalf("changed = %v, input now %q", changed, frame)
	}
	m := mustParse(t, string(got))
	if want := "{\"instructions\":\"a \uFFFD b\",\"x\":\"\uFFFDä\"}"; resolve(m).result != want || resolve(m).id != "1" {
		t.Errorf("repaired: %+v", resolve(m))
	}
	if got, changed := Repair([]byte("\"ä \uFFFD\"")); changed || string(got) != "\"ä \uFFFD\"" {
		t.Errorf("a valid frame was changed to %q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("plain", `"\ud83d\ude00\ud83d"`)
	f.Add("\xff\x00\"\\", `"\/\u0000"`)
	f.Fuzz(func(t *testing.T, s, raw string) {
		quoted := AppendQuoted(nil, s)
		var want string
		if !utf8.Valid(quoted) || json.Unmarshal(quoted, &want) != nil {
			t.Fatalf("AppendQuoted(%q) = %q", s, quoted)
		}
		if got, ok := Text(quoted); !ok || got != want || utf8.ValidString(s) && got != s {
			t.Errorf("%q came back as %q, %v", s, got, ok)
		}
		got, ok := Text([]byte(raw))
		valid := len(raw) > 0 && raw[0] == '"' && raw[len(raw)-1] == '"' && utf8.ValidString(raw) && json.Unmarshal([]byte(raw), &want) == nil
		if ok != valid || ok && got != want {
			t.Errorf("Text(%q) = %q, %v; want %q, %v", raw, got, ok, want, valid)
		}
	})
}
