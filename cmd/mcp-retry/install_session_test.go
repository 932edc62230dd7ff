package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// TestTheEntryThatInstallMadeStartsTheServer goes the whole way: a client has a server whose secret stands in its own file, init
// and install put us between, and the client starts what its file says now.
func TestTheEntryThatInstallMadeStartsTheServer(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	ledger := filepath.Join(home, "ledger")
	script := flaky.Script{Name: "shop", Ledger: ledger, Environment: []string{"SHOP_TOKEN", "LOG_LEVEL"}}
	scriptFile := filepath.Join(home, "script.json")
	if err := os.WriteFile(scriptFile, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	// The test binary is the product and the server too: only what starts it by another way is taken for a server.
	launcher := filepath.Join(home, "launch.sh")
	if err := os.WriteFile(launcher, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\"\n", fieldProgram(t)), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no shell")
	}
	entry := map[string]any{"command": launcher, "args": []string{flakyCommand, scriptFile},
		"env": map[string]string{"SHOP_TOKEN": "s3cret", "LOG_LEVEL": "debug"}}
	text, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"shop": entry}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".claude.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, "mcp-retry.yaml")
	env := fieldEnvironment([]string{"HOME=" + home, "USERPROFILE=" + home, "CLAUDE_CONFIG_DIR=", "XDG_CONFIG_HOME=" + home, "APPDATA=" + home})
	product := func(stdin string, env []string, args ...string) string {
		t.Helper()
		cmd := exec.Command(fieldProgram(t), args...)
		cmd.Env, cmd.Dir, cmd.Stdin = env, home, strings.NewReader(stdin)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("mcp-retry %q: %v\n%s", args, err, errs.String())
		}
		return out.String()
	}
	product("", env, "init", "--config", config)
	if written, _ := os.ReadFile(config); bytes.Contains(written, []byte("s3cret")) || !bytes.Contains(written, []byte("${SHOP_TOKEN}")) {
		t.Errorf("the config reads\n%s", written)
	}
	product("", env, "install", "--config", config)

	c, err := readClientConfig(clientFile{client: claudeCode, path: file})
	if err != nil {
		t.Fatal(err)
	}
	wired := c.entries[0]
	if want := []string{"run", "--config", config, "--server", "shop"}; !filepath.IsAbs(wired.command) || !slices.Equal(wired.args, want) {
		t.Fatalf("the client starts %s %q", wired.command, wired.args)
	}
	for _, v := range wired.env {
		env = append(env, v.name+"="+v.value)
	}
	answer := product(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n",
		env, wired.args...)
	if !strings.Contains(answer, `"shop"`) {
		t.Errorf("the server answered %q", answer)
	}
	entries, err := flaky.ReadLedger(ledger)
	if err != nil || len(entries) == 0 {
		t.Fatalf("the server was not started: %v", err)
	}
	if seen := fmt.Sprint(entries); !strings.Contains(seen, "s3cret") || !strings.Contains(seen, "debug") {
		t.Errorf("the server did not get its variables: %s", seen)
	}

	product("", env, "uninstall")
	if back, _ := os.ReadFile(file); !bytes.Equal(back, text) {
		t.Errorf("uninstall left\n%s", back)
	}
}

// TestB76APlaceholderThatNobodyFilledInIsNoSecret runs a server whose token the client should have filled in.
func TestB76APlaceholderThatNobodyFilledInIsNoSecret(t *testing.T) {
	t.Parallel()
	config := fieldFile(t, "mcp-retry.yaml", `servers: {a: {command: x, env: {TOKEN: "${FIELD_TOKEN}"}}}`)
	for _, value := range []string{"${input:token}", "${env:TOKEN}", "${FIELD_TOKEN}", "${workspaceFolder}"} {
		_, stderr, status := fieldProcess(t, []string{"FIELD_TOKEN=" + value}, "run", "--config", config)
		if status != exitUsage || !strings.Contains(stderr, "the environment variable FIELD_TOKEN is not set") {
			t.Errorf("%s: status %d, %s", value, status, stderr)
		}
	}
	_, stderr, _ := fieldProcess(t, []string{"FIELD_TOKEN=${input:token}"}, "wrap", "--", "no-such-program")
	if want := `mcp-retry: the variable FIELD_TOKEN holds "${input:token}": the client did not fill it in`; !strings.Contains(stderr, want) {
		t.Errorf("wrap said %s", stderr)
	}
}
