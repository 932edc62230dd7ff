package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// clientConfig is the file of a client: its text, and the servers in it. Clients disagree on how strict their JSON is and on
// the name of the member that holds the servers; everything that any of them takes is taken from all.
type clientConfig struct {
	clientFile
	text    []byte // as it was read
	root    hujson.Value
	entries []*clientEntry
	twice   []string // what stands more than once in it, in words
}

// clientEntry is one server in a client's file.
type clientEntry struct {
	name    string
	client  string   // one of knownClients, or "" if that is not known
	keys    []string // the way from the root of the file to the entry
	project string   // the directory of the project that it belongs to, or ""
	value   *hujson.Value

	// How the server is started. Without meaning if fault is set.
	command string
	args    []string
	env     []envVar
	cwd     string

	fault string // why it is not a program that could be started; ""  = it is
}

// envVar is a variable of a server's environment.
type envVar struct{ name, value string }

// utf8BOM is a byte order mark, which editors on Windows put in front.
const utf8BOM = "\uFEFF"

// readClientConfig reads the file of a client. The error is fit for the user; if there is no such file, it is fs.ErrNotExist.
func readClientConfig(f clientFile) (*clientConfig, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		var broken *fs.PathError
		if errors.As(err, &broken) {
			err = broken.Err
		}
		return nil, fmt.Errorf("cannot read %q: %w", f.path, err)
	}
	return parseClientConfig(f, text)
}

// parseClientConfig finds the servers in the text of a client's file.
func parseClientConfig(f clientFile, text []byte) (*clientConfig, error) {
	c := &clientConfig{clientFile: f, text: text}
	json := bytes.TrimPrefix(text, []byte(utf8BOM))
	if len(bytes.TrimSpace(json)) == 0 {
		return c, nil // what a client leaves that has nothing to keep
	}
	if tooDeep(json) {
		return nil, fmt.Errorf("cannot read %q: its values are nested more than %d deep", f.path, deepest)
	}
	root, err := parseCommented(json)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %s", f.path, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	c.root = root
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("cannot read %q: it holds no JSON object", f.path)
	}
	c.collect(object, nil, f.project)
	if projects, ok := objectIn(object, "projects"); ok { // Claude Code: what belongs to one project, and to one user
		for i := range projects.Members {
			dir := nameOf(&projects.Members[i])
			if project, ok := projects.Members[i].Value.Value.(*hujson.Object); ok {
				c.collect(project, []string{"projects", dir}, dir)
			}
		}
	}
	return c, nil
}

// parseCommented parses JSON with comments and trailing commas. A comment may end with the file, which the parser does not take
// for the end of a line.
func parseCommented(json []byte) (hujson.Value, error) {
	root, err := hujson.Parse(json)
	if err == nil || bytes.HasSuffix(json, []byte("\n")) {
		return root, err
	}
	whole, notThat := hujson.Parse(append(bytes.Clone(json), '\n'))
	if notThat != nil {
		return root, err
	}
	whole.AfterExtra = bytes.TrimSuffix(whole.AfterExtra, []byte("\n"))
	return whole, nil
}

// deepest is how deep values may be nested: the parser recurses, and has no bound of its own.
const deepest = 1000

