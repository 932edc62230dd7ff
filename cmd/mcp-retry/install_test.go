package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

// wireAll points all entries of a text at mcp-retry, and back.
func wireAll(t *testing.T, text, kind string) (wired, back string) {
	t.Helper()
	f := clientFile{path: "mcp.json"}
	before, err := parseClientConfig(f, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	there := &testPlanner{kind: kind, args: []string{"run", "--config", "/a.yaml", "--server", "s"}}
	change, _ := (&ui{}).planFile(before, there)
	after, err := parseClientConfig(f, change.after)
	if err != nil {
		t.Fatalf("%v in %s", err, change.after)
	}
	original, err := parseClientConfig(f, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range after.entries {
		if was := original.find(e.keys); was != nil && was.fault == "" && (!e.behindUs() || len(e.args) != 5) {
			t.Errorf("%q was not pointed at mcp-retry in %s", e.name, change.after)
		}
	}
	restored, _ := (&ui{}).planFile(after, &testPlanner{kind: kind, original: original})
	return string(change.after), string(restored.after)
}

// testPlanner points every entry at mcp-retry, or back at what it was in the original.
type testPlanner struct {
	kind     string
	args     []string
	original *clientConfig
}

func (p *testPlanner) keep(*clientConfig) (string, func(), error) { return "", func() {}, nil }

func (p *testPlanner) plan(_ *clientConfig, e *clientEntry) (*rewiring, leaving) {
	if e.fault != "" {
		return nil, leaving{}
	}
	if p.original == nil {
		return &rewiring{command: "/bin/mcp-retry", args: p.args, kind: p.kind}, leaving{}
	}
	return &rewiring{before: p.original.find(e.keys).value.Value.(*hujson.Object), kind: p.kind}, leaving{}
}

// layouts are texts of clients' files in many hands.
var layouts = []string{
	`{"mcpServers":{"a":{"command":"x"}}}`,
	`{"mcpServers": {"a": {"command": "x", "args": []}, "b": {"args": ["1", "2"], "command": "y"}}}`,
	"{\n\t\"servers\": {\n\t\t\"a\": {\n\t\t\t\"command\": \"x\"\n\t\t}\n\t}\n}\n",
	"{\r\n  \"servers\": {\r\n    \"a\": {\r\n      \"command\": \"x\",\r\n      \"env\": {\"A\": \"1\"}\r\n    }\r\n  }\r\n}\r\n",
	"\uFEFF{\"servers\": {\"a\": {\"command\": \"x\",},},}",
	"{\"servers\": {\"a\": {\n  // the program\n  \"command\": \"x\", // really\n  // and its variables\n  \"env\": {},\n}}}",
	"{\"servers\": {\"a\": {\n  /* here */ \"command\" /* : */ : /* = */ \"x\" /* , */\n  // nothing more\n}}}",
	"{\"servers\": {\"a\": {\n  /* here */ \"command\" /* : */ : /* = */ \"x\", /* ; */\n  // nothing more\n}}}",
	"{\"servers\": {\"a\": {\n  /* he\n re */ \"command\": \"x\", /* ;\n */ // and\r\n  /* no\n */ \"env\": {}}}}",
	"{\"servers\": {\"a\": {\n  \"command\": \"x\", \"args\":\n    [\"1\", // one\n     \"2\",\n    ],\n}}}",
	"{\"servers\": {\"a\": {\"command\": \"x\" // c\n}}}",
	"{\"servers\": {\"a\": {\"env\": {\"A\": \"1\"}, // c\n\"command\": \"\\u0078\\/\"}}}",
	`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b": 1, "c": {"url": "u"}}, "servers": {"a": {"command": "z"}}}`,
	`{"mcpServers": {"a": {"command": "x", "command": "y"}}, "projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}}`,
	"{\"mcpServers\": {\"a\": {\"command\": \"\x84\"}, \"a\": {\"command\": \"y\"}, \"b\": {\"command\": \"\x84\"}}}",
	"{\"servers\": {\"a\": {\"command\": \"x\"}}} // the end",
	"\uFEFF{\"servers\": {\"a\": {\"command\": \"x\",\r\n}}}\r\n// the end",
	`{"n": 9007199254740993, "f": 1.50, "u": "\u00e9\/", "mcpServers": {"a": {"command": "x", "args": null}}}`,
}

func TestInstallAndUninstallLeaveEveryByteAsItWas(t *testing.T) {
	for _, text := range layouts {
		for _, kind := range []string{"", "stdio"} {
			if wired, back := wireAll(t, text, kind); back != text {
				t.Errorf("%q became %q, and back %q", text, wired, back)
			}
		}
	}
}

func FuzzInstallIsUndone(f *testing.F) {
	for _, text := range layouts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseClientConfig(clientFile{path: "mcp.json"}, []byte(text))
		if err != nil || len(c.entries) == 0 {
			return
		}
		for _, kind := range []string{"", "stdio"} {
			if wired, back := wireAll(t, text, kind); back != text {
				t.Errorf("%q became %q, and back %q", text, wired, back)
			}
		}
	})
}

