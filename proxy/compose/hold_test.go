package compose

import (
	"strconv"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// Large requests are refused, as many are, where they would have to be kept for a server that takes its time.
func TestWhatWaitsIsBounded(t *testing.T) {
	const large = 24 << 20 // bytes of a request
	pad := strings.Repeat("x", large)
	for name, c := range map[string]struct {
		begin func(w *world)
		size  int
		most  int // that may wait
	}{
		"large requests before initialize is answered": {func(*world) {}, large, maxHeldBytes / large},
		"many requests before initialize is answered":  {func(*world) {}, 0, maxHeld},
		"large requests for a server that is late":     {func(w *world) { w.advance(greetTime) }, large, maxHeldBytes / large},
		"many requests for a server that is late":      {func(w *world) { w.advance(greetTime) }, 0, maxHeld},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "defaults: {startup_timeout: 120}", "alpha", "late")
			w.ask("0", "initialize", hello)
			w.answers(0, "initialize", greeting(everyone))
			c.begin(w)
			w.client = nil
			for id := range c.most {
				w.ask(strconv.Itoa(id+1), "tools/call", `{"name":"late__work","arguments":{"n":`+strconv.Itoa(id)+`,"pad":"`+pad[:c.size]+`"}}`)
			}
			w.quiet()
			w.ask(`"more"`, "tools/call", `{"name":"late__work","arguments":{"pad":"`+pad[:c.size]+`"}}`)
			if m := w.answered(`"more"`); m.Error == nil || m.Error.Code != engine.CodeRateLimited {
				t.Errorf("it was answered by %.200s", m.raw)
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"pad":"%s"}}`, pad[:c.size])
			w.answers(1, "initialize", greeting(everyone))
			calls := 0
			for {
				if list, ok := take(&w.servers[1].got, "tools/list", ""); ok {
					w.serves(1, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, list.ID)
				}
				call, ok := take(&w.servers[1].got, "tools/call", "")
				if !ok {
					break
				}
				calls++
				w.serves(1, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, call.ID)
			}
			if calls != c.most {
				t.Errorf("%d calls reached the server, want %d", calls, c.most)
			}
		})
	}
}
