package engine_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// BenchmarkCall is a call and its answer, from frame to frame, without any I/O.
func BenchmarkCall(b *testing.B) {
	for name, settings := range map[string]string{
		"bare": "",
		"four-decisions": `
    policy:
      - idempotency_key: '[args.id, tool.name]'
        breaker_scope: 'args.region == "eu" ? "eu" : "else"'
        rate_limit_key: 'args.region'
        cache_ttl: 'args.id > 5 ? duration("0s") : duration("0s")'
`,
	} {
		b.Run(name, func(b *testing.B) {
			cfg, findings := schema.Load("bench.yaml", []byte("servers:\n  main:\n    command: fake\n"+settings), nil)
			if findings.HasErrors() {
				b.Fatal(findings)
			}
			compiled, findings := policy.Compile(cfg.Servers[0])
			if findings.HasErrors() {
				b.Fatal(findings)
			}
			now := time.Now()
			e := engine.New(engine.Config{Server: cfg.Servers[0], Policy: compiled, Seed: 1})
			e.Step(now, engine.Event{Kind: engine.Tick})
			e.Step(now, engine.Event{Kind: engine.ServerUp, Gen: 1})
			var request, answer []byte
			b.ReportAllocs()
			for i := range b.N {
				now = now.Add(10 * time.Microsecond)
				request = fmt.Appendf(request[:0], `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"id":%d,"region":"eu"}}}`, i, i+10)
				var tag int64
				for _, a := range e.Step(now, engine.Event{Kind: engine.FromClient, Frame: request}) {
					if a.Kind == engine.ToServer {
						tag = a.Tag
					}
				}
				answer = append(strconv.AppendInt(append(answer[:0], `{"jsonrpc":"2.0","id":`...), tag, 10), `,"result":{"content":[{"type":"text","text":"hello"}]}}`...)
				if len(e.Step(now, engine.Event{Kind: engine.FromServer, Gen: 1, Frame: answer})) == 0 {
					b.Fatal("no answer")
				}
			}
		})
	}
}
