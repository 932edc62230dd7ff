package schema

import "testing"

func TestSecretsAreRedacted(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1.50,"a":9007199254740993}`:                                    `{"a":9007199254740993,"b":1.50}`,
		`{"arguments":{"api_key":"abc","q":"<x>"}}`:                          `{"arguments":{"api_key":"[redacted]","q":"<x>"}}`,
		`{"password":["a",{"x":"b"}],"token":""}`:                            `{"password":["[redacted]",{"x":"b"}],"token":""}`,
		`{"_meta":{"progressToken":"p","idempotencyKey":"k"}}`:               `{"_meta":{"idempotencyKey":"k","progressToken":"p"}}`,
		`{"text":"{\"token\":\"abc\",\"a\":1}"}`:                             `{"text":"{\"a\":1,\"token\":\"[redacted]\"}"}`,
		`{"text":"[not JSON]"}`:                                              `{"text":"[not JSON]"}`,
		`{"text":"use ghp_16C7e42F292c6912E7710c838347Ae178B4a"}`:            "",
		`no JSON, but ghp_16C7e42F292c6912E7710c838347Ae178B4a stands in it`: "",
	} {
		got := string(Redact([]byte(text)))
		if want != "" && got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if want == "" && (got == text || len(got) < 20) {
			t.Errorf("%s: %s", text, got)
		}
	}
}
