package schema

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// secretWords are names, or ends of names, of what is secret, as they stand before = or : in a text.
const secretWords = `(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|token|secret|password|passwd|passphrase|pwd|credentials?|authorization|signature|[?&](?:key|sig|auth|pass))`

// The secret that stands in a text for its surroundings is the only group of these patterns that takes part in a match.
var (
	// password=…, "api_key": "…", ?token=…
	assignedText = pattern(`(?i)` + secretWords + `\\*["']?[ \t]*[:=][ \t]*(?:(?:bearer|basic|token)[ \t]+)?(?:"([^"]+)"|'([^']+)'|\\*["']?([^\s"'&,;<>]+))`)
	// --password …
	flagText = pattern(`(?i)(?:^|\s)--?[a-z0-9_-]*` + secretWords + `[ \t]+(?:"([^"]+)"|'([^']+)'|\\*["']?([^\s"'-][^\s"']*))`)
	// RFC 3986, section 3.2.1: who logs in, which may be a token alone.
	userinfoText = pattern(`\b[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#@"'<>]+)@`)
	cookieText   = pattern(`(?i)\bcookie:[ \t]*([^\r\n"']+)`)
	// RFC 6750, RFC 7617: the scheme of a header, and what follows it.
	bearerText = pattern(`(?i)\b(?:bearer|basic)[ \t]+([A-Za-z0-9._~+/-]*[A-Za-z0-9_~+/=-])`)
	// What comes before a credential in the value of a header.
	authScheme = pattern(`^(?i:bearer|basic|token|digest)[ \t]+`)
)

// secretHints are the words of which one is in each name of secretWords.
var secretHints = []string{"key", "token", "secret", "passw", "passphrase", "pwd", "credential", "authorization", "signature",
	"?sig", "&sig", "?auth", "&auth", "?pass", "&pass"}

// tokenHints are the beginnings of the shapes of tokens.
var tokenHints = []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_", "rk-", "rk_", "xox", "xapp-",
	"akia", "asia", "aiza", "npm_", "hf_", "pypi-", "eyj", "private key"}

// textSecrets are the secrets that stand on one line with what tells that they are such. Patterns are slow and texts long: only
// where one of the hints is in a line, in whatever case, is there anything to look for.
var textSecrets = []struct {
	pattern func() *regexp.Regexp
	hints   []string
	is      func(s string) bool // nil = whatever the pattern finds is one
}{
	{bearerText, []string{"bearer", "basic"}, looksGiven},
	{assignedText, secretHints, nil},
	{flagText, secretHints, nil},
	{userinfoText, []string{"@"}, nil},
	{cookieText, []string{"cookie:"}, nil},
}

func containsOneOf(s string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(s, word) })
}

// spans are where secrets stand in a text, in order and apart from one another.
func (r *Redactor) spans(s string) [][2]int {
	var found [][2]int
	if containsOneOf(strings.ToLower(s), tokenHints) {
		for _, m := range tokens().FindAllStringIndex(s, -1) {
			found = append(found, [2]int{m[0], m[1]})
		}
	}
	from := 0
	for line := range strings.Lines(s) {
		found = append(found, lineSpans(s, from, from+len(line))...)
		from += len(line)
	}
	for _, secret := range r.known {
		for at := 0; ; {
			i := strings.Index(s[at:], secret)
			if i < 0 {
				break
			}
			found = append(found, [2]int{at + i, at + i + len(secret)})
			at += i + len(secret)
		}
	}
	return merged(found)
}

// lineSpans are where secrets stand in a text that begin in a line of it, for what stands beside them.
func lineSpans(s string, from, to int) (found [][2]int) {
	line := s[from:to]
	lower := strings.ToLower(line)
	for _, secret := range textSecrets {
		if !containsOneOf(lower, secret.hints) {
			continue
		}
		for _, m := range secret.pattern().FindAllStringSubmatchIndex(line, -1) {
			for i := 2; i < len(m); i += 2 {
				if m[i] < 0 || strings.HasPrefix(line[m[i]:], "${") { // a variable is none
					continue
				}
				start, end := from+m[i], from+m[i+1]
				text := strings.TrimRight(s[start:end], `)]}.\`)
				if last := secretEnd(s, start, end, to); last > end {
					text = strings.TrimRight(s[start:last], "\\\r\n")
				}
				if text != "" && (secret.is == nil || secret.is(text)) {
					found = append(found, [2]int{start, start + len(text)})
				}
			}
		}
	}
	return found
}

// maxQuotedSecret is how far a quoted secret is followed.
const maxQuotedSecret = 4096

// secretEnd is where a secret ends that begins after a quote and was found up to end: at the next such quote, which may be escaped
// and on another line, or at the end of its line, which is to, if there is none near. It is end if no quote stands before it.
func secretEnd(s string, start, end, to int) int {
	if start == 0 || s[start-1] != '"' && s[start-1] != '\'' {
		return end
	}
	if i := strings.IndexByte(s[end:min(len(s), end+maxQuotedSecret)], s[start-1]); i >= 0 {
		return end + i
	}
	return to
}

// merged are the spans in order, those that overlap as one.
func merged(spans [][2]int) [][2]int {
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], b[1]-a[1]) })
	var apart [][2]int
	for _, s := range spans {
		if n := len(apart); n > 0 && s[0] < apart[n-1][1] {
			apart[n-1][1] = max(apart[n-1][1], s[1])
			continue
		}
		apart = append(apart, s)
	}
	return apart
}

// looksGiven reports whether what follows a scheme is a credential and not the next word of a sentence.
func looksGiven(s string) bool {
	return len(s) >= 20 || len(s) >= 4 && strings.ContainsAny(s, "0123456789_=+/~")
}

// secrets are the values that the server is started with and that are not to be shown, each also as it stands inside JSON.
func (s *Server) secrets() []string {
	var found []string
	add := func(name, value string) {
		value = value[len(authScheme().FindString(value)):]
		switch {
		case len(value) < minPassword || placeholder().MatchString(value):
		case isSecretName(name) || tokens().MatchString(value) || looksRandom(value):
			found = append(found, value)
			if text, err := json.Marshal(value); err == nil && string(text[1:len(text)-1]) != value {
				found = append(found, string(text[1:len(text)-1]))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		add(name, s.Env[name])
	}
	before := ""
	for _, arg := range s.Args {
		flag, value, joined := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(flag, "-")
		if !isFlag || !joined {
			flag, value = before, arg
		}
		if m := headerText().FindStringSubmatch(value); m != nil {
			flag, value = m[1], m[2]
		}
		if add(flag, value); isFlag && !joined {
			before = arg
		} else {
			before = ""
		}
	}
	return found
}

// isSecretName reports whether a member of that name holds a secret. Some names of the protocol's own only look so.
func isSecretName(name string) bool {
	switch name {
	case "progressToken", "idempotencyKey", "_idempotency_key", "idempotency_key", "key":
		return false
	}
	return secretName().MatchString(name)
}
