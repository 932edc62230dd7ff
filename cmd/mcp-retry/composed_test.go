package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// composed is a session with several servers behind one endpoint, each with a ledger of its own.
type composed struct {
	*field
	ledgers map[string]string
}

// part is one of these servers. Without a script it is a program that is not there, at the path given.
type part struct {
	name     string
	script   flaky.Script
	settings string // YAML in braces
	missing  string
}

func startComposed(t *testing.T, parts ...part) *composed {
	t.Helper()
	return startComposedWith(t, nil, parts...)
}

// startComposedWith is startComposed with more flags.
func startComposedWith(t *testing.T, flags []string, parts ...part) *composed {
	t.Helper()
	c := &composed{field: newField(t), ledgers: map[string]string{}}
	config := c.write("mcp-retry.yaml", c.config(parts...))
	c.launch(append([]string{"run", "--log-level", "debug", "--config", config}, flags...), nil, false)
	t.Cleanup(func() {
		for name, path := range c.ledgers {
			ledger, _ := flaky.ReadLedger(path)
			for _, entry := range ledger.Events(flaky.EventStart) {
				for deadline := time.Now().Add(fieldAftermath); runs(entry.PID); time.Sleep(fieldPoll) {
					if time.Now().After(deadline) {
						t.Errorf("process %d of %s is left behind", entry.PID, name)
						if orphan, err := os.FindProcess(entry.PID); err == nil {
							orphan.Kill()
						}
						break
					}
				}
			}
		}
	})
	t.Cleanup(c.finish) // before that, and again harmlessly by launch
	return c
}

// config is a config of these servers. Their scripts are written, and their ledgers known.
func (c *composed) config(parts ...part) string {
	c.t.Helper()
	config := "servers:\n"
	for _, p := range parts {
		c.ledgers[p.name] = filepath.Join(c.dir, p.name+".jsonl")
		p.script.Ledger = c.ledgers[p.name]
		script := c.write(p.name+".json", p.script.String())
		program := fieldProgram(c.t)
		if p.missing != "" {
			program = filepath.Join(c.dir, p.missing)
		}
		config += fmt.Sprintf("  %s:\n    command: %q\n    args: [%s, %q]\n%s", p.name, program, flakyCommand, script, p.settings)
	}
	return config
}

// of is what a server has witnessed.
func (c *composed) of(server string) flaky.Ledger {
	c.t.Helper()
	ledger, err := flaky.ReadLedger(c.ledgers[server])
	if err != nil {
		c.t.Fatal(err)
	}
	return ledger
}

