package main

import (
	"bytes"
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
