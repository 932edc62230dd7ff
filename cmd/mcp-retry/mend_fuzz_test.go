package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzMend: whatever a file holds, mending it leaves it as it is or has no finding come back that it reports as fixed, never makes a
// file faulty that was not, and has nothing left to do when it is done again.
func FuzzMend(f *testing.F) {
	for i, pattern := range mendable {
		files, err := filepath.Glob(filepath.Join("..", "..", "schema", "testdata", "*", "*"+filepath.Ext(pattern)))
		if err != nil || len(files) == 0 {
			f.Fatal("no files", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), text)
		}
	}
	for _, text := range []string{
		faultyShop,
		"servers:\n  a:\n    command: x\n    retry: {max_retires: \"3\", backof: linaer}\n    call_timeout: 30 sec\n",
		"servers:\n  a:\n    command: x\n    policy:\n      - wen: !tool.annotated # mine\n        retry: no\n",
		"servers: {a: {command: x, tool_filter: {deny: [*, x]}, env: {A: ${HOME}}}}\n",
		"mcpServers:\r\n  a: &a {command: x, callTimeout: 2 minutes}\r\n  b: *a\r\n",
	} {
		f.Add(uint8(0), []byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, spelling uint8, text []byte) {
		file := filepath.Join(dir, mendable[int(spelling)%len(mendable)])
		if filepath.Ext(file) == ".cue" && len(text) > 300 {
			return // a program, which may run for as long as it likes
		}
		faulty := loadText(file, text).findings.HasErrors()
		mended := mendOnce(t, file, text)
		if bytes.Equal(mended.text, text) {
			return
		}
		if mended.findings.HasErrors() && !faulty {
			t.Errorf("%q was sound, and became %q: %v", text, mended.text, mended.findings)
		}
		if again := mendOnce(t, file, mended.text); !bytes.Equal(again.text, mended.text) {
			t.Errorf("%q became %q, and that %q", text, mended.text, again.text)
		}
	})
}

// mendable are names of files in every spelling.
var mendable = []string{"a.yaml", "a.json", "a.cue"}

// mendOnce mends a file of that text.
func mendOnce(t *testing.T, file string, text []byte) *loaded {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	u := &ui{stdout: &said, stderr: &said}
	l, err := u.mend(file, loadText(file, text), false)
	if err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(file); err != nil || !bytes.Equal(written, l.text) {
		t.Errorf("the file holds %q, %v; want %q", written, err, l.text)
	}
	if (said.Len() > 0) != !bytes.Equal(l.text, text) {
		t.Errorf("%q became %q, and that was said: %s", text, l.text, said.String())
	}
	return l
}
