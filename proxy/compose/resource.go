package compose

import "strings"

// template is a URI template (RFC 6570) of a server, as far as its beginning tells it from others.
type template struct {
	text    string
	literal string // before the first expression
	server  int
}

func newTemplate(text string, server int) template {
	literal, _, _ := strings.Cut(text, "{")
	return template{text, literal, server}
}

// whose returns the server that has listed a URI, or a template that the URI begins like.
func (b *Board) whose(uri string) (server int, known bool) {
	if server, known = b.uris[uri]; known {
		return server, true
	}
	longest := 0
	for _, t := range b.templates {
		if t.text == uri { // completion/complete refers to the template itself
			return t.server, true
		}
		if len(t.literal) > longest && strings.HasPrefix(uri, t.literal) {
			server, known, longest = t.server, true, len(t.literal)
		}
	}
	return server, known
}
