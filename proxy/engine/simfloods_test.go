package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// flood is something that a client or a server does without end, each time under another name.
type flood struct {
	settings string
	times    int
	once     func(w *world, n int)
}

// floods reach each bound of what an engine remembers, which the histories of the simulation are too short for.
var floods = map[string]flood{
	"breaker scopes":        {`policy: [{breaker_scope: string(args.n)}]`, 1500, answeredCall},
	"buckets":               {"rate_limit: {calls: 10, per: 60}\npolicy: [{rate_limit_key: string(args.n)}]", 1500, answeredCall},
	"invalidations by tool": {`policy: [{invalidates: '[string(args.n)]'}]`, 1500, answeredCall},
	"invalidations by call": {`policy: [{invalidates: [{tool: read, args: '{"n": args.n}'}]}]`, 1500, answeredCall},
	"entries of the cache":  {`cache: {tools: {"*": 600}, max_entries: 50}`, 200, answeredCall},
	"bytes of the cache":    {`cache: {tools: {"*": 600}, max_bytes: 20KiB}`, 200, answeredCall},
	"kept results": {"cache: {max_entries: 50}", 200, func(w *world, n int) {
		w.call("1", "write", `{}`, `"_meta":{"idempotencyKey":`+strconv.Itoa(n)+`}`)
		w.text(w.attempt(), "ok")
	}},
	"tools that are called": {"", 5000, func(w *world, n int) {
		w.call("1", "made up "+strconv.Itoa(n), `{}`)
		w.text(w.attempt(), "ok")
	}},
	"bytes of the names that are called": {"", 20, func(w *world, n int) {
		w.call("1", strconv.Itoa(n)+strings.Repeat("x", 1<<20), `{}`)
		w.text(w.attempt(), "ok")
	}},
	"tools that are listed": {"", 50, func(w *world, n int) {
		var page strings.Builder
		for i := range 100 {
			fmt.Fprintf(&page, `,{"name":"%d-%d"}`, n, i)
		}
		listedPage(w, page.String()[1:])
	}},
	"bytes of the names that are listed": {"", 20, func(w *world, n int) {
		listedPage(w, fmt.Sprintf(`{"name":"%d %s"}`, n, strings.Repeat("x", 1<<20)))
	}},
	"bytes of titles": {"", 20, func(w *world, n int) {
		listedPage(w, fmt.Sprintf(`{"name":"%d","title":%q}`, n, strings.Repeat("x", 1<<20)))
	}},
	"titles that change": {"", 40, func(w *world, n int) {
		listedPage(w, fmt.Sprintf(`{"name":"%d","title":%q}`, n%3, strings.Repeat("x", 1+n%7<<10)))
	}},
	"bytes of schemas": {"validate_results: warn", 20, func(w *world, n int) {
		listedPage(w, fmt.Sprintf(`{"name":"%d","outputSchema":{"x":%q}}`, n, strings.Repeat("x", 1<<20)))
	}},
	"calls at once": {"", 2, func(w *world, n int) {
		for i := range 500 {
			w.call(strconv.Itoa(i), "plain", fmt.Sprintf(`{"n":%d}`, i))
		}
		for len(w.server) > 0 {
			w.text(w.attempt(), "ok")
		}
	}},
	"questions": {"", 1500, func(w *world, n int) {
		w.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, n))
	}},
	"subscriptions": {"", 1500, func(w *world, n int) {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"%d"}}`, n))
		w.reply(w.request("resources/subscribe"), `{}`)
	}},
}

func answeredCall(w *world, n int) {
	w.call("1", "read", fmt.Sprintf(`{"n":%d}`, n))
	w.text(w.attempt(), "ok")
}

// listedPage plays that the client lists the tools, and gets this page.
func listedPage(w *world, entries string) {
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.reply(w.request("tools/list"), `{"tools":[`+entries+`]}`)
}

// Whatever comes without end, what is remembered of it is bounded, and the engine goes on.
func TestWhatIsRememberedOfAFloodIsBounded(t *testing.T) {
	for name, f := range floods {
		t.Run(name, func(t *testing.T) {
			w := session(t, f.settings)
			for n := range f.times {
				f.once(w, n)
				w.client, w.server, w.tags, w.logs = nil, nil, nil, nil
			}
			if err := w.e.Check(); err != nil {
				t.Error(err)
			}
			w.call("1", "plain", `{"n":-1}`)
			w.text(w.attempt(), "still here")
			w.wantText("1", "still here")
			w.advance(time.Hour)
			if has := w.e.Inspect(); has.Calls+has.Pending+has.InFlight+has.Timers+has.Lined+has.Passing > 0 {
				t.Errorf("the engine still holds %+v", has)
			}
		})
	}
}
