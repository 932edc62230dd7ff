package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestARefusedInstallLeavesNoBackup(t *testing.T) {
	for name, meddle := range map[string]func(t *testing.T, file string){
		"read-only": func(t *testing.T, file string) {
			if err := os.Chmod(file, 0o444); err != nil {
				t.Fatal(err)
			}
		},
		"changed": func(t *testing.T, file string) {
			testOnlyBeforeReplace = func() {
				if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
					t.Error(err)
				}
			}
			t.Cleanup(func() { testOnlyBeforeReplace = func() {} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "mcp.json")
			text := []byte(`{"mcpServers": {"a": {"command": "x"}}}`)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := readClientConfig(clientFile{path: file})
			if err != nil {
				t.Fatal(err)
			}
			meddle(t, file)
			var out bytes.Buffer
			u := &ui{stdout: &out, stderr: &out}
			change := rewired{config: c, after: []byte(`{}`), entries: []string{"a"}}
			if u.apply(change, false, &installer{}) == nil {
				t.Error("the file was written")
			}
			if left := backups(file); len(left) > 0 {
				t.Errorf("%q were left", left)
			}
		})
	}
}

// TestTwoInstallsAtOnceKeepTheBackup: the one that comes too late must not take away what the other one relies on.
func TestTwoInstallsAtOnceKeepTheBackup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	text := []byte(`{"mcpServers": {"a": {"command": "x"}}}`)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	install := func() error {
		c, err := readClientConfig(clientFile{path: file})
		if err != nil {
			t.Fatal(err)
		}
		after := []byte(`{"mcpServers": {"a": {"command": "mcp-retry", "args": ["run", "--config", "/c.yaml", "--server", "a"]}}}`)
		return (&ui{stdout: io.Discard, stderr: io.Discard}).apply(rewired{config: c, after: after, entries: []string{"a"}}, false, &installer{})
	}
	var faster error
	testOnlyBeforeReplace = func() {
		testOnlyBeforeReplace = func() {}
		faster = install()
	}
	defer func() { testOnlyBeforeReplace = func() {} }()
	if err := install(); err == nil || faster != nil {
		t.Errorf("the faster one: %v, the other: %v", faster, err)
	}
	kept := backups(file)
	if len(kept) != 1 {
		t.Fatalf("the backups are %q", kept)
	}
	if before, err := os.ReadFile(kept[0]); err != nil || !bytes.Equal(before, text) {
		t.Errorf("the backup holds %q: %v", before, err)
	}
}
