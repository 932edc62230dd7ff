package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Convert returns a config in mcp-shield's spelling in ours, with the same rules: keys are renamed, a command in one string is cut
// into command and args, and what mcp-shield takes for granted and we do not (two retries, from 1 s) is stated. All else stays
// as it stands, comments and order included. A file in our spelling is returned as it is.
//
// The result is nil if the findings hold an Error: those that [Load] has, but that no variable of the environment counts as
// unset; and one, named unsupported, for a place that cannot be rewritten because what it says is written elsewhere (an
// alias, a computed value) or over several lines.
func Convert(file string, data []byte) (converted []byte, findings Findings) {
	env := func(name string) (string, bool) { return "${" + name + "}", true }
	cfg, findings := Load(file, data, env)
	if cfg == nil || findings.HasErrors() {
		return nil, findings
	}
	var r report
	root := r.read(file, data)
	d := detect(file, root, &r)
	if d != shield {
		return data, findings
	}
	check(d, root, &r)
	c := converter{report: &r, src: r.src, known: map[edit]bool{}}
	c.convert(root)
	if !r.findings.HasErrors() {
		converted = append(data[:len(data)-len(stripBOM(data)):len(data)-len(stripBOM(data))], c.apply()...)
		c.verify(cfg, file, converted, env)
	}
	if r.findings.HasErrors() {
		r.findings.Sort()
		return nil, r.findings
	}
	return converted, findings
}

// converter collects the changes to a file in mcp-shield's spelling.
type converter struct {
	report *report
	src    *source
	edits  []edit
	known  map[edit]bool // what an alias names is changed once
}

// edit replaces the bytes from one offset to another.
type edit struct {
	from, to int
	text     string
}

// entry is a key that is added to a map, with its value as JSON, which is YAML and CUE too.
type entry struct{ key, value string }

func (c *converter) edit(from, to int, text string) {
	e := edit{from, to, text}
	if !c.known[e] {
		c.known[e] = true
		c.edits = append(c.edits, e)
	}
}

