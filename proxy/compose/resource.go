package compose

import (
	"slices"
	"strconv"
	"strings"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

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

// whose returns the servers that have listed a URI, or the one with the template that the URI begins like.
func (b *Board) whose(uri string) (servers []int) {
	if servers = b.uris[uri]; servers != nil {
		return servers
	}
	longest := 0
	for _, t := range b.templates {
		if t.text == uri { // completion/complete refers to the template itself
			return []int{t.server}
		}
		if len(t.literal) > longest && strings.HasPrefix(uri, t.literal) {
			servers, longest = []int{t.server}, len(t.literal)
		}
	}
	return servers
}

// forgetResources forgets what a server has listed.
func (b *Board) forgetResources(server int) {
	for uri, servers := range b.uris {
		switch i := slices.Index(servers, server); {
		case i >= 0 && len(servers) == 1:
			delete(b.uris, uri)
		case i >= 0:
			b.uris[uri] = slices.Delete(servers, i, i+1)
		}
	}
	b.templates = slices.DeleteFunc(b.templates, func(t template) bool { return t.server == server })
}

// maxShared bounds the records of resources that several servers have.
const maxShared = 100

// logShared logs, once, that two servers have a resource.
func (b *Board) logShared(uri string, first, other int) {
	if b.shared[uri] || len(b.shared) >= maxShared {
		return
	}
	b.shared[uri] = true
	b.log(engine.Record{
		Level: engine.LevelWarn, Event: "resource_shared", Server: b.name(other),
		Detail: strconv.Quote(uri) + " is a resource of " + strconv.Quote(b.name(first)) + " too, which is asked first",
	})
}
