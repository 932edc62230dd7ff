package schema

import "strings"

// expander replaces ${VAR} and ${VAR:-default} in how a server is started. A value is put in as it is: what it holds is not
// expanded again. $${ is a literal ${, and a $ without a brace is a $.
type expander struct {
	env    func(string) (string, bool)
	report *report
}

// expand returns the text of a node with its variables replaced. A fault marks the node.
func (x *expander) expand(n *node) string {
	return x.text(n, n.text, 0)
}

// text expands a part of a node's text that starts at offset.
func (x *expander) text(n *node, s string, offset int) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			out.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			end := closing(s, i+2)
			if end < 0 {
				p := n.place(offset+i, 2)
				n.bad = true
				x.report.errorAt(p, "bad-value", "close it with }, or write $${ for a literal ${", "${ is not closed")
				return out.String() + s[i:]
			}
			out.WriteString(x.variable(n, s[i+2:end], offset+i))
			i = end + 1
		default:
			out.WriteByte(s[i])
			i++
		}
	}
	return out.String()
}

// closing returns the offset of the brace that closes the one before i, or -1.
func closing(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch {
		case s[i] == '}' && depth == 0:
			return i
		case s[i] == '}':
			depth--
		case strings.HasPrefix(s[i:], "${"):
			depth++
			i++
		}
	}
	return -1
}

var (
	varName = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	varWord = pattern(`^[A-Za-z_][A-Za-z0-9_]*`)
)

// editorWords are variables of editors that look like those of the environment.
var editorWords = map[string]bool{
	"workspaceFolder": true, "workspaceFolderBasename": true, "workspaceRoot": true, "userHome": true, "file": true, "fileDirname": true,
	"fileBasename": true, "relativeFile": true, "pathSeparator": true, "extensionPath": true, "selectedText": true, "lineNumber": true,
}

// variable returns what stands for ${inner}; offset is that of its dollar in the node's text.
func (x *expander) variable(n *node, inner string, offset int) string {
	at := n.place(offset, len(inner)+3)
	name, rest := varWord().FindString(inner), ""
	rest = inner[len(name):]
	value, isSet := "", false
	if name != "" {
		value, isSet = x.env(name)
	}
	fault := func(id, hint, format string, args ...any) string {
		n.bad = true
		x.report.errorAt(at, id, hint, format, args...)
		return ""
	}
	switch {
	case name != "" && rest == "" && isSet:
		return value
	case name != "" && rest == "" && editorWords[name]:
		return fault("editor-placeholder", "write the path itself, or set a variable "+name,
			"${%s} is a placeholder of an editor, which only the editor can fill in", inner)
	case name != "" && rest == "":
		return fault("unset-variable", "set it, or give a default: ${"+name+":-default}", "the environment variable %s is not set", name)
	case name != "" && strings.HasPrefix(rest, ":-"):
		if value != "" {
			return value
		}
		return x.text(n, rest[2:], offset+2+len(name)+2)
	case name != "" && strings.HasPrefix(rest, ":") && !strings.ContainsAny(rest, "=?+"):
		hint := "replace it by the value, or by a variable of the environment: ${NAME}"
		if word := rest[1:]; (name == "env" || name == "localEnv") && varName().MatchString(word) {
			hint = "write ${" + word + "}"
		}
		return fault("editor-placeholder", hint, "${%s} is a placeholder of an editor, which only the editor can fill in", inner)
	}
	return fault("bad-value", "write $${ for a literal ${", "${%s} is neither ${VAR} nor ${VAR:-default}", shorten(inner))
}

// split cuts a command line into words as a shell does, quotes respected, and expands each word.
func (x *expander) split(n *node) []string {
	var words []string
	w, open := wordSplitter{s: n.text}, true
	for {
		word, ok := w.next()
		if !ok {
			break
		}
		words = append(words, x.parts(n, word))
	}
	if open = w.quote != 0; open {
		n.bad = true
		x.report.errorAt(n.place(w.quoteAt, 1), "bad-value", "close it, or write a backslash before it", "a quote in the command is not closed")
		return nil
	}
	return words
}

func (x *expander) parts(n *node, word []wordPart) string {
	var out strings.Builder
	for _, p := range word {
		if p.literal {
			out.WriteString(p.text)
		} else {
			out.WriteString(x.text(n, p.text, p.at))
		}
	}
	return out.String()
}
