package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tame fails the test if a text holds what acts on a terminal, hides, or is no UTF-8. Only newlines may end its lines.
func tame(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: not UTF-8: %q", what, text)
	}
	for i, c := range text {
		if c != '\n' && !unicode.IsPrint(c) {
			t.Errorf("%s: %U in %q", what, c, text[max(0, i-80):min(len(text), i+80)])
			return
		}
	}
}

// unforged fails the test if a line of a text begins with what only spite says.
func unforged(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		for _, forged := range []string{"::error file=x", `{"level":"error","msg":"forged"`, "<script>"} {
			if strings.HasPrefix(strings.TrimSpace(line), forged) {
				t.Errorf("%s: a forged line: %q", what, line)
			}
		}
	}
}

// spitefully makes a server say its worst in every way that reaches a log.
func spitefully(f *field) {
	f.t.Helper()
	f.open()
	f.call("1", "speaks", "{}")
	f.success("1")
	f.call("2", "fails", "{}")
	f.failure("2", -32000)
	name := quotedJSON(spite)
	f.request("3", "tools/call", `{"name":`+name+`,"arguments":{},"_meta":{"idempotencyKey":`+name+`}}`)
	f.answer("3")
	f.request(name, "tools/call", `{"name":"work","arguments":{"x":1}}`)
	f.frame("an answer to the last", func(r *fieldFrame) bool { return strings.HasPrefix(r.line, `{"jsonrpc":"2.0","id":"a\nb`) })
	f.unharmed()
	f.close()
}

const spitefulSettings = "retry: {max_retries: 1, base_delay: 1ms}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 0.001}\n" +
	"policy:\n  - breaker_scope: 'tool.name + (has(meta.idempotencyKey) ? string(meta.idempotencyKey) : \"\")'\n    deny: 'tool.name.size() > 40 ? tool.name : \"\"'\n"

func TestSecurityNothingAServerSaysBreaksOutOfTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "pretty"} {
		t.Run(format, func(t *testing.T) {
			f := startHostile(t, listSpiteful, spitefulSettings, "--log-level", "debug", "--log-format", format)
			spitefully(f)
			text := strings.Join(f.words, "\n")
			tame(t, "the log", text)
			unforged(t, "the log", text)
			if !strings.Contains(text, "server_stderr") || !strings.Contains(text, "owned") {
				t.Errorf("the log does not tell what the server said:\n%s", text)
			}
			for _, line := range f.words {
				if format == "json" && (!json.Valid([]byte(line)) || !strings.HasPrefix(line, `{"time":`)) {
					t.Errorf("not a record: %s", line)
				}
			}
		})
	}
}

// sampleLine is a line of a page of metrics.
var sampleLine = regexp.MustCompile(`^(# (HELP|TYPE) |(mcp_retry|go|process|promhttp)_\w+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+0-9.eInfNa]+$)`)

func TestSecurityNothingAServerSaysBreaksOutOfTheMetrics(t *testing.T) {
	t.Parallel()
	f := &measuredField{address: freeAddress(t)}
	f.field = startHostile(t, listSpiteful, spitefulSettings, "--log-level", "debug", "--metrics", f.address)
	f.open()
	f.request("1", "tools/call", `{"name":`+quotedJSON(spite)+`,"arguments":{}}`)
	f.answer("1")
	f.call("2", "fails", "{}")
	f.failure("2", -32000)
	for _, path := range []string{"/metrics", "/healthz", "/debug/state", "/"} {
		status, text := f.page(path)
		if status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
		tame(t, path, text)
		for line := range strings.Lines(text) {
			if path == "/metrics" && !sampleLine.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("no sample: %q", line)
			}
		}
	}
}

func TestSecurityNothingAServerSaysBreaksOutOfACheck(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{listRefuses, listDies, listSpiteful} {
		config := fieldFile(t, "mcp-retry.yaml", fmt.Sprintf("servers: {h: {command: %q, args: [%s, %s]}}\n", fieldProgram(t), hostileCommand, mode))
		tools := filepath.Join(t.TempDir(), "tools.json")
		for _, args := range [][]string{
			{"check", "--config", config}, {"check", "--json", "--config", config}, {"check", "--hook", "--config", config},
			{"doctor", "--config", config}, {"snapshot", "--config", config, "--output", tools},
		} {
			t.Run(args[0]+" "+args[1]+"/"+mode, func(t *testing.T) {
				out, errs, _ := fieldProcess(t, []string{"HOME=" + t.TempDir()}, args...)
				for what, text := range map[string]string{"stdout": out, "stderr": errs} {
					tame(t, what, text)
					unforged(t, what, text)
				}
				if args[0] == "check" && args[1] == "--config" && strings.Count(out, "\n") != 1 {
					t.Errorf("a table of one server:\n%s", out)
				}
			})
		}
	}
}