// tools lists the tools and returns their names.
func (c *composed) tools(id string) string {
	c.t.Helper()
	c.request(id, "tools/list", `{}`)
	var r struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(c.success(id).Result, &r); err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func TestSeveralServersAreOneEndpoint(t *testing.T) {
	t.Parallel()
	paged := toolbox(readTool("one"), readTool("two"), readTool("three"))
	paged.PageSize = 1
	c := startComposed(t, part{name: "beta", script: paged}, part{name: "alpha", script: toolbox(plainTool("work"))})
	c.greet()
	if got := c.tools("1"); got != "beta__one beta__two beta__three alpha__work" {
		t.Errorf("listed: %s", got)
	}
	c.call("2", "alpha__work", `{"n":1}`)
	c.call("3", "beta__two", `{"n":2}`)
	if got := c.success("2").text(); !strings.Contains(got, `"tool":"work"`) || !strings.Contains(got, `{"n":1}`) {
		t.Errorf("alpha answered %s", got)
	}
	if got := c.success("3").text(); !strings.Contains(got, `"tool":"two"`) {
		t.Errorf("beta answered %s", got)
	}
	c.call("4", "work", `{}`)
	c.failure("4", -32602)
	end := c.record("the end of the call", func(r fieldRecord) bool { return r.Msg == "tool_call_end" && r.Server == "alpha" })
	if end.Tool != "work" {
		t.Errorf("the log calls it %q", end.Tool)
	}
	if status := c.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	c.nothingElse()
}

func TestOfSeveralServersOneThatDiesIsRestartedAlone(t *testing.T) {
	t.Parallel()
	c := startComposed(t,
		part{name: "alpha", script: toolbox(readTool("fall", flaky.Outcome{Exit: new(int)})), settings: "    retry: {base_delay: 1ms}\n"},
		part{name: "beta", script: toolbox(readTool("slow", flaky.Outcome{Sleep: 300}))})
	c.greet()
	c.tools("1")
	c.call("2", "beta__slow", `{}`)
	c.call("3", "alpha__fall", `{}`)
	c.success("3")
	c.success("2")
	for name, lives := range map[string]int{"alpha": 2, "beta": 1} {
		if ledger, _ := flaky.ReadLedger(c.ledgers[name]); ledger.Lives() != lives {
			t.Errorf("%s had %d lives, not %d", name, ledger.Lives(), lives)
		}
	}
	c.close()
	c.nothingElse()
}

func TestOfSeveralServersOneThatCannotStartComesBack(t *testing.T) {
	t.Parallel()
	c := startComposed(t,
		part{name: "alpha", script: toolbox(readTool("one"))},
		part{name: "late", script: toolbox(readTool("two")), missing: "late-server"})
	c.greet()
	if got := c.tools("1"); got != "alpha__one" {
		t.Errorf("listed: %s", got)
	}
	c.call("2", "late__two", `{}`)
	if e := c.failure("2", -31004).Error; !strings.Contains(e.Message, "late-server") {
		t.Errorf("the error is %q", e.Message)
	}
	if err := os.Symlink(fieldProgram(t), filepath.Join(c.dir, "late-server")); err != nil {
		t.Skip(err)
	}
	c.message("notifications/tools/list_changed")
	if got := c.tools("3"); got != "alpha__one late__two" {
		t.Errorf("listed: %s", got)
	}
	c.call("4", "late__two", `{}`)
	c.success("4")
	c.close()
}

func TestOfSeveralServersWhatEachAsksComesBackToIt(t *testing.T) {
	t.Parallel()
	asks := func(who string) flaky.Script {
		question := flaky.Message{Method: "sampling/createMessage", Params: flaky.Raw(`{"who":"` + who + `"}`)}
		return toolbox(readTool("ask", flaky.Outcome{Ask: &question}))
	}
	c := startComposed(t, part{name: "alpha", script: asks("alpha")}, part{name: "beta", script: asks("beta")})
	c.greet()
	c.call("1", "alpha__ask", `{}`)
	c.call("2", "beta__ask", `{}`)
	for range 2 {
		question := c.message("sampling/createMessage")
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"for":%s}}`, question.ID, question.Params))
	}
	for id, who := range map[string]string{"1": "alpha", "2": "beta"} {
		if got := c.success(id).text(); !strings.Contains(got, `{"for":{"who":"`+who+`"}}`) {
			t.Errorf("%s got %s", who, got)
		}
	}
	c.close()
	c.nothingElse()
}

func TestOfSeveralServersNoneIsLeftBehind(t *testing.T) {
	t.Parallel()
	stubborn := toolbox(plainTool("never", flaky.Outcome{Hang: true}))
	stubborn.IgnoreEOF, stubborn.IgnoreTerm = true, true
	for name, end := range map[string]func(*composed){
		"the client goes": func(c *composed) { c.stdin.Close() },
		"TERM":            func(c *composed) { c.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "TERM" && runtime.GOOS == "windows" {
				t.Skip("there are no signals")
			}
			c := startComposed(t, part{name: "alpha", script: stubborn}, part{name: "beta", script: stubborn}, part{name: "gamma", script: stubborn})
			c.greet()
			c.tools("1")
			if name == "TERM" {
				c.call("2", "beta__never", `{}`)
				c.call("3", "gamma__never", `{}`)
				c.ping()
			}
			end(c)
			c.exit()
			if name == "TERM" {
				c.failure("2", -31010)
				c.failure("3", -31010)
			}
			c.nothingElse()
		})
	}
}

func TestOfSeveralServersANewConfigIsTakenOverByEach(t *testing.T) {
	t.Parallel()
	c := startComposed(t, part{name: "alpha", script: toolbox(readTool("look"))}, part{name: "beta", script: toolbox(readTool("look"))})
	c.greet()
	c.tools("1")
	file := filepath.Join(c.dir, "mcp-retry.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c.write("mcp-retry.yaml", string(config)+"    tool_filter: {deny: [look]}\n") // of the last one
	c.record("the new config", func(r fieldRecord) bool { return r.Msg == "config_reload" && r.Server == "beta" })
	c.call("2", "alpha__look", `{}`)
	c.success("2")
	c.call("3", "beta__look", `{}`)
	c.failure("3", -31005)
	if got := c.tools("4"); got != "alpha__look" {
		t.Errorf("listed: %s", got)
	}
	c.close()
}

func TestAFaultInOneOfSeveralServersIsToldBeforeAnyStarts(t *testing.T) {
	t.Parallel()
	f := newField(t)
	config := f.write("mcp-retry.yaml", "servers:\n  alpha: {command: 'true'}\n  beta: {command: 'true', policy: [{when: 'tool.nam == 1', retry: false}]}\n")
	f.launch([]string{"run", "--config", config}, nil, false)
	if status := f.exit(); status != exitUsage {
		t.Errorf("exit status %d", status)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if words := strings.Join(f.words, "\n"); !strings.Contains(words, "mcp-retry.yaml:3:") || strings.Contains(words, "server_start") {
		t.Errorf("stderr: %s", words)
	}
}
