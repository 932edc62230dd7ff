package schema

import (
	"bytes"
	"strings"
	"testing"
)

// Each file of testdata/convert, which is in mcp-shield's spelling, has its text in ours in a file beside it.
func TestFilesOfMCPShieldAreConverted(t *testing.T) {
	wanted(t, "convert", ".want", func(t *testing.T, name string, src []byte) []byte {
		got, findings := Convert(name, src)
		if findings.HasErrors() {
			t.Fatal(findings)
		}
		again, findings := Convert(name, got)
		if findings.HasErrors() || !bytes.Equal(again, got) {
			t.Errorf("what was converted is not in our spelling: %v\n%s", findings, again)
		}
		sameStart(t, name, src, got)
		return got
	})
}

// sameStart compares how the servers of two files are started.
func sameStart(t *testing.T, file string, before, after []byte) {
	t.Helper()
	a, _ := Load(file, before, testEnv)
	b, _ := Load(file, after, testEnv)
	for i, s := range a.Servers {
		u := b.Servers[i]
		if s.Name != u.Name || s.Command != u.Command || strings.Join(s.Args, "\x00") != strings.Join(u.Args, "\x00") || len(s.Env) != len(u.Env) {
			t.Errorf("%q was started as %q %q and is as %q %q", s.Name, s.Command, s.Args, u.Command, u.Args)
		}
	}
}

func TestAFileInOurSpellingIsNotConverted(t *testing.T) {
	src := []byte("\ufeffservers: {a: {command: x y, call_timeout: 5}} # as it is\n")
	got, findings := Convert("mcp-shield.yaml", src)
	if findings.HasErrors() || !bytes.Equal(got, src) {
		t.Errorf("it became %q, %v", got, findings)
	}
}

func TestWhatCannotBeConvertedIsSaid(t *testing.T) {
	for _, tt := range []struct{ name, file, src, want string }{
		{"a fault", "a.yaml", "servers: {a: {command: x, timeout: soon}}", "a.yaml:1:36: error[bad-value]"},
		{"both spellings", "a.yaml", "servers: {a: {command: x, timeout: 5, cache: {}}}", "a.yaml:1:27: error[mixed-spellings]"},
		{"a command over two lines", "a.yaml", "servers:\n  a:\n    timeout: 5\n    command: >-\n      serve\n      it\n", "a.yaml:4:14: error[unsupported]"},
		{"a command that stands elsewhere", "a.yaml", "x-c: &c serve it\nservers:\n  a: {command: *c, timeout: 5}\n", "a.yaml:3:7: error[unsupported]"},
		{"settings that are merged", "a.yaml", "x-r: &r {max: 1}\nservers:\n  a: {command: x, retries: {<<: *r}}\n", "a.yaml:3:19: error[unsupported]"},
		{"a key that is computed", "a.cue", "let k = \"timeout\"\nservers: a: {command: \"x\", (k): 5}\n", "error[unsupported]"},
		{"no text", "a.yaml", "\xff", "a.yaml:1:1: error[syntax]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, findings := Convert(tt.file, []byte(tt.src))
			if got != nil || len(findings) == 0 || !strings.Contains(findings[0].String(), tt.want) {
				t.Errorf("it became %q, %v; want %s", got, findings, tt.want)
			}
		})
	}
}

func TestTheSpellingIsConvertedInATextWithAByteOrderMark(t *testing.T) {
	got, findings := Convert("a.yaml", []byte("\ufeffservers:\n  a:\n    command: x\n    timeout: 5\n    retries: {max: 1}\n"))
	want := "\ufeffservers:\n  a:\n    command: x\n    call_timeout: 5\n    retry: {base_delay: 1, max_retries: 1}\n"
	if findings.HasErrors() || string(got) != want {
		t.Errorf("it became %q, %v", got, findings)
	}
}
