package schema

import (
	"math"
	"slices"
	"strings"
)

// tokens are the shapes of well-known credentials: of a token by its prefix, of a private key, of a password in a URL.
var tokens = pattern(`\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|(?:sk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*` +
	`|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{24,}|pypi-[A-Za-z0-9_-]{24,}` +
	`|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^"']*`)

var (
	// The password of a URL, in a group of its own.
	urlPassword = pattern(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@'"]*:([^\s/:@'"$<{]{3,})@`)
	// Names of what should be secret.
	secretName = pattern(`(?i)(^|[^a-z])(api[_-]?key|access[_-]?key|private[_-]?key|key|token|secret|password|passwd|passphrase|pwd|pat|credentials?|auth(orization)?)$|[a-z](?-i:Key|Token|Secret|Password)$`)
	// Names of passwords, which people choose: they are shorter than generated secrets, and need not look random.
	passwordName = pattern(`(?i)(password|passwd|passphrase|pwd)$`)
	// A header as an argument gives it: its name and its value, the scheme of which is no secret.
	headerText = pattern(`^([A-Za-z][A-Za-z0-9-]*):[ \t]*(?:(?i:Bearer|Basic|Token)[ \t]+)?([^\s/].*)$`)
	// A value that stands for one.
	placeholder = pattern(`(?i)^(my|the|some|a)?[-_]?(password|passwd|passphrase|secret)$|your|example|placeholder|change.?me|replace|insert|dummy|sample|redacted|x{4,}|\*{3,}|\.{3}|^<|>$`)
)

// minSecret is the length from which a random-looking text counts as a secret for the name of its variable.
const minSecret = 16

// minPassword is the length from which a text counts as a password for the name of its variable.
const minPassword = 8

// findSecrets warns of credentials in what a server is started with, and returns where they stand.
func findSecrets(root *node, r *report) (found []Pos) {
	s := secretFinder{report: r}
	servers := root.get("servers")
	if servers == nil {
		return nil
	}
	for _, f := range servers.fields {
		if f.value.kind == object {
			s.server(f.value)
		}
	}
	return s.found
}

type secretFinder struct {
	report *report
	found  []Pos
}

func (s *secretFinder) server(n *node) {
	for _, f := range n.fields {
		switch f.key.text {
		case "env", "headers":
			for _, v := range f.value.fields {
				s.part(v.value, v.value.text, 0, v.key.text)
				s.conceal(v.value)
			}
		case "args":
			s.args(f.value.items)
		case "command":
			s.part(f.value, f.value.text, 0, "")
		}
	}
}

// args looks at arguments: --token=VALUE, --token followed by VALUE, and headers.
func (s *secretFinder) args(items []*node) {
	before := ""
	for _, item := range items {
		flag, value, joined := strings.Cut(item.text, "=")
		isFlag := strings.HasPrefix(flag, "-") && !strings.Contains(flag, " ")
		offset, name := len(flag)+1, flag
		if !isFlag || !joined {
			value, offset, name = item.text, 0, before
		}
		if m := headerText().FindStringSubmatchIndex(value); m != nil {
			name = value[m[2]:m[3]]
			value, offset = value[m[4]:m[5]], offset+m[4]
		}
		s.part(item, value, offset, name)
		if before = ""; isFlag && !joined {
			before = flag
		}
	}
}

// part looks at a part of a node's text that starts at offset; name is what it is called, or "".
func (s *secretFinder) part(n *node, value string, offset int, name string) {
	if after, ok := strings.CutPrefix(value, "Bearer "); ok {
		value, offset = after, offset+len("Bearer ")
	}
	switch {
	case n.kind != text && n.kind != number:
	case strings.Contains(value, "://") && s.inURL(n, value, offset, name):
	case passwordName().MatchString(name) && looksChosen(value):
		s.add(n, offset, len(value), name)
	case len(value) < minSecret:
	default:
		if m := tokens().FindStringIndex(value); m != nil {
			s.add(n, offset+m[0], m[1]-m[0], name)
		} else if !strings.Contains(value, "${") && secretName().MatchString(name) && looksRandom(value) {
			s.add(n, offset, len(value), name)
		}
	}
}

func (s *secretFinder) inURL(n *node, value string, offset int, name string) bool {
	m := urlPassword().FindStringSubmatchIndex(value)
	if m == nil || placeholder().MatchString(value[m[2]:m[3]]) {
		return false
	}
	s.add(n, offset+m[2], m[3]-m[2], name)
	return true
}

// conceal records what a variable of the server's is set to, all but the names of ours in it: it may be a secret that does not
// look like one.
func (s *secretFinder) conceal(n *node) {
	if n.kind != text && n.kind != number {
		return
	}
	from := 0
	for _, name := range append(variableParts().FindAllStringIndex(n.text, -1), []int{len(n.text), len(n.text)}) {
		if name[0] > from {
			s.mark(n, from, name[0]-from)
		}
		from = name[1]
	}
}

// variableParts are those of ${NAME} and ${NAME:-default} that are no value.
var variableParts = pattern(`\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?|\}`)

// mark records where a secret stands, line by line, and returns its beginning.
func (s *secretFinder) mark(n *node, offset, length int) Pos {
	at := n.place(offset, length)
	first := at
	if n.at != nil && n.at(offset+length).Line != at.Line {
		first.Len = wholeLine
	}
	s.found = append(s.found, first)
	for i := 0; n.at != nil && i < length; i++ {
		if p := n.at(offset + i); p.Line != s.found[len(s.found)-1].Line {
			p.Len = wholeLine
			s.found = append(s.found, p)
		}
	}
	return at
}

// add reports a secret and records where it stands.
func (s *secretFinder) add(n *node, offset, length int, name string) {
	at := s.mark(n, offset, length)
	variable, whose := "TOKEN", "this text"
	if name = strings.TrimLeft(name, "-"); name != "" {
		whose = "the value of " + shorten(name)
		if v := strings.ToUpper(strings.ReplaceAll(name, "-", "_")); varName().MatchString(v) {
			variable = v
		}
	}
	s.report.warnAt(at, "secret", "put it in the environment and write ${"+variable+"}", "%s looks like a secret in plain text", whose)
}

// wholeLine is more characters than are in a line.
const wholeLine = maxFileBytes

// looksRandom reports whether a text is long and mixed as generated secrets are; a path, a sentence or a placeholder is not.
func looksRandom(s string) bool {
	if len(s) < minSecret || !oneWord(s) {
		return false
	}
	letters := strings.IndexFunc(s, func(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }) >= 0
	digits := strings.ContainsAny(s, "0123456789")
	return letters && digits && entropy(s) >= 3
}

// looksChosen reports whether a text may be a password that somebody chose.
func looksChosen(s string) bool {
	return len(s) >= minPassword && !strings.Contains(s, "${") && oneWord(s)
}

// oneWord reports whether a text is neither a path nor a URL, a sentence, or a placeholder.
func oneWord(s string) bool {
	return !strings.ContainsAny(s, " \t\r\n") && !placeholder().MatchString(s) &&
		!strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "./") && !strings.HasPrefix(s, "~") && !strings.Contains(s, "://")
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// Mask returns the text of the config with every character of its secrets replaced by a star, so that it may be shown; places in
// it stay what they are. Of a text that could not be parsed, for which c is nil, only tokens of a known shape are replaced.
func (c *Config) Mask(src []byte) []byte {
	out := []byte(maskTokens(string(src)))
	if c == nil || len(c.secrets) == 0 {
		return out
	}
	bom := len(src) - len(stripBOM(src))
	s := newSource("", string(out[bom:]))
	var masked strings.Builder
	masked.Write(out[:bom])
	done := 0
	for _, p := range slices.SortedFunc(slices.Values(c.secrets), comparePos) {
		from, to := s.offsets(p)
		if to <= done {
			continue
		}
		from = max(from, done)
		masked.WriteString(s.text[done:from])
		masked.WriteString(stars(s.text[from:to]))
		done = to
	}
	masked.WriteString(s.text[done:])
	return []byte(masked.String())
}

// maskTokens replaces tokens of a known shape.
func maskTokens(s string) string {
	if len(s) < minSecret {
		return s
	}
	s = tokens().ReplaceAllStringFunc(s, stars)
	if !strings.Contains(s, "://") {
		return s
	}
	var out strings.Builder
	done := 0
	for _, m := range urlPassword().FindAllStringSubmatchIndex(s, -1) {
		out.WriteString(s[done:m[2]] + stars(s[m[2]:m[3]]))
		done = m[3]
	}
	return out.String() + s[done:]
}

// stars is a text with a star for each character, its line breaks kept.
func stars(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' {
			return c
		}
		return '*'
	}, s)
}
