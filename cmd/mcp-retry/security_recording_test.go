package main

import (
	"os"
	"path/filepath"
	"testing"
)

// recordTo has a session recorded in a file, to its end.
func recordTo(t *testing.T, path string) {
	t.Helper()
	f := newField(t)
	script := toolbox(plainTool("work"))
	script.Ledger = f.ledger
	config := f.write("mcp-retry.yaml", fieldConfig(f.write("script.json", script.String()), ""))
	f.launch([]string{"run", "--config", config, "--record", path}, nil, false)
	f.open()
	f.close()
}

// recorded fails the test unless a regular file holds more than it did, and has this mode.
func recorded(t *testing.T, path, before string, mode os.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() <= int64(len(before)) {
		t.Fatalf("nothing was recorded in %s: %v", path, err)
	}
	if got := info.Mode().Perm(); got != mode && os.PathSeparator == '/' {
		t.Errorf("the recording has mode %v, want %v", got, mode)
	}
	if text, err := os.ReadFile(path); err != nil || string(text[:len(before)]) != before {
		t.Errorf("what was there is lost: %v", err)
	}
}

// What is written holds what passes between client and server: it is made for the owner alone.
func TestSecurityARecordingIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.jsonl")
	recordTo(t, path)
	recorded(t, path, "", 0o600)
}

// A file that is there already has been made by somebody who had a reason for its mode, as with a shell's >>.
func TestSecurityARecordingThatIsThereKeepsItsModeAndItsText(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "record.jsonl")
	const before = "{\"before\":true}\n"
	if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	recordTo(t, path)
	recorded(t, path, before, 0o640)
}

// A link is followed and stays a link: to where it leads is the business of whoever may write in its directory.
func TestSecurityARecordingFollowsALink(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"to a file": true, "to no file yet": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target, link := filepath.Join(dir, "target.jsonl"), filepath.Join(dir, "record.jsonl")
			if there {
				if err := os.WriteFile(target, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(target, link); err != nil {
				t.Skipf("no links here: %v", err)
			}
			recordTo(t, link)
			recorded(t, target, "", 0o600)
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is none any more: %v", err)
			}
		})
	}
}
