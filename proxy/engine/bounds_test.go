package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// What is kept per scope, per key or per call is bounded: names made from arguments must not fill the memory.
func TestScopesAndBucketsThatComeFromArgumentsAreBounded(t *testing.T) {
	w := session(t, `retry: {max_retries: 0}
circuit_breaker: {failure_threshold: 1, cooldown_seconds: 3600}
rate_limit: {calls: 1, per: 3600}
policy: [{breaker_scope: string(args.n), rate_limit_key: string(args.n)}]`)
	for i := range 3000 {
		n := strconv.Itoa(i)
		w.call(n, "plain", `{"n":`+n+`}`)
		if i == 0 {
			w.refuse(w.attempt(), -32000) // open, and asked least recently; closed ones are dropped before it
		} else {
			w.text(w.attempt(), "ok")
		}
		w.client = nil
	}
	w.call("1", "plain", `{"n":2999}`)
	w.wantError("1", engine.CodeRateLimited)
	w.call("2", "plain", `{"n":0}`)
	w.wantError("2", engine.CodeCircuitOpen)
	w.call("3", "plain", `{"n":1}`) // its bucket was dropped
	w.attempt()
}

func TestInvalidationsAreBounded(t *testing.T) {
	for _, rule := range []string{
		`invalidates: [{tool: other, args: '{"n": args.n}'}]`,
		`invalidates: [{tool: other}]`,
	} {
		w := session(t, "cache: {tools: {read: 3600}}\npolicy: [{when: 'tool.name == \"idem\"', "+rule+"}]")
		w.call("0", "read", `{}`)
		w.text(w.attempt(), "old")
		w.client = nil
		for i := range 2000 {
			n := strconv.Itoa(i)
			w.call(n, "idem", `{"n":`+n+`}`)
			w.text(w.attempt(), "ok")
			w.client = nil
		}
		w.call("1", "read", `{}`)
		if strings.Contains(rule, "args") != (len(w.server) > 0) { // beyond the bound, all is stale
			t.Errorf("%s: %d frames went to the server", rule, len(w.server))
		}
	}
}

func TestArgumentsThatAreTooLargeOrHaveNoCanonicalFormAreComparedByTheirBytes(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"a":"` + large + `","b":1}`, `{"a":"` + large + `","b":1}`, true},
		{`{"a":"` + large + `","b":1}`, `{"b":1,"a":"` + large + `"}`, false},
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1.0,"b":"\u0061"}`, ` { "b" : "a" , "a" : 1 } `, true},
	} {
		w := session(t, "")
		w.call("1", "plain", tt.a)
		w.call("2", "plain", tt.b)
		if joined := len(w.server) == 1; joined != tt.same {
			t.Errorf("%.40s and %.40s: joined %v, want %v", tt.a, tt.b, joined, tt.same)
		}
	}
}

