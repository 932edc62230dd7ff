package schema

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Load reads, checks and desugars a config. The extension of file says how it is spelled: .yaml or .yml, .json (comments and
// trailing commas allowed), .cue; any other is taken for YAML, of which JSON is a part. env looks up environment variables for
// ${VAR}; nil knows none.
//
// All findings are returned at once, in the order of the file. cfg is nil only if the text could not be parsed at all; else it
// holds everything that is sound, so that the rest can be looked at too. A config is fit for use if no finding is an Error.
//
// The findings have these IDs: syntax (the text itself), unknown-key, repeated-key, missing-key, bad-value, repeated-name (of
// rules), timeout-order (a call_timeout that total_timeout leaves no room for), unset-variable, editor-placeholder,
// mixed-spellings (mcp-shield's and ours), unsupported (HTTP); and as warnings command-words, milliseconds,
// above-bound, empty-rule, secret. See [Catalog].
func Load(file string, data []byte, env func(string) (string, bool)) (cfg *Config, findings Findings) {
	var r report
	defer func() { r.findings.Sort(); findings = r.findings }()
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	root := r.read(file, data)
	if root == nil {
		return nil, nil
	}
	if root.statesNothing() {
		r.errorAt(root.pos, "missing-key", startHint, "the file states nothing")
		return &Config{File: file}, nil
	}
	if tests := root.key("tests"); tests != nil && root.key("servers") == nil {
		r.errorAt(tests.pos, "missing-key", "mcp-retry test runs it; the config is another file", "this is a file of policy tests, not a config")
		return &Config{File: file}, nil
	}
	d := detect(file, root, &r)
	check(d, root, &r)
	if d == shield {
		respell(root)
	}
	b := builder{report: &r, env: env, file: file, shield: d == shield}
	cfg = b.config(root)
	cfg.secrets = findSecrets(root, &r)
	return cfg, nil
}

const startHint = "a config starts with servers:, then a name, then command:"

// LoadFile is [Load] for the file at path, which also is the file in positions. The error says that it could not be read.
func LoadFile(path string, env func(string) (string, bool)) (*Config, Findings, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	cfg, findings := Load(path, data, env)
	return cfg, findings, nil
}

// ReadFile reads a config file for [Load]: as much as Load takes, and one byte more if there is more, so that it says so. A file that
// never ends is not read without end.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// read makes a tree of a file. nil = it could not be parsed, and a finding says why.
func (r *report) read(file string, data []byte) *node {
	if r.src = readable(file, data, r); r.src == nil {
		return nil
	}
	return parse(r.src, r)
}

// statesNothing reports whether a file holds but blanks and comments.
func (n *node) statesNothing() bool { return n.kind == null && strings.TrimSpace(n.text) == "" }

// readable checks that the bytes are text of a reasonable size.
func readable(file string, data []byte, r *report) *source {
	start := Pos{File: file, Line: 1, Col: 1}
	if len(data) > maxFileBytes {
		r.errorAt(start, "syntax", "is this the right file?", "the file is larger than %d MiB", maxFileBytes>>20)
		return nil
	}
	data = stripBOM(data)
	if len(data) >= 2 && (data[0] == 0xff && data[1] == 0xfe || data[0] == 0xfe && data[1] == 0xff) {
		r.errorAt(start, "syntax", "save it as UTF-8", "the file is UTF-16")
		return nil
	}
	src := newSource(file, string(data))
	for i, c := range src.text {
		if c == utf8.RuneError && !strings.HasPrefix(src.text[i:], "\uFFFD") {
			r.errorAt(src.pos(i, i), "syntax", "save it as UTF-8", "the byte 0x%02x here is not UTF-8", src.text[i])
			return nil
		}
	}
	return src
}

// stripBOM removes a byte order mark, which some editors put before UTF-8.
func stripBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

// parse builds the tree of the file; nil = it could not be parsed, and a finding says why.
func parse(src *source, r *report) *node {
	switch strings.ToLower(filepath.Ext(src.file)) {
	case ".json", ".jsonc", ".json5":
		return parseJSON(src, r)
	case ".cue":
		return parseCUE(src, r)
	}
	return parseYAML(src, r)
}
