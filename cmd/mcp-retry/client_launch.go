package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// launch is how a server of a client is started, in the spelling of a config of ours: ${VAR} for what comes from the
// environment, secrets among it, and nothing that only an editor could fill in.
type launch struct {
	command string
	args    []string
	env     []envVar
	cwd     string

	needs   map[string]need   // variables that must be set for it
	secrets map[string]string // what the variables stand for that were in clear among the arguments
}

// need says why a variable must be set.
type need uint8

const (
	givenByClient need = iota // the client's entry sets it, and goes on doing so: nothing is to be done
	secretInEnv               // the same, and it is a secret
	secretInArgs              // it was in clear among the arguments
	placeholder               // only the editor knows its value
)

// translator puts an entry into our spelling.
type translator struct {
	entry *clientEntry
	home  string // spelled in our way
	out   launch
}

// launch is how the entry's server is started.
func (e *clientEntry) launch(m machine) launch {
	t := translator{entry: e, home: "${HOME}", out: launch{needs: map[string]need{}, secrets: map[string]string{}}}
	if m.system == "windows" {
		t.home = "${USERPROFILE}"
	}
	t.out.command = t.text(e.command)
	flag := ""
	for i, word := range e.args {
		if flag == "-p" && e.isPassword(i) && !t.filledIn(word) {
			t.out.args = append(t.out.args, t.secret("password", word))
			flag = ""
			continue
		}
		t.out.args = append(t.out.args, t.argument(flag, word))
		if flag = ""; strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			flag = word
		}
	}
	for _, v := range e.env {
		t.out.env = append(t.out.env, envVar{v.name, t.variable(v)})
	}
	t.out.cwd = t.directory()
	return t.out
}

// directory is where the server is started. The client starts that of a project in the project's directory, and we may be
// started elsewhere: by check, say.
func (t *translator) directory() string {
	e := t.entry
	switch cwd := t.text(e.cwd); {
	case e.project == "":
		return cwd
	case cwd == "":
		if slices.ContainsFunc(slices.Concat([]string{e.command}, e.args), e.isRelative) {
			return e.project
		}
		return ""
	case filepath.IsAbs(cwd) || strings.HasPrefix(cwd, "~") || strings.HasPrefix(cwd, "${"):
		return cwd
	default:
		return filepath.Join(e.project, cwd)
	}
}

// isRelative reports whether a word names a file from within the directory of the project.
func (e *clientEntry) isRelative(word string) bool {
	if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") || strings.HasPrefix(word, `.\`) || strings.HasPrefix(word, `..\`) {
		return true
	}
	if word == "" || filepath.IsAbs(word) || strings.HasPrefix(word, "-") {
		return false
	}
	info, err := os.Stat(filepath.Join(e.project, word))
	return err == nil && !info.IsDir()
}

// variable is the value of a variable of the server's environment. What the client fills in, and secrets, come to us in
// our own environment under the same name.
func (t *translator) variable(v envVar) string {
	own := "${" + v.name + "}"
	switch {
	case !variableName.MatchString(v.name):
		return t.text(v.value)
	case t.entry.expands() && editorOnly(v.value, t.entry.project):
		t.out.needs[v.name] = givenByClient
		return own
	case !t.filledIn(v.value) && looksSecret(v.name, v.value):
		t.out.needs[v.name] = secretInEnv
		return own
	}
	return t.text(v.value)
}

// argument is an argument; flag is the one before it, if that may say what it is.
func (t *translator) argument(flag, word string) string {
	name, value, joined := strings.Cut(word, "=")
	switch {
	case t.filledIn(word):
	case joined && strings.HasPrefix(name, "-") && looksSecret(name, value):
		return name + "=" + t.hidden(name, value)
	case joined && variableName.MatchString(name) && !strings.Contains(value, ";") && looksSecret(name, value): // as in: docker run -e NAME=VALUE
		return name + "=" + t.secret(name, value)
	case !strings.HasPrefix(word, "-") && looksSecret(flag, word):
		return t.hidden(flag, word)
	case looksSecret("", word):
		return t.hidden("", word)
	}
	return t.text(word)
}

// hidden is a secret argument without the secret. The name of a header or a variable stays, for it says what to set ours to.
func (t *translator) hidden(flag, word string) string {
	name, value, assigned := strings.Cut(word, "=")
	switch header := headerLine.FindStringSubmatch(word); {
	case header != nil && secretName.MatchString(header[2]):
		return header[1] + t.secret(header[2], header[3])
	case assigned && variableName.MatchString(name) && !strings.Contains(value, ";") && looksSecret(name, value):
		return name + "=" + t.secret(name, value)
	case flag != "":
		return t.secret(flag, word)
	case strings.Contains(word, "://"):
		return t.secret("url", word)
	}
	return t.secret("secret", word)
}

// secret is the variable that stands for a secret among the arguments, whose flag or kind is given. It has the name of the
// server in it, for flags are called the same everywhere.
func (t *translator) secret(what, value string) string {
	name := freeName(spellVariable(t.entry.name+"_"+what), func(name string) bool {
		known, ok := t.entry.lookup(func(string) (string, bool) { return "", false })(name)
		if !ok {
			known, ok = t.out.secrets[name]
		}
		return !ok || known == value
	})
	t.out.needs[name] = secretInArgs
	t.out.secrets[name] = value
	return "${" + name + "}"
}

