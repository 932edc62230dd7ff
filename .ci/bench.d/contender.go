package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A contender is something that stands between the client and the server.
type contender struct {
	name string
	argv []string
	same bool // all of its calls are the same, so that the cache can answer them
}

type contenders struct{ relay, none, four, hit, thousand contender }

// newContenders writes the configs into dir.
func newContenders(command, dir string) (c contenders, err error) {
	self, err := os.Executable()
	if err != nil {
		return c, err
	}
	run := func(name, settings string) contender {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
		text := fmt.Sprintf("servers:\n  echo:\n    command: %q\n    args: [answer]\n%s", self, settings)
		if failed := os.WriteFile(file, []byte(text), 0o600); failed != nil {
			err = failed
		}
		return contender{name: name, argv: []string{command, "run", "--config", file, "--log-level", "error"}}
	}
	c.relay = contender{name: "relay", argv: []string{self, "relay"}}
	c.none = contender{name: "no policy", argv: []string{command, "wrap", "--log-level", "error", "--", self, "answer"}}
	c.four = run("four decisions", tenRules)
	c.hit = run("cache hit", "    cache: {tools: {echo: 3600}, max_bytes: 256MiB}\n")
	c.hit.same = true
	c.thousand = run("1000 rules", manyRules(1000))
	return c, err
}

func (c *contenders) hops() []contender   { return []contender{c.relay, c.none, c.four, c.hit} }
func (c *contenders) starts() []contender { return []contender{c.relay, c.none, c.four, c.thousand} }

// tenRules take four decisions on every call, all from its arguments; the other six are for other tools, or for failures.
const tenRules = `    policy:
      - {name: deny, deny: 'args.n < 0 ? "negative" : ""'}
      - {name: key, idempotency_key: 'args.n > 0 ? dyn(null) : dyn("zero")'}
      - {name: scope, breaker_scope: '"n" + string(args.n % 2)'}
      - {name: patience, call_timeout: 'args.n == 0 ? duration("1s") : duration("30s")'}
      - {name: payments, when: 'glob(tool.name, "pay_*")', idempotency_key: '[args.order, args.amount]', retry: false}
      - {name: searches, when: 'tool.name == "search" && args.limit > 100', call_timeout: 50s}
      - {name: writes, when: 'tool.destructive && has(args.force)', max_retries: 0}
      - {name: busy, when: 'error.kind == "tool" && error.text.contains("rate limit")', retry: true, retry_delay: 5s}
      - {name: broken, when: 'error.code == -32603', retry: false}
      - {name: listing, when: 'tool.name.startsWith("list_")', cache_ttl: 30s}
`

// manyRules are for 500 tools, two for each.
func manyRules(n int) string {
	var b strings.Builder
	b.WriteString("    policy:\n")
	for i := range n {
		switch tool := fmt.Sprintf("tool_%d", i/2); i % 4 {
		case 0:
			fmt.Fprintf(&b, "      - {name: r%d, when: 'tool.name == %q && args.n > %d', breaker_scope: '\"s%d\" + string(args.n %% 7)'}\n", i, tool, i, i)
		case 1:
			fmt.Fprintf(&b, "      - {name: r%d, when: 'glob(tool.name, \"%s_*\") && has(args.x)', idempotency_key: '[args.x, %d]'}\n", i, tool, i)
		case 2:
			fmt.Fprintf(&b, "      - {name: r%d, when: 'tool.name in [%q, \"t%d\"] && error.kind == \"rpc\"', retry: 'error.code == %d', retry_delay: 5s}\n", i, tool, i, -32000-i)
		case 3:
			fmt.Fprintf(&b, "      - {name: r%d, when: 'tool.effects == \"none\" && tool.name == %q', cache_ttl: %ds}\n", i, tool, i+1)
		}
	}
	return b.String()
}