// TestB77FilesOfClientsAreReadAsTheyAre reads comments, trailing commas, a BOM, both names of the list, and a URL with slashes.
func TestB77FilesOfClientsAreReadAsTheyAre(t *testing.T) {
	text := "\uFEFF// mine\n{\n  /* old */ \"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\"https://example.com//mcp\", \"/* no */\",],}, \"broken\": []},\n" +
		"  \"inputs\": [],\n  \"servers\": {\"b\": {\"command\": \"y\"},},\n}\n"
	c, err := parseClientConfig(clientFile{}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range c.entries {
		names = append(names, e.name+":"+e.command+":"+strings.Join(e.args, " ")+":"+e.fault)
	}
	want := "a:x:https://example.com//mcp /* no */:|broken:::is not an object|b:y::"
	if got := strings.Join(names, "|"); got != want {
		t.Errorf("got %s", got)
	}
}

// TestB79EveryKindOfEntryIsNamed says of each entry what it is.
func TestB79EveryKindOfEntryIsNamed(t *testing.T) {
	const http = "is a server over HTTP, which is not supported yet"
	for entry, want := range map[string]string{
		`{"url": "https://x"}`:                            http,
		`{"type": "http", "url": "https://x"}`:            http,
		`{"type": "streamable-http", "url": "https://x"}`: http,
		`{"type": "streamableHttp", "url": "https://x"}`:  http,
		`{"type": "sse", "url": "https://x"}`:             http,
		`{"type": "http"}`:                                http,
		`{"url": "https://x", "command": "y"}`:            "has both a command and a url: which one counts is not clear",
		`{"type": "pigeon", "command": "y"}`:              `has the type "pigeon", which is not known`,
		`{"type": "stdio", "command": "y"}`:               "",
		`{"command": "y"}`:                                "",
		`{}`:                                              "has no command",
	} {
		c, err := parseClientConfig(clientFile{}, []byte(`{"mcpServers": {"a": `+entry+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.entries[0].fault; got != want {
			t.Errorf("%s %s, want %q", entry, got, want)
		}
	}
}

// TestB76PlaceholdersOfEditorsStayInTheirFile has entries with placeholders pointed at mcp-retry: what only the editor can fill
// in stays for it to fill in, and the config gets it from there.
func TestB76PlaceholdersOfEditorsStayInTheirFile(t *testing.T) {
	text := `{"servers": {"a": {"command": "${workspaceFolder}/x", "args": ["${input:who}", "${env:LANG}", "${A:-b}", "$${1}"],
	  "env": {"KEY": "${input:key}", "ROOT": "${workspaceFolder}", "PLAIN": "1", "TOKEN": "${env:MY_TOKEN}"}}}}`
	wired, _ := wireAll(t, text, "")
	if env := text[strings.Index(text, `"env"`):]; !strings.HasSuffix(wired, env) {
		t.Errorf("the environment became %s", wired)
	}
	c, err := parseClientConfig(clientFile{project: "/p"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := c.entries[0].launch(machine{system: "linux"})
	got := l.command + "|" + strings.Join(l.args, "|")
	for _, v := range l.env {
		got += "|" + v.name + "=" + v.value
	}
	if want := "/p/x|${WHO}|${LANG}|${A:-b}|$$${1}|KEY=${KEY}|ROOT=/p|PLAIN=1|TOKEN=${MY_TOKEN}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAFileIsReplacedAtOnceAndKeepsItsModeAndItsLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(real, []byte("before"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.json", link); err != nil {
		t.Skip(err)
	}
	if err := swapFile(link, []byte("before"), []byte("after")); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(real)
	info, _ := os.Lstat(real)
	if to, _ := os.Readlink(link); string(text) != "after" || to != "real.json" || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("it holds %q, its mode is %s, the link leads to %q", text, info.Mode(), to)
	}
	if err := os.Chmod(real, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := swapFile(link, []byte("after"), []byte("later")); err == nil {
		t.Error("a read-only file was replaced")
	}
}

func TestAFileThatSomebodyElseWroteIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	testOnlyBeforeReplace = func() {
		if err := os.WriteFile(file, []byte("theirs"), 0o600); err != nil {
			t.Error(err)
		}
	}
	defer func() { testOnlyBeforeReplace = func() {} }()
	if err := swapFile(file, []byte("before"), []byte("ours")); !errors.Is(err, errChanged) {
		t.Errorf("got %v", err)
	}
	text, _ := os.ReadFile(file)
	left, _ := os.ReadDir(dir)
	if string(text) != "theirs" || len(left) != 1 {
		t.Errorf("it holds %q, and %d files are there", text, len(left))
	}
}

func TestBackupsAreKeptOnceForEachText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	for i, text := range []string{"one", "one", "two", "one"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		name, _, err := backUp(file, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want := backupName(file, []int{1, 1, 2, 3}[i]); name != want {
			t.Errorf("%d: got %s, want %s", i, name, want)
		}
	}
	if err := os.Remove(backupName(file, 1)); err != nil { // by a user who thought it the only one
		t.Fatal(err)
	}
	if name, _, err := backUp(file, []byte("three")); err != nil || name != backupName(file, 4) {
		t.Errorf("after the oldest was deleted: got %s, %v", name, err)
	}
	if err := os.Remove(backupName(file, 4)); err != nil {
		t.Fatal(err)
	}
	newest := backups(file)
	text, err := os.ReadFile(newest[0])
	if err != nil || len(newest) != 2 || !bytes.Equal(text, []byte("one")) {
		t.Errorf("%v: %d backups, the newest holds %q", err, len(newest), text)
	}
}

func TestClientsKeepTheirFilesWhereTheirSystemDoes(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	project := filepath.Join(home, "work", "shop")
	for _, c := range []struct {
		system string
		env    map[string]string
		desk   string
	}{
		{"linux", nil, filepath.Join(home, ".config", "Claude")},
		{"linux", map[string]string{"XDG_CONFIG_HOME": filepath.Join(home, "xdg")}, filepath.Join(home, "xdg", "Claude")},
		{"darwin", nil, filepath.Join(home, "Library", "Application Support", "Claude")},
		{"windows", map[string]string{"APPDATA": filepath.Join(home, "Roaming")}, filepath.Join(home, "Roaming", "Claude")},
	} {
		m := machine{system: c.system, home: home, dir: project, getenv: func(name string) string { return c.env[name] }}
		var got []string
		for _, f := range m.clientFiles() {
			got = append(got, f.client+" "+f.path)
		}
		want := []string{
			"claude-code " + filepath.Join(home, ".claude.json"),
			"claude-desktop " + filepath.Join(c.desk, "claude_desktop_config.json"),
			"cursor " + filepath.Join(home, ".cursor", "mcp.json"),
			"vscode " + filepath.Join(filepath.Dir(c.desk), "Code", "User", "mcp.json"),
			"claude-code " + filepath.Join(project, ".mcp.json"),
			"cursor " + filepath.Join(project, ".cursor", "mcp.json"),
			"vscode " + filepath.Join(project, ".vscode", "mcp.json"),
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", c.system, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestSecretsAreToldFromSettings(t *testing.T) {
	for _, c := range []struct {
		name, value string
		secret      bool
	}{
		{"GITHUB_TOKEN", "x", true},
		{"OPENAI_API_KEY", "YOUR_KEY", true},
		{"DB_PASSWORD", "hunter2", true},
		{"GITHUB_PAT", "abc", true},
		{"DATABASE_URL", "postgres://db/x", true},
		{"DSN", "postgres://u:pw1@db/x", true},
		{"URL", "https://me:hunter22@example.com", true},
		{"X", "ghp_abcdefghijklmnopqrstuvwx0123", true},
		{"WORKSPACE", "a8f5f167f44f4964e6c998dee827110c", true},
		{"--password", "12345", true},
		{"--env", "GITHUB_TOKEN=abcd", true},
		{"--config", `{"exaApiKey": "abc-def"}`, true},
		{"", "https://mcp.example.com/s/a8f5f167f44f4964e6c998dee827110c/mcp", true},
		{"", "https://abc123@o1.example.com/1", true},
		{"", "https://example.com/mcp?lang=en&key=abcd", true},
		{"", "https://example.com/mcp?lang=en#top", false},
		{"", "postgres://me@db/x", false},
		{"", "ssh://git@example.com/x", false},
		{"--config", `{"lang": "en", "tokens": "100"}`, false},
		{"--env", "LANG=C", false},
		{"GITHUB_TOKEN", "", false},
		{"USE_AUTH_TOKEN", "true", false},
		{"MAX_TOKENS", "4096", false},
		{"SSH_KEY", "/home/me/.ssh/id", false},
		{"LOG_LEVEL", "debug", false},
		{"MONKEY", "business", false},
		{"HOST", "mcp.eu-west-1.example.com", false},
		{"", "@modelcontextprotocol/server-filesystem", false},
		{"", "--some-rather-long-flag-of-a-program", false},
	} {
		if got := looksSecret(c.name, c.value); got != c.secret {
			t.Errorf("%s=%s: %t", c.name, c.value, got)
		}
	}
}

func TestClientsAreKnownHoweverTheyAreSpelled(t *testing.T) {
	for word, want := range map[string]string{
		"claude-code": claudeCode, "claude": claudeCode, "Claude Code": claudeCode, "claude_desktop": claudeDesktop, "Cursor": cursorClient,
		"vs-code": vsCode, "VSCode": vsCode, "emacs": "", "": "",
	} {
		if got := clientNamed(word); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestAFileThatIsNestedWithoutEndIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 5_000_000)
	if _, err := parseClientConfig(clientFile{path: "a.json"}, []byte(`{"x": `+deep)); err == nil || !strings.Contains(err.Error(), "nested more than 1000 deep") {
		t.Errorf("got %v", err)
	}
	fine := `{"a": "` + deep + `\"[", /* ` + deep + ` */ "b": [[]] // ` + deep + "\n}"
	if _, err := parseClientConfig(clientFile{path: "a.json"}, []byte(fine)); err != nil {
		t.Errorf("brackets in strings and comments: %.100v", err)
	}
}

func TestHooksAreFoundInSettingsWithCommentsToTheLastByte(t *testing.T) {
	file := filepath.Join(t.TempDir(), "settings.json")
	const settings = `{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mcp-retry check ; exit 0"},],}]}}`
	for _, text := range []string{settings, settings + " // the end", utf8BOM + settings + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if hooks := sessionHooks(file); len(hooks) != 1 {
			t.Errorf("in %q there are %v", text, hooks)
		}
	}
}

func TestADryRunShowsNoSecret(t *testing.T) {
	text := `{"mcpServers": {"a": {"command": "x", "args": ["-e", "GITHUB_TOKEN=abcdef", "-e", "LANG=C", "--header=X-API-Key: abcdef", "-H", "Authorization: Basic abcdef"]}}}`
	want := `{"mcpServers": {"a": {"command": "x", "args": ["-e", "GITHUB_TOKEN=***", "-e", "LANG=C", "--header=***", "-H", "***"]}}}`
	for _, end := range []string{"", "\n", " // the end", "\n// the end\n"} {
		if got := string(withoutSecrets([]byte(text + end))); got != want+end {
			t.Errorf("it shows %s", got)
		}
	}
}