// tooDeep reports whether brackets, outside of strings and comments, are nested deeper than we read.
func tooDeep(json []byte) bool {
	depth := 0
	for i := 0; i < len(json); i++ {
		switch c := json[i]; {
		case c == '"':
			for i++; i < len(json) && json[i] != '"'; i++ {
				if json[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(json[i:], []byte("//")):
			end := bytes.IndexByte(json[i:], '\n')
			if end < 0 {
				return false
			}
			i += end
		case bytes.HasPrefix(json[i:], []byte("/*")):
			end := bytes.Index(json[i+2:], []byte("*/"))
			if end < 0 {
				return false
			}
			i += end + 3
		case c == '{' || c == '[':
			if depth++; depth > deepest {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// collect takes in the servers that an object holds.
func (c *clientConfig) collect(object *hujson.Object, at []string, project string) {
	for _, member := range []string{"mcpServers", "servers"} {
		servers, ok := objectIn(object, member)
		if !ok {
			continue
		}
		for i := range servers.Members {
			m := &servers.Members[i]
			name := nameOf(m)
			e := &clientEntry{name: name, client: cmp.Or(c.client, clientOfFile(c.path)), project: project, value: &m.Value}
			e.keys = append(slices.Clone(at), member, name)
			if memberOf(servers, name) != m {
				c.twice = append(c.twice, fmt.Sprintf("%q stands more than once in %s: the last counts", name, e.where(c.clientFile)))
				continue
			}
			if !utf8.Valid(m.Name.Pack()) || !utf8.Valid(m.Value.Pack()) {
				e.fault = "holds bytes that are no UTF-8"
				c.entries = append(c.entries, e)
				continue
			}
			e.fault = e.read()
			c.entries = append(c.entries, e)
			if what := repeated(m.Value.Value); what != "" {
				c.twice = append(c.twice, fmt.Sprintf("%q in %s has more than one %q: the last counts", name, e.where(c.clientFile), what))
			}
		}
	}
}

// repeated is a member that an entry, or its env, has more than once, or "".
func repeated(entry hujson.ValueTrimmed) string {
	object, ok := entry.(*hujson.Object)
	if !ok {
		return ""
	}
	for i := range object.Members {
		if name := nameOf(&object.Members[i]); memberOf(object, name) != &object.Members[i] {
			return name
		}
	}
	if m := memberOf(object, "env"); m != nil {
		return repeated(m.Value.Value)
	}
	return ""
}

// expands reports whether the client puts values into texts such as ${HOME}. One that is not known is taken to do so.
func (e *clientEntry) expands() bool { return e.client != claudeDesktop }

// read takes in how the server is started, and says why it cannot be.
func (e *clientEntry) read() (fault string) {
	object, ok := e.value.Value.(*hujson.Object)
	if !ok {
		return "is not an object"
	}
	kind, kindOK := textIn(object, "type")
	switch command, url := memberOf(object, "command"), memberOf(object, "url"); {
	case command != nil && url != nil:
		return "has both a command and a url: which one counts is not clear"
	case url != nil || kindOK && isHTTP(kind):
		return "is a server over HTTP, which is not supported yet"
	case kindOK && kind != "stdio":
		return fmt.Sprintf("has the type %q, which is not known", kind)
	case command == nil:
		return "has no command"
	}
	if e.command, ok = textIn(object, "command"); !ok || strings.TrimSpace(e.command) == "" {
		return "has a command that is no text"
	}
	if m := memberOf(object, "args"); m != nil {
		list, ok := m.Value.Value.(*hujson.Array)
		if !ok {
			return "has args that are no list"
		}
		for i := range list.Elements {
			word, ok := scalarText(&list.Elements[i])
			if !ok {
				return fmt.Sprintf("has an argument that is no text: args[%d]", i)
			}
			e.args = append(e.args, word)
		}
	}
	if m := memberOf(object, "env"); m != nil && m.Value.Value.Kind() != 'n' {
		variables, ok := m.Value.Value.(*hujson.Object)
		if !ok {
			return "has an env that is no object"
		}
		for i := range variables.Members {
			name := nameOf(&variables.Members[i])
			value, ok := scalarText(&variables.Members[i].Value)
			if !ok {
				continue // null: the client does not set it
			}
			e.env = append(e.env, envVar{name, value})
		}
	}
	e.cwd, _ = textIn(object, "cwd")
	return ""
}

// isHTTP knows the names that clients have for servers over HTTP.
func isHTTP(kind string) bool {
	switch kind {
	case "http", "sse", "streamable-http", "streamableHttp", "streamable_http", "ws", "websocket":
		return true
	}
	return false
}

// lookup is the environment that the client gives the server: its variables over those of from.
func (e *clientEntry) lookup(from func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range slices.Backward(e.env) {
			if v.name == name {
				return v.value, true
			}
		}
		return from(name)
	}
}

// behindUs reports whether the entry starts mcp-retry already.
func (e *clientEntry) behindUs() bool {
	if e.fault != "" {
		return false
	}
	base := strings.ToLower(path.Base(strings.ReplaceAll(e.command, `\`, "/")))
	if strings.TrimSuffix(base, ".exe") == "mcp-retry" {
		return true
	}
	self, err := os.Executable() // which may be called anything
	return err == nil && filepath.IsAbs(e.command) && oneFile(e.command, self)
}

// find is the entry that stands in the same place, or nil.
func (c *clientConfig) find(keys []string) *clientEntry {
	for _, e := range c.entries {
		if slices.Equal(e.keys, keys) {
			return e
		}
	}
	return nil
}

// String is the file in a message.
func (f clientFile) String() string { return f.path }

// whose says in a word or two where an entry stands.
func (e *clientEntry) where(f clientFile) string {
	if e.keys[0] == "projects" {
		return fmt.Sprintf("%s (project %s)", f.path, e.project)
	}
	return f.path
}

// memberOf is the member of that name, or nil. Of several the last counts, as it does for the clients.
func memberOf(object *hujson.Object, name string) *hujson.ObjectMember {
	for i := range slices.Backward(object.Members) {
		if nameOf(&object.Members[i]) == name {
			return &object.Members[i]
		}
	}
	return nil
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

func objectIn(object *hujson.Object, name string) (*hujson.Object, bool) {
	m := memberOf(object, name)
	if m == nil {
		return nil, false
	}
	inner, ok := m.Value.Value.(*hujson.Object)
	return inner, ok
}

func textIn(object *hujson.Object, name string) (string, bool) {
	m := memberOf(object, name)
	if m == nil || m.Value.Value.Kind() != '"' {
		return "", false
	}
	return scalarText(&m.Value)
}

// scalarText is a text, number or boolean as text: people write ports and switches without quotes.
func scalarText(v *hujson.Value) (string, bool) {
	literal, ok := v.Value.(hujson.Literal)
	if !ok || literal.Kind() == 'n' {
		return "", false
	}
	return literal.String(), true
}
