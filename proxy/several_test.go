//go:build unix

package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
	"github.com/bentabol/mcp-retry/schema"
)

// shieldProgram is the program in the README of mcp-shield, as it stands there.
const shieldProgram = `import { shield } from '@daino/mcp-shield';

const proxy = shield({
  command: 'npx',
  args: ['@modelcontextprotocol/server-github'],
  timeout: 30_000,
  retries: { max: 3, backoff: 'exponential', jitter: true },
  circuitBreaker: { threshold: 5, resetAfter: 60_000 },
});

proxy.start(); // starts the proxy and child MCP server
`

// parseShielded returns the options that shieldProgram gives to shield: but for the case of names and for milliseconds they are what a
// file holds.
func parseShielded(t *testing.T) Options {
	t.Helper()
	_, rest, _ := strings.Cut(shieldProgram, "shield(")
	given, _, ok := strings.Cut(rest, ");")
	if !ok {
		t.Fatal("there is no call of shield")
	}
	file := strings.NewReplacer("circuitBreaker", "circuit_breaker", "resetAfter", "reset_after", "0_000", "0000ms").Replace(given)
	o, err := Parse("mcp-shield.yaml", []byte("servers: {github: "+file+"}"), "")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// playedBy has the test binary play a script in place of a server's command.
func playedBy(s *schema.Server, script flaky.Script) *schema.Server {
	s.Command, s.Args = os.Args[0], nil
	s.Env = map[string]string{flaky.EnvVar: script.String()}
	return s
}

func TestAProgramCanHaveWhatTheProgramOfMcpShieldHas(t *testing.T) {
	o := parseShielded(t)
	if o.Server.Command != "npx" || fmt.Sprint(o.Server.Args) != "[@modelcontextprotocol/server-github]" {
		t.Errorf("it starts %s %v", o.Server.Command, o.Server.Args)
	}
	want, err := Parse("ours.yaml", []byte(`servers: {github: {command: npx, args: ["@modelcontextprotocol/server-github"], call_timeout: 30,
		retry: {max_retries: 3, base_delay: 1, backoff: exponential, jitter: true}, circuit_breaker: {failure_threshold: 5, cooldown_seconds: 60}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decides(o.Server), decides(want.Server); got != want {
		t.Errorf("its rules are\n%s\nnot\n%s", got, want)
	}
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	playedBy(o.Server, flaky.Script{Tools: []flaky.Tool{{Name: "look", Plan: flaky.Plan{Outcomes: []flaky.Outcome{busy}}}}})
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, p)
	c.initialize(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look"}}`)
	if m := c.answer(t); m.Result == nil {
		t.Errorf("got %+v", m.Error)
	}
}

// decides lists what the rules of a server decide, whatever they are called: of those with one condition, the first that states it.
func decides(s *schema.Server) string {
	first := map[string]string{}
	for _, r := range s.Rules {
		for _, d := range r.Decides {
			key := fmt.Sprint(d.Decision, " when ", words(r.When))
			if _, decided := first[key]; !decided {
				first[key] = fmt.Sprint(d.Literal, words(d.Expr))
			}
		}
	}
	return fmt.Sprint(first)
}

func words(e *schema.Expr) string {
	if e == nil {
		return ""
	}
	return e.Text
}

// TestProxiesInOneProcessShareNothing runs three proxies at once, one of them with two sessions and one with two servers. Tools,
// arguments and ids are the same everywhere, and so are the names of servers.
func TestProxiesInOneProcessShareNothing(t *testing.T) {
	const cached = "{command: x, cache: {tools: {count: 1h}}, circuit_breaker: {failure_threshold: 1, cooldown_seconds: 1h}, retry: {max_retries: 0}}"
	script := func(name string) flaky.Script {
		broken := flaky.Outcome{Error: &flaky.Error{Code: -32603, Message: "broken"}}
		return flaky.Script{Tools: []flaky.Tool{
			{Name: "count", Plan: flaky.Always(flaky.Outcome{Text: name})},
			{Name: "fail", Plan: flaky.Always(broken)},
		}}
	}
	proxyOf := func(config string, names ...string) *Proxy {
		o, err := Parse("test.yaml", []byte(config), "")
		if err != nil {
			t.Fatal(err)
		}
		if o.Server != nil {
			playedBy(o.Server, script(names[0]))
		}
		for i := range o.Servers {
			playedBy(o.Servers[i].Server, script(names[i]))
		}
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := proxyOf("servers: {same: "+cached+"}", "one"), proxyOf("servers: {same: "+cached+"}", "two")
	both := proxyOf("servers: {same: "+cached+", other: "+cached+"}", "three", "four")
	sessions := []struct {
		client       *client
		prefix, text string
	}{
		{connect(t, first), "", "one"}, {connect(t, first), "", "one"}, {connect(t, second), "", "two"}, {connect(t, both), "same__", "three"},
		{connect(t, both), "other__", "four"},
	}
	var all sync.WaitGroup
	for i, s := range sessions {
		all.Go(func() {
			c := s.client
			c.initialize(t)
			for id := range 20 {
				c.send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%scount","arguments":{"n":%d}}}`, id, s.prefix, id%3)
				if m := c.answer(t); string(m.ID) != fmt.Sprint(id) || !strings.Contains(string(m.Result), s.text) {
					t.Errorf("session %d got %s: %s %v", i, m.ID, m.Result, m.Error)
				}
			}
			c.send(`{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"%sfail"}}`, s.prefix)
			if m := c.answer(t); m.Error == nil || m.Error.Code != -32603 { // no other's breaker is in the way
				t.Errorf("session %d got %s %+v", i, m.Result, m.Error)
			}
			c.send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"%sfail","arguments":{"again":true}}}`, s.prefix)
			if m := c.answer(t); m.Error == nil || m.Error.Code != -31002 {
				t.Errorf("session %d got %s %+v", i, m.Result, m.Error)
			}
		})
	}
	all.Wait()
	sessions[0].client.cancel()
	if err := wait(t, sessions[0].client.served, "Serve"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for i, s := range sessions[1:] {
		s.client.send(`{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"%scount","arguments":{"n":0}}}`, s.prefix) // it is kept
		if m := s.client.answer(t); !strings.Contains(string(m.Result), s.text) {
			t.Errorf("session %d got %s", i+1, m.Result)
		}
		s.client.in.Close()
		if err := wait(t, s.client.served, "Serve"); err != nil {
			t.Errorf("session %d ended with %v", i+1, err)
		}
	}
}
