package schema

import (
	"bytes"
	"encoding/json"
)

// Redacted stands in the place of a secret.
const Redacted = "[redacted]"

// Redact returns a JSON text without its secrets: the values of members whose names say that they are secret (token, password,
// api_key, …), and in all texts whatever has the shape of a well-known credential. Of a text that is no JSON only the latter.
// Members come in the order of their names.
func Redact(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return []byte(maskTokens(string(text)))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(redacted(v, false)) != nil {
		return []byte(maskTokens(string(text)))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// redacted is a value without its secrets; secret says that its name tells that it is one.
func redacted(v any, secret bool) any {
	switch v := v.(type) {
	case string:
		if secret && v != "" {
			return Redacted
		}
		if len(v) > 1 && (v[0] == '{' || v[0] == '[') { // JSON in a text, as tools like to answer
			return string(Redact([]byte(v)))
		}
		return maskTokens(v)
	case []any:
		for i := range v {
			v[i] = redacted(v[i], secret)
		}
	case map[string]any:
		for name := range v {
			v[name] = redacted(v[name], isSecretName(name))
		}
	}
	return v
}

// isSecretName reports whether a member of that name holds a secret. Some names of the protocol's own only look so.
func isSecretName(name string) bool {
	switch name {
	case "progressToken", "idempotencyKey", "_idempotency_key", "idempotency_key", "key":
		return false
	}
	return secretName().MatchString(name)
}
