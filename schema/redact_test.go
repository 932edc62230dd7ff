package schema

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

var tagText = regexp.MustCompile(`\[redacted:[0-9a-f]{16}\]`)

// In what is wanted, # stands for the tag of any secret.
func TestSecretsAreRedacted(t *testing.T) {
	r := NewRedactor()
	for text, want := range map[string]string{
		// by the name of the member; all else stays byte for byte
		`{"b":1.50, "a":9007199254740993,"s":"\u0041<"}`:                          `{"b":1.50, "a":9007199254740993,"s":"\u0041<"}`,
		`{"arguments":{"api_key":"abc","q":"<x>"}}`:                               `{"arguments":{"api_key":"#","q":"<x>"}}`,
		`{"password":["a",{"x":"b"}, 12],"token":"","pwd":1234}`:                  `{"password":["#",{"x":"b"}, "#"],"token":"","pwd":"#"}`,
		`{"token":"abc","token":""}`:                                              `{"token":"#","token":""}`,
		`{"_meta":{"progressToken":"p","idempotencyKey":"k"}}`:                    `{"_meta":{"progressToken":"p","idempotencyKey":"k"}}`,
		`{"headers":[{"name":"X-Api-Key","value":"abc"},{"name":"a","value":1}]}`: `{"headers":[{"name":"X-Api-Key","value":"#"},{"name":"a","value":1}]}`,
		`{"Authorization":"Bearer abc"}`:                                          `{"Authorization":"Bearer #"}`,
		`{"secret":true,"auth":null}`:                                             `{"secret":true,"auth":null}`,
		`{"properties":{"password":{"type":"string"}}}`:                           `{"properties":{"password":{"type":"string"}}}`,

		// JSON in a text
		`{"text":"{\"token\":\"abc\",\"a\":1}"}`: `{"text":"{\"token\":\"#\",\"a\":1}"}`,
		`{"text":"{ \"b\": 1, \"a\": 2 }"}`:      `{"text":"{ \"b\": 1, \"a\": 2 }"}`,
		`{"text":"[not JSON]"}`:                  `{"text":"[not JSON]"}`,

		// within a text
		`{"text":"use ghp_16C7e42F292c6912E7710c838347Ae178B4a."}`:                  `{"text":"use #."}`,
		`{"text":"sk-proj-abcdefGHIJKL0123456789mnop and AKIAIOSFODNN7QWERTYU"}`:    `{"text":"# and #"}`,
		`{"text":"it is eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJl"}`:           `{"text":"it is #"}`,
		`{"text":"curl -H 'Authorization: Bearer Zx81-kQ' https://x"}`:              `{"text":"curl -H 'Authorization: Bearer #' https://x"}`,
		`{"text":"a bearer token is needed, basic authentication will not do"}`:     `{"text":"a bearer token is needed, basic authentication will not do"}`,
		`{"text":"password=hunter2&user=me"}`:                                       `{"text":"password=#&user=me"}`,
		`{"text":"connect(password=\"a b c\", user='me')"}`:                         `{"text":"connect(password=\"#\", user='me')"}`,
		`{"text":"got {\"password\": \"hunter2\"} from it"}`:                        `{"text":"got {\"password\": \"#\"} from it"}`,
		`{"text":"psql --password hunter2 -h db"}`:                                  `{"text":"psql --password # -h db"}`,
		`{"text":"postgres://me:hunter2@db/x and https://tok3n@host/?api_key=abc"}`: `{"text":"postgres://#@db/x and https://#@host/?api_key=#"}`,
		`{"text":"Cookie: session=abc; theme=dark"}`:                                `{"text":"Cookie: #"}`,
		`{"text":"token=${TOKEN}, max_tokens=5, write to me@example.com"}`:          `{"text":"token=${TOKEN}, max_tokens=5, write to me@example.com"}`,
		`{"ghp_16C7e42F292c6912E7710c838347Ae178B4a":1}`:                            `{"#":1}`,

		// over several lines, or with the end cut off
		`{"text":"password: \"two words\nand lines\" tail"}`:            `{"text":"password: \"#\" tail"}`,
		`{"text":"password='two words\r\n\r\nand lines', user=me"}`:     `{"text":"password='#', user=me"}`,
		`{"text":"psql --password \"two words\nand lines\" -h db"}`:     `{"text":"psql --password \"#\" -h db"}`,
		`{"text":"{\\\"password\\\": \\\"two words\\\"} from it"}`:      `{"text":"{\\\"password\\\": \\\"#\\\"} from it"}`,
		`{"text":"password=\"cut off in the\nmiddle, of the 1st line"}`: `{"text":"password=\"#\nmiddle, of the 1st line"}`,
		`{"text":"password: hunter2\nit's \"fine\""}`:                   `{"text":"password: #\nit's \"fine\""}`,

		// no JSON
		`no JSON, but password=hunter2 {`: `no JSON, but password=# {`,
	} {
		got := string(r.Redact([]byte(text)))
		if json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%s: %s is no JSON", text, got)
		}
		if got := tagText.ReplaceAllString(got, "#"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Whoever looks for a repeated key in a recording finds it; whoever looks for the secret, or has another recording, does not.
func TestEqualSecretsStayEqual(t *testing.T) {
	r := NewRedactor()
	a := r.Text("password=hunter2")
	tag := strings.TrimPrefix(a, "password=")
	if got := string(r.Redact([]byte(`{"token":"hunter2","text":"https://hunter2@host"}`))); strings.Count(got, tag) != 2 {
		t.Errorf("%s has not twice %s", got, tag)
	}
	if b := r.Text("password=hunter3"); a == b {
		t.Errorf("two secrets are %s", a)
	}
	if b := NewRedactor().Text("password=hunter2"); a == b {
		t.Errorf("the tag of a secret is always %s: it can be guessed", tag)
	}
}

func TestSecretsOfServersAreRedactedWhereverTheyStand(t *testing.T) {
	cfg, findings := Load("a.yaml", []byte(`{servers: {a: {command: x,
		env: {TOKEN: "${T}", PASS_FILE: /run/secrets/x, COLOR: automatic, DB_PASSWORD: 'open"sesame', API_KEY: "${A}"},
		args: [--api-key, Zx81kQp0, "--header", "Authorization: Bearer correcthorse", --verbose=automatic]}}}`),
		func(name string) (string, bool) {
			return map[string]string{"T": "quite-plain", "A": "quite"}[name], true
		})
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	r := NewRedactor(cfg.Servers...)
	for text, want := range map[string]string{
		`{"text":"it said quite-plain."}`:                                  `{"text":"it said #."}`,
		`{"text":"/run/secrets/x is automatic, quite"}`:                    `{"text":"/run/secrets/x is automatic, quite"}`,
		`{"a":["Zx81kQp0","xcorrecthorsex"],"quite-plain":1}`:              `{"a":["#","x#x"],"#":1}`,
		`{"text":"open\"sesame"}`:                                          `{"text":"#"}`,
		`{"text":"open\"sesame"`:                                           `{"text":"#"`,
		`{"id":"quite-plain","method":"tools/call","params":{"name":"x"}}`: `{"id":"#","method":"tools/call","params":{"name":"x"}}`,
	} {
		if got := tagText.ReplaceAllString(string(r.Redact([]byte(text))), "#"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
