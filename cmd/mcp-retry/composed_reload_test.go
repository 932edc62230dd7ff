package main

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// changed waits for word that each of these lists has changed.
func (c *composed) changed(lists ...string) {
	c.t.Helper()
	for _, list := range lists {
		c.message("notifications/" + list + "/list_changed")
	}
}

func TestAServerThatIsAddedToTheConfigJoins(t *testing.T) {
	t.Parallel()
	alpha := part{name: "alpha", script: toolbox(readTool("look")), settings: "    cache: {tools: {look: 3600}}\n"}
	beta := part{name: "beta", script: toolbox(plainTool("work"))}
	gamma := part{name: "gamma", script: toolbox(plainTool("rest"))}
	c := startComposed(t, alpha, beta)
	c.greet()
	if got := c.tools("1"); got != "alpha__look beta__work" {
		t.Errorf("listed: %s", got)
	}
	c.call("2", "alpha__look", "{}")
	c.success("2")

	c.put(c.config(gamma, alpha, beta))
	c.record("gamma", func(r fieldRecord) bool { return r.Msg == "server_added" && r.Server == "gamma" })
	c.changed("tools", "prompts", "resources")
	if got := c.tools("3"); got != "gamma__rest alpha__look beta__work" {
		t.Errorf("listed: %s", got)
	}
	c.call("4", "gamma__rest", "{}")
	c.success("4")
	c.call("5", "alpha__look", "{}")
	c.success("5")
	if n := c.of("alpha").Attempts("look"); n != 1 {
		t.Errorf("the cache did not survive: alpha was asked %d times", n)
	}
	for _, name := range []string{"alpha", "beta", "gamma"} {
		if lives := c.of(name).Lives(); lives != 1 {
			t.Errorf("%s lived %d times", name, lives)
		}
	}
	if status := c.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	c.nothingElse()
}

func TestAServerThatIsRemovedFromTheConfigFinishesAndLeaves(t *testing.T) {
	t.Parallel()
	alpha := part{name: "alpha", script: toolbox(readTool("look"))}
	ask := flaky.Message{Method: "sampling/createMessage", Params: flaky.Raw(`{}`)}
	beta := part{name: "beta", script: toolbox(plainTool("work", flaky.Outcome{Ask: &ask}))}
	address := freeAddress(t)
	c := startComposedWith(t, []string{"--metrics", address}, alpha, beta)
	c.greet()
	c.tools("1")
	c.call("2", "beta__work", "{}")
	question := c.message("sampling/createMessage")

	c.put(c.config(alpha))
	c.record("beta", func(r fieldRecord) bool { return r.Msg == "server_removed" && r.Server == "beta" })
	c.changed("tools", "prompts", "resources")
	if got := c.tools("3"); got != "alpha__look" {
		t.Errorf("listed: %s", got)
	}
	c.call("4", "beta__work", "{}")
	c.failure("4", -32602)
	c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":{"late":true}}`) // what is in flight is served to its end
	if got := c.success("2").text(); !strings.Contains(got, "late") {
		t.Errorf("beta answered %s", got)
	}
	c.record("its end", func(r fieldRecord) bool { return r.Msg == "server_exit" && r.Server == "beta" })
	if ends := c.of("beta").Events(flaky.EventEnd); len(ends) != 1 || ends[0].Code != 0 {
		t.Errorf("beta did not end in order: %+v", ends)
	}
	f := &measuredField{field: c.field, address: address}
	if _, text := f.page("/healthz"); strings.Contains(text, "beta") || !strings.Contains(text, `"status": "healthy"`) {
		t.Errorf("the health is %s", text)
	}

	c.put(c.config(alpha, beta)) // and comes back
	c.changed("tools", "prompts", "resources")
	c.call("5", "beta__work", "{}")
	c.success("5")
	if status := c.close(); status != exitFine {
		t.Errorf("exit status %d", status)
	}
	c.nothingElse()
}

// lookAndWork starts a session with two servers, alpha that has a tool look and beta that has a tool work, and has it list the tools.
func lookAndWork(t *testing.T, args ...string) (c *composed, alpha, beta part) {
	alpha = part{name: "alpha", script: toolbox(readTool("look"))}
	beta = part{name: "beta", script: toolbox(plainTool("work"))}
	c = startComposedWith(t, args, alpha, beta)
	c.greet()
	c.tools("1")
	return c, alpha, beta
}