// apply returns the text with all changes.
func (c *converter) apply() []byte {
	slices.SortStableFunc(c.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var out bytes.Buffer
	done := 0
	for _, e := range c.edits {
		if e.from < done { // an alias and what it names were both to be changed: verify tells
			continue
		}
		out.WriteString(c.src.text[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}
	out.WriteString(c.src.text[done:])
	return out.Bytes()
}

func (c *converter) cannot(at Pos, hint, format string, args ...any) {
	c.report.errorAt(at, "unsupported", hint, format, args...)
}

func (c *converter) convert(root *node) {
	for _, m := range settingMaps(root) {
		c.rename(m)
	}
	servers, defaults := root.get("servers"), root.get("defaults")
	if states(defaults) {
		c.retries(root.key("defaults"), defaults)
	}
	for _, f := range servers.fields {
		c.command(f.value)
		switch {
		case states(defaults):
		case states(f.value):
			c.retries(f.key, f.value)
		default:
			c.unstated(f)
		}
	}
}

// rename gives the keys of a map of settings our names.
func (c *converter) rename(m *node) {
	for _, f := range m.fields {
		for _, p := range f.value.fields {
			c.name(p.key, shieldInner[f.key.text][p.key.text])
		}
		c.name(f.key, shieldNames[f.key.text])
	}
}

func (c *converter) name(key *node, to string) {
	if to == "" {
		return
	}
	fix := c.report.rewrite(key, to)
	if fix.Pos.Line == 0 {
		c.cannot(key.pos, "write the key itself here", "%q is not written here as it is read, so it cannot be renamed", key.text)
		return
	}
	from, end := c.src.offsets(fix.Pos)
	c.edit(from, end, fix.Text)
}

// states reports whether a map says how long attempts take or how many there are: total_timeout is computed where it does.
func states(m *node) bool {
	return m.get("timeout") != nil || len(fieldsOf(m.get("retries"))) > 0
}

func fieldsOf(m *node) []field {
	if m == nil {
		return nil
	}
	return m.fields
}

// retries states in a map what mcp-shield takes for granted: two retries, the first after a second.
func (c *converter) retries(key, m *node) {
	base := entry{"base_delay", strconv.Itoa(int(WrapBaseDelay.Seconds()))}
	most := entry{"max_retries", strconv.Itoa(WrapMaxRetries)}
	given := m.get("retries")
	switch {
	case given == nil:
		c.insert(key, m, entry{"retry", flowMap(most, base)})
	case given.key("max") == nil:
		c.insert(m.key("retries"), given, most, base)
	default:
		c.insert(m.key("retries"), given, base)
	}
}

// unstated states for a server of which nothing is said how often and how long its calls are tried. For those of its tools of which
// something is said, total_timeout stays computed.
func (c *converter) unstated(server field) {
	const patience = "55" // what a call of which nothing is said may take
	retry := entry{"retry", flowMap(entry{"max_retries", strconv.Itoa(WrapMaxRetries)}, entry{"base_delay", strconv.Itoa(int(WrapBaseDelay.Seconds()))})}
	var tools []string
	for _, f := range fieldsOf(server.value.get("tools")) {
		if states(f.value) {
			tools = append(tools, "'"+strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(f.key.text)+"'")
		}
	}
	if len(tools) == 0 {
		c.insert(server.key, server.value, retry, entry{"total_timeout", patience})
		return
	}
	when := "![" + strings.Join(tools, ", ") + "].exists(g, glob(tool.name, g))"
	rule := flowMap(entry{"when", quoted(when)}, entry{"total_timeout", patience})
	c.insert(server.key, server.value, retry, entry{"policy", "[" + rule + "]"})
}

func flowMap(entries ...entry) string {
	parts := make([]string, len(entries))
	for i, e := range entries {
		parts[i] = quoted(e.key) + ": " + e.value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// insert adds entries at the head of the map that stands under a key.
func (c *converter) insert(key, m *node, entries ...entry) {
	open, _ := c.src.offsets(m.pos)
	at, _ := c.src.offsets(key.pos)
	if len(m.fields) > 0 && m.fields[0].merged {
		c.cannot(key.pos, "write its keys here", "what stands under %q is written elsewhere", key.text)
		return
	}
	if open < at {
		at = open // the key has an alias for it
	}
	open = afterAnchor(c.src.text, open)
	if strings.HasPrefix(c.src.text[open:], "{") {
		c.insertFlow(open+1, m, entries)
		return
	}
	first, _ := c.src.offsets(m.fields[0].key.pos)
	indent, alone := c.indent(first)
	if !alone {
		c.cannot(m.pos, "begin a line with each of its keys", "the map under %q cannot be added to", key.text)
		return
	}
	text := ""
	for _, e := range entries {
		text += c.newline() + indent + e.key + ": " + unquotedKeys(e.value)
	}
	end := c.lineEnd(at)
	c.edit(end, end, text)
}

// afterAnchor is the offset of what an anchor at an offset names.
func afterAnchor(text string, at int) int {
	if rest := text[at:]; strings.HasPrefix(rest, "&") {
		name := strings.IndexAny(rest, " \t\r\n")
		return at + len(rest) - len(strings.TrimLeft(rest[max(name, 0):], " \t"))
	}
	return at
}

// insertFlow adds entries after the brace of a map in braces.
func (c *converter) insertFlow(open int, m *node, entries []entry) {
	text, between := "", ", "
	at, quotes := open, true
	if len(m.fields) > 0 {
		at, _ = c.src.offsets(m.fields[0].key.pos)
		quotes = c.src.text[at] == '"'
		if indent, alone := c.indent(at); alone {
			between = "," + c.newline() + indent
		}
	}
	for i, e := range entries {
		key, value := quoted(e.key), e.value
		if !quotes {
			key, value = e.key, unquotedKeys(e.value)
		}
		if text += key + ": " + value; i < len(entries)-1 || len(m.fields) > 0 {
			text += between
		}
	}
	c.edit(at, at, text)
}

// unquotedKeys takes the quotes off the keys of a value, as people write them in YAML and CUE.
func unquotedKeys(value string) string {
	for _, key := range []string{"max_retries", "base_delay", "when", "total_timeout"} {
		value = strings.ReplaceAll(value, `"`+key+`": `, key+": ")
	}
	return value
}

// command cuts the command of a server into the program and its arguments.
func (c *converter) command(server *node) {
	n := server.get("command")
	if n == nil || server.key("args") != nil {
		return
	}
	words := wordsOf(n.text)
	if len(words) == 1 && words[0] == n.text || len(words) == 0 {
		return
	}
	raw := c.report.raw(n)
	isQuoted := len(raw) >= 2 && (raw[0] == '"' || raw[0] == '\'') && raw[len(raw)-1] == raw[0]
	if !isQuoted && raw != n.text {
		c.cannot(n.pos, "write it in one line, in quotes", "this command cannot be cut into words where it stands")
		return
	}
	from, end := c.src.offsets(n.pos)
	key, _ := c.src.offsets(server.key("command").pos)
	if from < key {
		c.cannot(server.key("command").pos, "write the command itself here", "the words of this command are written elsewhere")
		return
	}
	quotes := c.src.text[key] == '"'
	program, args := quoted(words[0]), make([]string, 0, len(words)-1)
	for _, w := range words[1:] {
		args = append(args, quoted(w))
	}
	if !quotes && !c.isCUE() {
		program = scalar(words[0])
	}
	c.edit(from, end, program)
	if len(args) == 0 {
		return
	}
	list := "[" + strings.Join(args, ", ") + "]"
	indent, alone := c.indent(key)
	switch {
	case c.isCUE() && alone:
		c.edit(end, end, c.newline()+indent+"args: "+list)
	case c.inFlow(server):
		name, between := "args", ", "
		if quotes {
			name = `"args"`
		}
		if alone {
			between = "," + c.newline() + indent
		}
		c.edit(end, end, between+name+": "+list)
	case alone:
		at := c.lineEnd(end)
		c.edit(at, at, c.newline()+indent+"args: "+list)
	default:
		c.cannot(n.pos, "begin a line with the key command", "args cannot be added here")
	}
}

// wordsOf cuts a command into words whose variables are not replaced, each written so that it says in our spelling what it says in
// the command: what is no variable there must be none here.
func wordsOf(command string) []string {
	var words []string
	w := wordSplitter{s: command}
	for {
		parts, ok := w.next()
		if !ok {
			return words
		}
		var word strings.Builder
		for i, p := range parts {
			word.WriteString(p.text)
			if p.literal && p.text == "$" && i+1 < len(parts) && parts[i+1].literal && parts[i+1].text == "{" {
				word.WriteString("$")
			}
		}
		words = append(words, word.String())
	}
}

func (c *converter) isCUE() bool { return strings.HasSuffix(strings.ToLower(c.src.file), ".cue") }

// inFlow reports whether a map is written in braces.
func (c *converter) inFlow(m *node) bool {
	at, _ := c.src.offsets(m.pos)
	return strings.HasPrefix(c.src.text[afterAnchor(c.src.text, at):], "{")
}

// indent is what stands before an offset in its line, and whether that is nothing but blanks.
func (c *converter) indent(at int) (indent string, alone bool) {
	start := strings.LastIndexByte(c.src.text[:at], '\n') + 1
	indent = c.src.text[start:at]
	return indent, strings.Trim(indent, " \t") == ""
}

// lineEnd is the offset of the end of the line in which an offset lies.
func (c *converter) lineEnd(at int) int {
	end := len(c.src.text)
	if i := strings.IndexByte(c.src.text[at:], '\n'); i >= 0 {
		end = at + i
	}
	return at + len(strings.TrimRight(c.src.text[at:end], "\r"))
}

// newline is how the file ends its lines.
func (c *converter) newline() string {
	if strings.Contains(c.src.text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// verify loads the result and complains if it is not sound, or starts other servers: aliases can share what was changed for one of
// them.
func (c *converter) verify(before *Config, file string, converted []byte, env func(string) (string, bool)) {
	after, findings := Load(file, converted, env)
	for _, f := range findings {
		if f.Level == Error {
			c.cannot(before.Servers[0].Pos, "convert it by hand", "the result would not load: %s", f.Message)
			return
		}
	}
	for i, s := range before.Servers {
		t := after.Servers[i]
		if s.Command != t.Command || !slices.Equal(s.Args, t.Args) {
			c.cannot(s.Pos, "write command and args by hand", "the command of %q cannot be cut into words where it stands", s.Name)
		}
	}
}
