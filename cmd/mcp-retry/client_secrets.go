package main

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// secretName knows names of what should not be read by everybody.
var secretName = regexp.MustCompile(`(?i)(token|secret|passw|passphrase|pwd$|(^|[-_])(pass|pw)$|api[-_]?key|access[-_]?key|private[-_]?key|credential|bearer|authorization|cookie|(^|[-_])(key|pat|auth|dsn|sig)$|connection[-_]?string|(^|[-_])database[-_]url$)`)

// passwordName knows names of what people think up, which may be a number too.
var passwordName = regexp.MustCompile(`(?i)(passw(or)?d|passphrase|pwd|(^|[-_])(pass|pw))$`)

// looksSecret reports whether a value is one that a config should not hold in clear: for the name that it has, for its shape, or
// for looking random. It errs on the careful side: a variable too many costs little.
func looksSecret(name, value string) bool {
	switch {
	case strings.TrimSpace(value) == "":
		return false
	case passwordName.MatchString(name):
		return !switchWord.MatchString(value)
	case secretName.MatchString(name):
		return !dullValue.MatchString(value)
	}
	if header := headerLine.FindStringSubmatch(value); header != nil && secretName.MatchString(header[2]) && !dullValue.MatchString(header[3]) {
		return true
	}
	if inner, rest, ok := strings.Cut(value, "="); ok && variableName.MatchString(inner) && looksSecret(inner, rest) {
		return true
	}
	if secretInside.MatchString(value) || secretMember(value) || secretURL(value) {
		return true
	}
	masked := (*schema.Config)(nil).Mask([]byte(value)) // replaces what has the shape of a well-known credential
	return string(masked) != value || isRandom(value)
}

var (
	switchWord = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|none|null)$`)
	// A switch, a number or a file, whatever its name.
	dullValue = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|none|null|[0-9]{1,5}|(/|\./|~/|[A-Z]:\\).*)$`)
	// A header of HTTP, as flags take it.
	headerLine = regexp.MustCompile(`^(([A-Za-z][A-Za-z0-9_-]*):\s*)(\S.*)$`)
	// What one of a bearer has in front of it, and the part of a connection string, or of a query, that is secret.
	secretInside = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}|(^|[;,&?\s])(password|passwd|pwd|accountkey|sharedaccesskey|access_token|token|secret|api[-_]?key|apikey)\s*=\s*[^;&\s]`)
	// A member of a JSON object, which some servers take for an argument.
	jsonMember = regexp.MustCompile(`"([^"\\]*)"\s*:\s*"([^"\\]+)`)
	// What generated secrets are made of; neither a path nor a package nor a host.
	randomValue = regexp.MustCompile(`^[A-Za-z0-9+_=-]{24,}$`)
	// A version, a port, or a mapping of ports.
	portLike = regexp.MustCompile(`^[0-9][0-9.:-]*(/(tcp|udp))?$`)
)

// secretMember reports whether a text is JSON, or holds some, with a secret in it.
func secretMember(text string) bool {
	for _, m := range jsonMember.FindAllStringSubmatch(text, -1) {
		if secretName.MatchString(m[1]) && !dullValue.MatchString(m[2]) {
			return true
		}
	}
	return false
}

// secretURL reports whether a text is a URL with a secret in it: of a user, in its path, or in its query.
func secretURL(text string) bool {
	if !strings.Contains(text, "://") {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	if u.User != nil {
		_, hasPassword := u.User.Password()
		overHTTP := strings.HasSuffix(u.Scheme, "http") || strings.HasSuffix(u.Scheme, "https")
		if hasPassword || overHTTP || isRandom(u.User.Username()) {
			return true
		}
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if value != "" && (secretName.MatchString(name) && !dullValue.MatchString(value) || isRandom(value)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(strings.Split(u.Path, "/"), isRandom)
}

// isRandom reports whether a text has both letters and more than a few digits, and is long, as a generated one is.
func isRandom(s string) bool {
	digits := 0
	for _, c := range s {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits >= 4 && digits < len(s) && randomValue.MatchString(s)
}

// launchers start another program, and have a -p of their own before its name: a package, or a version.
var launchers = []string{"npx", "npm", "pnpm", "pnpx", "bun", "bunx", "yarn", "node", "uv", "uvx", "pipx", "python", "python3"}

// isPassword reports whether the argument of that index, which follows -p, is a password, and not a package for a program that
// starts others.
func (e *clientEntry) isPassword(index int) bool {
	if !passwordLike(e.args[index]) {
		return false
	}
	program := strings.ToLower(path.Base(strings.ReplaceAll(e.command, `\`, "/")))
	if !slices.Contains(launchers, strings.TrimSuffix(strings.TrimSuffix(program, ".exe"), ".cmd")) {
		return true
	}
	for i, before := range e.args[:index-1] {
		isSub := slices.Contains([]string{"exec", "x", "dlx", "run", "tool"}, before)
		if !strings.HasPrefix(before, "-") && !isSub && (i == 0 || e.args[i-1] != "-p") {
			return true // the program that is started stands before it
		}
	}
	return false
}

// passwordLike reports whether a word that follows -p may be a password: it is no port, version or file.
func passwordLike(word string) bool {
	return !portLike.MatchString(word) && !dullValue.MatchString(word) && !strings.HasPrefix(word, "-") && !strings.ContainsAny(word, `/\`)
}
