package schema

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// Redactor takes secrets out of JSON that is to be kept. In the place of a secret stands "[redacted:…]" with a tag that is made of
// it under a key which nobody else knows: equal secrets have equal tags as long as the Redactor is the same, so what depends on
// whether two are equal still does, and nothing leads back to the secret.
//
// Secret are the values of members whose names say so (token, password, api_key, …); in all texts whatever has the shape of a
// well-known credential, what follows "Bearer" or stands after password= and the like, and who logs in in a URL; and, wherever
// they stand, the secrets that servers are started with.
type Redactor struct {
	key   []byte
	known []string // with which servers are started
}

// NewRedactor returns a Redactor that also knows what the servers are started with.
func NewRedactor(servers ...*Server) *Redactor {
	r := &Redactor{key: make([]byte, sha256.Size)}
	rand.Read(r.key) // it never fails
	for _, s := range servers {
		r.Learn(s)
	}
	return r
}

// Learn takes in what a server is started with, beside all that is known already.
func (r *Redactor) Learn(s *Server) {
	for _, secret := range s.secrets() {
		if !slices.Contains(r.known, secret) {
			r.known = append(r.known, secret)
		}
	}
}

// Redact returns a JSON text without its secrets: it is valid JSON still, and what is no secret stays byte for byte. Of a text that
// is no JSON, texts of a secret shape and known secrets are replaced.
func (r *Redactor) Redact(text []byte) []byte {
	if !json.Valid(text) {
		return []byte(r.Text(string(text)))
	}
	w := redaction{Redactor: r, text: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	w.decoder.UseNumber()
	for w.next() {
	}
	return append(w.out, text[w.copied:]...)
}

// Text returns a text without its secrets.
func (r *Redactor) Text(s string) string {
	if trimmed := strings.TrimLeft(s, " \t\r\n"); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid([]byte(s)) {
		return string(r.Redact([]byte(s))) // JSON in a text, as tools like to answer
	}
	var out strings.Builder
	done := 0
	for _, span := range r.spans(s) {
		out.WriteString(s[done:span[0]] + r.tag(s[span[0]:span[1]]))
		done = span[1]
	}
	return out.String() + s[done:]
}

// tag stands in the place of a secret.
func (r *Redactor) tag(secret string) string {
	mac := hmac.New(sha256.New, r.key)
	io.WriteString(mac, secret)
	return "[redacted:" + hex.EncodeToString(mac.Sum(nil)[:8]) + "]"
}

// value is the value of a member that is secret by its name. What it says of the scheme is none.
func (r *Redactor) value(s string) string {
	if s == "" {
		return s
	}
	scheme := authScheme().FindString(s)
	return scheme + r.tag(s[len(scheme):])
}

// redaction is the way through a JSON text.
type redaction struct {
	*Redactor
	text    []byte
	decoder *json.Decoder
	out     []byte
	copied  int // how much of the text is in out
	open    []redactedPart
}

// redactedPart is an object or a list that is open.
type redactedPart struct {
	object bool
	named  bool   // the name of the present member has been read
	name   string // that
	secret bool   // the present member, or each item
	entry  bool   // the object is an entry, {"name": …, "value": …}, whose name is secret
}

// next takes in a token; false = there is no more.
func (w *redaction) next() bool {
	from := int(w.decoder.InputOffset())
	token, err := w.decoder.Token()
	if err != nil {
		return false
	}
	end := int(w.decoder.InputOffset())
	start := from + len(w.text[from:end]) - len(bytes.TrimLeft(w.text[from:end], " \t\r\n,:"))
	in := &redactedPart{}
	if len(w.open) > 0 {
		in = &w.open[len(w.open)-1]
	}
	switch token := token.(type) {
	case json.Delim:
		switch token {
		case '{', '[':
			list := token == '['
			inherits := list && in.secret
			in.named = false
			w.open = append(w.open, redactedPart{object: !list, secret: inherits})
		default:
			w.open = w.open[:len(w.open)-1]
		}
		return true
	case string:
		if in.object && !in.named {
			in.named, in.name = true, token
			in.secret = isSecretName(token) || in.entry && strings.EqualFold(token, "value")
			w.replace(start, end, token, w.Text(token))
			return true
		}
		if in.object && (strings.EqualFold(in.name, "name") || strings.EqualFold(in.name, "key")) {
			in.entry = isSecretName(token)
		}
		if in.secret {
			w.replace(start, end, token, w.value(token))
		} else {
			w.replace(start, end, token, w.Text(token))
		}
	case json.Number:
		if in.secret {
			w.replace(start, end, "", w.value(token.String()))
		}
	}
	in.named = false
	return true
}

// replace puts a text in the place of another, unless it is the same.
func (w *redaction) replace(start, end int, old, now string) {
	if old == now {
		return
	}
	w.out = append(w.out, w.text[w.copied:start]...)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(now) // a text always has a JSON form
	w.out = append(w.out, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...)
	w.copied = end
}