// freeName is a name, or that with the first number behind it, that is free.
func freeName(name string, free func(string) bool) string {
	found := name
	for n := 2; !free(found); n++ {
		found = fmt.Sprintf("%s_%d", name, n)
	}
	return found
}

// renamed is the launch with other names for variables that stand for secrets among its arguments.
func (l launch) renamed(names map[string]string) launch {
	r := l
	r.args = slices.Clone(l.args)
	for i, word := range r.args {
		r.args[i] = placeholders.ReplaceAllStringFunc(word, func(s string) string {
			if to, ok := names[s[2:len(s)-1]]; ok {
				return "${" + to + "}"
			}
			return s
		})
	}
	r.needs, r.secrets = maps.Clone(l.needs), map[string]string{}
	for from, value := range l.secrets {
		delete(r.needs, from)
		r.secrets[cmp.Or(names[from], from)] = value
	}
	for name := range r.secrets {
		r.needs[name] = secretInArgs
	}
	return r
}

// placeholders are ${…} as they stand in the files of clients: they do not nest there.
var (
	placeholders = regexp.MustCompile(`\$\{([^{}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ourVariable  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(:-.*)?$`)
)

// filledIn reports whether the client, or else nobody, was to put a value into a text: that is no secret.
func (t *translator) filledIn(s string) bool {
	return strings.Contains(s, "${") && (t.entry.expands() || leftOver.MatchString(s))
}

// unexpanded are what looks as if the client were to put a value in its place, and it does not.
func (e *clientEntry) unexpanded() (words []string) {
	if e.expands() {
		return nil
	}
	for _, v := range e.env {
		words = append(words, placeholders.FindAllString(v.value, -1)...)
	}
	for _, word := range slices.Concat([]string{e.command, e.cwd}, e.args) {
		words = append(words, placeholders.FindAllString(word, -1)...)
	}
	words = slices.DeleteFunc(words, func(s string) bool { return !leftOver.MatchString(s) })
	slices.Sort(words)
	return slices.Compact(words)
}

// text is a text with what the client puts in replaced by what we do.
func (t *translator) text(s string) string {
	if !t.entry.expands() {
		return strings.ReplaceAll(s, "${", "$${")
	}
	if !strings.Contains(s, "${") {
		return s
	}
	var out strings.Builder
	done := 0
	for _, at := range placeholders.FindAllStringSubmatchIndex(s, -1) {
		out.WriteString(strings.ReplaceAll(s[done:at[0]], "${", "$${"))
		out.WriteString(t.placeholder(s[at[2]:at[3]]))
		done = at[1]
	}
	out.WriteString(strings.ReplaceAll(s[done:], "${", "$${"))
	return out.String()
}

// placeholder is what stands for ${inner}.
func (t *translator) placeholder(inner string) string {
	kind, word, _ := strings.Cut(inner, ":")
	switch {
	case kind == "workspaceFolder" && t.entry.project != "":
		return t.entry.project
	case kind == "workspaceFolderBasename" && t.entry.project != "":
		return filepath.Base(t.entry.project)
	case kind == "userHome":
		return t.home
	case inner == "pathSeparator" || inner == "/":
		return string(filepath.Separator)
	case (kind == "env" || kind == "localEnv") && variableName.MatchString(word):
		return "${" + word + "}"
	case editorWords[kind] || kind == "input" || kind == "config" || kind == "command":
		name := spellVariable(inner[strings.LastIndexAny(inner, ":.")+1:])
		t.out.needs[name] = placeholder
		return "${" + name + "}"
	case ourVariable.MatchString(inner):
		return "${" + inner + "}"
	}
	return "$${" + inner + "}"
}

// editorWords are the variables of editors that look like those of the environment.
var editorWords = map[string]bool{
	"workspaceFolder": true, "workspaceFolderBasename": true, "workspaceRoot": true, "file": true, "fileBasename": true,
	"fileDirname": true, "relativeFile": true, "extensionPath": true, "selectedText": true, "lineNumber": true,
}

// editorOnly reports whether a text holds something that only an editor can fill in.
func editorOnly(s, project string) bool {
	for _, m := range placeholders.FindAllStringSubmatch(s, -1) {
		kind, _, more := strings.Cut(m[1], ":")
		known := project != "" && strings.HasPrefix(kind, "workspaceFolder")
		if !known && (editorWords[kind] || more && (kind == "input" || kind == "config" || kind == "command")) {
			return true
		}
	}
	return false
}

// spellVariable makes the name of a variable of the environment out of a word.
func spellVariable(word string) string {
	var parts []string
	for _, part := range notInNames.Split(wordBorder.ReplaceAllString(word, "${1}_${2}"), -1) {
		if part != "" {
			parts = append(parts, strings.ToUpper(part))
		}
	}
	name := strings.Join(parts, "_")
	if !variableName.MatchString(name) {
		name = "MCP_" + name
	}
	return name
}

var (
	notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)
	wordBorder = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// standIn is an environment in which a variable that is not set stands for itself.
func standIn(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := env(name); ok {
			return value, true
		}
		return "${" + name + "}", true
	}
}

// same reports whether two launches are one.
func (l launch) same(other launch) bool {
	return maps.Equal(l.secrets, other.secrets) && l.command == other.command && l.cwd == other.cwd && slices.Equal(l.args, other.args) && slices.Equal(l.env, other.env)
}

// variables are the variables that must be set for one of these reasons, sorted.
func (l launch) variables(why ...need) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(l.needs)) {
		if slices.Contains(why, l.needs[name]) {
			names = append(names, name)
		}
	}
	return names
}