func TestAnotherOrderAndSeparatorAreTakenOver(t *testing.T) {
	t.Parallel()
	c, alpha, beta := lookAndWork(t)
	c.put(c.config(beta, alpha))
	c.changed("tools", "prompts", "resources")
	if got := c.tools("2"); got != "beta__work alpha__look" {
		t.Errorf("listed: %s", got)
	}
	c.put("compose: {separator: '.'}\n" + c.config(beta, alpha))
	c.changed("tools", "prompts")
	if got := c.tools("3"); got != "beta.work alpha.look" {
		t.Errorf("listed: %s", got)
	}
	c.call("4", "alpha.look", "{}")
	c.success("4")
	c.call("5", "alpha__look", "{}")
	if e := c.failure("5", -32602).Error; !strings.Contains(e.Message, "beta.") {
		t.Errorf("the error is %q", e.Message)
	}
	c.close()
	c.nothingElse()
}

func TestServersWhoseNamesCannotStandTogetherAreRefusedWhole(t *testing.T) {
	t.Parallel()
	c, alpha, _ := lookAndWork(t)
	c.put(c.config(part{name: "alpha__x", script: toolbox()}, alpha))
	c.reloaded("error", "cannot be composed")
	c.call("2", "beta__work", "{}")
	c.success("2")
	c.close()
	c.nothingElse()
}

func TestAServerThatDropsOutIsToldAndSoIsItsReturn(t *testing.T) {
	t.Parallel()
	alpha := part{name: "alpha", script: toolbox(readTool("look"))}
	beta := part{name: "beta", script: toolbox(plainTool("die", flaky.Outcome{Exit: new(3)})), settings: "    restart: never\n    retry: {max_retries: 0}\n"}
	c := startComposed(t, alpha, beta)
	c.greet()
	c.tools("1")
	c.call("2", "beta__die", "{}")
	c.failure("2", -31004)
	c.changed("tools", "prompts", "resources")
	if got := c.tools("3"); got != "alpha__look" {
		t.Errorf("listed: %s", got)
	}
	beta.settings = "    restart: on_demand\n"
	c.put(c.config(alpha, beta))
	c.changed("tools", "prompts", "resources")
	if got := c.tools("4"); got != "alpha__look beta__die" {
		t.Errorf("listed: %s", got)
	}
	c.close()
	c.nothingElse()
}

func TestANameThatWasCutIsKnownToASessionThatHasListedNothing(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long_", 14)
	parts := []part{{name: "alpha", script: toolbox(readTool(long+"one"), readTool(long+"two"))}, {name: "beta", script: toolbox()}}
	first := startComposed(t, parts...)
	first.greet()
	names := strings.Fields(first.tools("1"))
	if len(names) != 2 || len(names[0]) != 64 {
		t.Fatalf("listed: %q", names)
	}
	first.close()

	c := startComposed(t, parts...)
	c.greet()
	c.call("1", names[1], `{"n":1}`)
	if got := c.success("1").text(); !strings.Contains(got, long+"two") {
		t.Errorf("it was %s", got)
	}
	c.call("2", names[0][:63]+"0", `{}`) // never was one: alpha says so itself
	if r := c.answer("2"); r.Error == nil && !strings.Contains(string(r.Result), `"isError":true`) {
		t.Errorf("the answer is %s", r.line)
	}
	c.close()
	c.nothingElse()
}

func TestTheMetricsOfARemovedServerAreItsLast(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	c, alpha, _ := lookAndWork(t, "--metrics", address)
	f := &measuredField{field: c.field, address: address}
	c.call("2", "beta__work", "{}")
	c.success("2")
	c.put(c.config(alpha))
	c.record("its end", func(r fieldRecord) bool { return r.Msg == "server_exit" && r.Server == "beta" })
	f.shows(`mcp_retry_calls_total{server="beta",status="success",tool="work"} 1`)
	for deadline := time.Now().Add(fieldPatience); ; time.Sleep(fieldPoll) {
		_, text := f.page("/metrics")
		if !strings.Contains(text, `mcp_retry_server_up{server="beta"}`) && !strings.Contains(text, `mcp_retry_calls_in_flight{server="beta"}`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("gauges of what is not there:\n%s", text)
		}
	}
	c.close()
}
