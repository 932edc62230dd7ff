package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestABatchToSeveralServersIsAnsweredInOneFrame talks to the product line by line, for a field knows no frames of several messages.
func TestABatchToSeveralServersIsAnsweredInOneFrame(t *testing.T) {
	t.Parallel()
	c := &composed{field: newField(t), ledgers: map[string]string{}}
	config := c.write("mcp-retry.yaml", c.config(
		part{name: "alpha", script: toolbox(readTool("one"))},
		part{name: "late", script: toolbox(readTool("two")), missing: "late-server"}))
	cmd := exec.Command(fieldProgram(t), "run", "--config", config)
	cmd.Env, cmd.Dir = fieldEnvironment(nil), c.dir
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	read := func() string {
		t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if line := read(); !strings.Contains(line, `"protocolVersion":"2025-03-26"`) {
		t.Errorf("initialize: %s", line)
	}
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(stdin, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"alpha__one"}},{"jsonrpc":"2.0","id":"2","method":"ping"},`+
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"late__two"}},{"jsonrpc":"2.0","id":4,"method":"tools/list"}]`)
	var answers []struct {
		ID     json.RawMessage
		Result json.RawMessage
		Error  *struct{ Code int }
	}
	line := read()
	if err := json.Unmarshal([]byte(line), &answers); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	came := map[string]bool{}
	for _, a := range answers {
		came[string(a.ID)] = true
		if late := string(a.ID) == "3"; late != (a.Error != nil && a.Error.Code == -31004) || late == (a.Result != nil) {
			t.Errorf("%s got %s %+v", a.ID, a.Result, a.Error)
		}
	}
	if len(answers) != 4 || len(came) != 4 {
		t.Errorf("the client got %s", line)
	}
	stdin.Close()
	if rest, err := lines.ReadString('\n'); err == nil {
		t.Errorf("the client also got %s", rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