// The author of a pull request writes the config and its tests; whoever looks at what CI says of them must not be deceived.
func TestSecurityNothingInAConfigBreaksOutOfAReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const brief = "a\x1b[2J\u202eb\x00\n::error file=x::owned\r\n<script>alert(1)</script>]]>&\"'"
	const rule = "::error file=x::owned <script>alert(1)</script>]]>&\"'" // a rule's name must be printable
	name, whole := quotedJSON(brief), quotedJSON(spite)
	write := func(file, text string) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("mcp-retry.json", `{"servers": {"a": {"command": "x", "env": {"N": `+whole+`}, "tools": {`+name+`: {"retry": {"max_retries": 1}}},
		"policy": [{"name": `+whole+`, "when": "error.kind == 'timeout'", "retry": false}, {"name": `+name+`, `+name+`: 1, "when": "eror"}]}}}`)
	sound := write("sound.json", `{"servers": {"a": {"command": "x", "policy": [{"name": `+quotedJSON(rule)+`, "when": "error.kind == 'timeout'", "retry": false}]}}}`)
	tests := write("a.test.json", `{"config": "sound.json", "tools": [{"name": `+name+`}, {"name": "b"}], "tests": [
		{"name": `+name+`, "call": {"tool": `+name+`, "args": {"x": `+whole+`}}, "server": [{"error": {"code": -32000, "message": `+whole+`}}], "expect": {"status": "success"}},
		{"name": "b", "call": {"tool": "b"}, "server": ["timeout"], "expect": {"status": "timeout", "attempts": 2}}]}`)
	tools := write("tools.json", `{"servers": {"a": {"tools": [{"name": `+name+`, "description": `+whole+`}, {"name": "b"}]}}}`)
	page := filepath.Join(dir, "page.html")
	for _, args := range [][]string{
		{"validate", config}, {"validate", "--format", "github", config}, {"validate", "--format", "junit", config}, {"validate", "--format", "sarif", config},
		{"validate", "--format", "json", config}, {"validate", "--notes", sound}, {"explain", "--config", sound}, {"explain", "--config", config},
		{"explain", "--config", sound, "--tools", tools, "--tool", "b", "--error", "timeout"}, {"diff", sound, config}, {"convert", sound},
		{"test", tests}, {"test", "--format", "github", tests}, {"test", "--format", "junit", tests}, {"test", "--format", "json", tests},
		{"test", "--coverage", tests}, {"test", "--coverage-html", page, tests}, {"test", "-v", tests}, {"test", "--explore", "--sequences", "50", tests}, {"run", "--config", config}, {"check", "--config", config}, {"explain", spite}, {spite},
		{"validate", dir + "/" + strings.ReplaceAll(spite, "/", "") + ".yaml"},
	} {
		t.Run(strings.Join(args[:len(args)-1], " "), func(t *testing.T) {
			if slices.ContainsFunc(args, func(s string) bool { return strings.Contains(s, "\x00") }) {
				out, errs, _ := fieldCommand(args...) // no process gets such a word
				tame(t, "stdout", out)
				tame(t, "stderr", errs)
				return
			}
			out, errs, _ := fieldProcess(t, nil, args...)
			tame(t, "stderr", errs)
			if !slices.Contains(args, "json") { // that is for programs, and escapes what is no text
				tame(t, "stdout", out)
			}
			unforged(t, "stdout", out)
			switch last := args[len(args)-2]; {
			case last == "junit":
				wellFormed(t, out)
			case last == "json" || last == "sarif":
				if !json.Valid([]byte(out)) {
					t.Errorf("no JSON: %s", out)
				}
			}
			if args[0] == "test" && !strings.Contains(out, "owned") && !strings.Contains(out, "coverage") && args[1] != "--explore" {
				t.Errorf("the tests have not run: %s%s", out, errs)
			}
		})
	}
	if html, err := os.ReadFile(page); err != nil || bytes.Contains(html, []byte("<script>alert")) {
		t.Errorf("the page of the coverage: %v\n%s", err, html)
	}
}

// wellFormed fails the test if a text is no XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
}
