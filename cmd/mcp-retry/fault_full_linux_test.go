package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFaultRecordingIsFull: calls go on, and one record says that the recording has ended.
func TestFaultRecordingIsFull(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]func(t *testing.T) string{
		"from the first byte": func(*testing.T) string { return "/dev/full" },
		"after a while": func(t *testing.T) string {
			dir := t.TempDir()
			if err := syscall.Mount("none", dir, "tmpfs", 0, "size=8k"); err != nil {
				t.Skipf("a small file system cannot be mounted: %v", err)
			}
			t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
			return filepath.Join(dir, "recording.jsonl")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFault(t, "", "--record", file(t))
			f.open()
			for n := range 8 {
				id := string(rune('0' + n))
				f.order(id, "pays", faultOrder{N: n, Size: 4 << 10})
				f.success(id).done(t, n, 1)
			}
			said := f.record("a recording that has ended", func(r fieldRecord) bool { return strings.Contains(r.Detail, "no space left on device") })
			if said.Level != "error" && said.Level != "warn" {
				t.Errorf("it is said at level %s", said.Level)
			}
			if status := f.close(); status != exitFine {
				t.Errorf("exit status %d", status)
			}
			f.nothingElse()
			times := 0
			for _, r := range f.records {
				if strings.Contains(r.Detail, "no space left on device") {
					times++
				}
			}
			if times != 1 {
				t.Errorf("it is said %d times", times)
			}
		})
	}
}

// TestFaultLogCannotBeWritten: the records are lost and nothing else, in whichever way stderr is of no use.
func TestFaultLogCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"2>/dev/full", "2>&-", "2</dev/null", "2| true"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			book := newFaultBook(t, dir)
			config := filepath.Join(dir, "mcp-retry.yaml")
			if err := os.WriteFile(config, []byte(faultConfig(t, book, "retry: {base_delay: 0.01}\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			command := `"$0" run --log-level debug --config "$1" ` + to
			if to == "2| true" { // nobody reads what is written, and the pipe is broken
				command = `{ "$0" run --log-level debug --config "$1" 2>&1 >&3 | true; } 3>&1`
			}
			cmd := exec.Command("/bin/sh", "-c", command, fieldProgram(t), config)
			cmd.Env = fieldEnvironment(nil)
			in := `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":` + fieldHello + "}\n" +
				`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
				`{"jsonrpc":"2.0","id":"tools","method":"tools/list"}` + "\n" +
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"reads","arguments":` + faultOrder{N: 1, Fault: dieDone}.arguments() + "}}\n" +
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"reads","arguments":` + faultOrder{N: 2, Size: 1 << 20}.arguments() + "}}\n"
			cmd.Stdin = strings.NewReader(in)
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Run(); err != nil {
				t.Errorf("mcp-retry ended with %v", err)
			}
			for _, want := range []string{`n=1 execution=2 `, `n=2 execution=1 `} {
				if strings.Count(out.String(), want) != 1 {
					t.Errorf("there is no answer %q in %.2000s", want, out.String())
				}
			}
			if n := strings.Count(out.String(), "\n"); n != 4 {
				t.Errorf("the client got %d lines, want 4 answers", n)
			}
		})
	}
}