// Operations are used again: what an earlier one was must not show in a later one.
func TestMemoryThatIsUsedAgainIsAsNew(t *testing.T) {
	w := session(t, "call_timeout: 2\nretry: {max_retries: 0}")
	for i := range 500 {
		id := strconv.Itoa(i)
		switch i % 5 {
		case 0:
			w.call(id, "write", `{"n":`+id+`}`, `"_meta":{"progressToken":"t","idempotencyKey":"`+id+`"}`)
			w.text(w.attempt(), id)
			w.wantText(id, id)
		case 1:
			w.call(id, "plain", `{"n":`+id+`}`, `"task":{}`)
			w.reply(w.attempt(), `{"task":{}}`)
			w.answer(id)
		case 2:
			w.call(id, "read", `{"n":1}`)
			w.call(`"`+id+`"`, "read", `{"n":1}`)
			w.refuse(w.attempt(), -32603)
			w.wantError(id, -32603)
			w.wantError(`"`+id+`"`, -32603)
		case 3:
			w.call(id, "read", `{"n":`+id+`}`)
			w.attempt()
			w.cancel(id)
			w.request("notifications/cancelled")
		case 4:
			w.call(id, "read", `{"n":`+id+`}`)
			m := w.attempt()
			if params := m["params"].(map[string]any); len(params) != 2 {
				t.Fatalf("the server got %v", params)
			}
			w.text(m, id)
			w.wantText(id, id)
		}
		w.silent()
		w.quiet()
		if err := w.e.Check(); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(time.Hour)
	if has := w.e.Inspect(); has.Pending+has.InFlight+has.Timers+has.Calls > 0 || has.Free > 128 {
		t.Errorf("the engine still holds %+v", has)
	}
}

func TestBackoffGrowsAsItsKindSays(t *testing.T) {
	for kind, want := range map[string][]time.Duration{
		"exponential": {time.Second, 2 * time.Second, 3 * time.Second},
		"linear":      {time.Second, 2 * time.Second, 3 * time.Second},
		"constant":    {time.Second, time.Second, time.Second},
	} {
		w := session(t, "retry: {max_retries: 3, base_delay: 1, max_delay: 3, jitter: 0, backoff: "+kind+"}")
		w.call("1", "read", `{}`)
		for _, wait := range want {
			w.refuse(w.attempt(), -32000)
			w.advance(wait - time.Millisecond)
			w.quiet()
			w.advance(time.Millisecond)
		}
		w.attempt()
	}
}

func TestTheLogDoesNotRepeatAGiantID(t *testing.T) {
	w := session(t, "")
	w.call(`"`+strings.Repeat("x", 1<<20)+`"`, "read", `{}`)
	w.text(w.attempt(), "done")
	for _, r := range w.logs {
		if len(r.RequestID) > 300 {
			t.Errorf("%s shows %d bytes of the id", r.Event, len(r.RequestID))
		}
	}
}

func TestNotificationsThatWaitForTheServerAreBounded(t *testing.T) {
	const most = 16 << 20 // bytes
	for name, sizes := range map[string][]int{"many": {100}, "large": {1 << 20}, "too large": {100, most, 100}, "too large from the first on": {most, 100}} {
		t.Run(name, func(t *testing.T) {
			w := coldWorld(t, "")
			w.send(hello)
			for _, size := range sizes {
				for range min(40_000, 2*most/size) {
					w.send(`{"jsonrpc":"2.0","method":"x","params":{"pad":"` + strings.Repeat("x", size) + `"}}`)
				}
			}
			w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // which the server must get
			if n := w.logged("noise"); n != 1 {
				t.Errorf("%d records say so", n)
			}
			w.up()
			size, last := 0, ""
			for _, frame := range w.server {
				size, last = size+len(frame), frame
			}
			if size > most+1000 || len(w.server) < 3 || !strings.Contains(last, "notifications/initialized") {
				t.Errorf("%d bytes in %d frames reach the server, the last being %.100s", size, len(w.server), last)
			}
		})
	}
}

func TestIdsOfTheServersQuestionsAreBoundedTogether(t *testing.T) {
	w := session(t, "max_message_bytes: 1MiB")
	question := func(n int) string {
		return `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300<<10) + strconv.Itoa(n) + `","method":"roots/list"}`
	}
	for n := range 10 {
		w.say(question(n))
	}
	if len(w.client) > 3 || len(w.client) == 0 {
		t.Errorf("%d of them are open", len(w.client))
	}
	if len(w.server) != 10-len(w.client) || !strings.Contains(w.server[0], "too many") {
		t.Errorf("%d were refused", len(w.server))
	}
}

func TestAServerThatAsksWithoutEndAndReadsNothingIsRefusedOnlySoOften(t *testing.T) {
	w := session(t, "")
	asks := func() (refused int) {
		w.client, w.server, w.tags = nil, nil, nil
		for range 100_000 {
			w.say(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
		}
		for _, frame := range w.server {
			refused += len(frame)
		}
		return refused
	}
	if n := asks(); n == 0 || n > 16<<20 {
		t.Errorf("%d bytes were written to refuse it", n)
	}
	if n := asks(); n != 0 {
		t.Errorf("%d bytes were written to refuse it again", n)
	}
	if n := w.logged("noise"); n != 1 {
		t.Errorf("%d records say so", n)
	}
	w.client, w.server, w.tags = nil, nil, nil
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "ok") // it has read all that came before
	w.wantText("1", "ok")
	w.say(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if len(w.server) != 1 {
		t.Errorf("it is not refused any more: %s", w.server)
	}
}
