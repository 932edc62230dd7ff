package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// counted is a session under a meter that writes down what it is told.
type counted struct {
	*world
	told  []string
	bytes [4]int
}

func newCounted(t *testing.T, settings string) *counted {
	t.Helper()
	c := &counted{}
	tell := func(format string, args ...any) { c.told = append(c.told, fmt.Sprintf(format, args...)) }
	name := func(tool engine.ToolName) string {
		if tool.Listed {
			return tool.Name
		}
		return tool.Name + "?"
	}
	server, compiled, err := load(settings)
	if err != nil {
		t.Fatal(err)
	}
	c.world = &world{t: t, start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), e: engine.New(engine.Config{
		Server: server, Policy: compiled, Seed: 1,
		Meter: &engine.Meter{
			CallBegan: func(tool engine.ToolName) { tell("began %s", name(tool)) },
			CallEnded: func(tool engine.ToolName, end engine.CallEnd) {
				tell("%s", strings.TrimSpace(fmt.Sprintf("ended %s %s %v %s%s", name(tool), end.Status, end.Took, end.Dedup, end.By)))
			},
			Sent: func(tool engine.ToolName, again string) {
				tell("%s", strings.TrimSpace(fmt.Sprintf("sent %s %s", name(tool), again)))
			},
			Failed: func(tool engine.ToolName, kind string) { tell("failed %s %s", name(tool), kind) },
			Cache:  func(tool engine.ToolName, result string) { tell("cache %s %s", name(tool), result) },
			Limited: func(tool engine.ToolName, wait time.Duration, refused bool) {
				tell("limited %s %v refused=%t", name(tool), wait, refused)
			},
			EvalError: func(decision string) { tell("error in %s", decision) },
			Breaker:   func(scope, from, to string, _ time.Time) { tell("breaker %s %s>%s", scope, from, to) },
			Life:      func(state engine.LifeState, gen uint64) { tell("life %d %s", gen, state) },
			Bytes:     func(d engine.Direction, n int) { c.bytes[d] += n },
		},
	})}
	c.now = c.start
	c.step(engine.Event{Kind: engine.Tick})
	c.handshake()
	c.want("life 1 starting", "life 1 up")
	return c
}

// want fails the test unless the meter was told exactly this since the last time.
func (c *counted) want(told ...string) {
	c.t.Helper()
	if !slices.Equal(c.told, told) {
		c.t.Errorf("the meter was told\n\t%s\nwant\n\t%s", strings.Join(c.told, "\n\t"), strings.Join(told, "\n\t"))
	}
	c.told = nil
}

func TestTheMeterIsToldOfEachCallAndAttempt(t *testing.T) {
	c := newCounted(t, "retry: {max_retries: 1, base_delay: 1s, jitter: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 30}")
	c.call("1", "read", `{}`)
	c.refuse(c.attempt(), -32000)
	c.advance(time.Second)
	c.text(c.attempt(), "ok")
	c.want("began read", "breaker server >closed", "sent read", "failed read rpc", "sent read rpc", "ended read success 1s")

	c.call("2", "unheard_of", `{}`)
	c.refuse(c.attempt(), -32602)
	c.want("began unheard_of?", "sent unheard_of?", "failed unheard_of? rpc", "ended unheard_of? error 0s")

	c.call("3", "write", `{}`)
	c.attempt()
	c.cancel("3")
	c.request("notifications/cancelled")
	c.want("began write", "sent write", "ended write cancelled 0s")

	c.call("4", "read", `{"n":4}`)
	c.refuse(c.attempt(), -32000)
	c.advance(time.Second)
	c.refuse(c.attempt(), -32000)
	c.call("5", "read", `{"n":5}`)
	c.want("began read", "sent read", "failed read rpc", "sent read rpc", "breaker server closed>open", "failed read rpc", "ended read error 1s",
		"began read", "ended read refused 0s breaker")
}

func TestTheMeterIsToldWhereAnswersComeFrom(t *testing.T) {
	c := newCounted(t, "cache: {tools: {read: 60}}\nidempotency_ttl: 60\npolicy: [{stale_if_error: 1h}]\nretry: {max_retries: 0}")
	c.call("1", "read", `{}`)
	first := c.attempt()
	c.call("2", "read", `{}`)
	c.text(first, "one")
	c.call("3", "read", `{}`)
	c.want("began read", "cache read miss", "breaker server >closed", "sent read", "began read", "cache read stored",
		"ended read success 0s", "ended read success 0s joined", "began read", "cache read hit", "ended read success 0s")

	c.advance(2 * time.Minute)
	c.call("4", "read", `{}`)
	c.refuse(c.attempt(), -32000)
	c.want("began read", "cache read miss", "sent read", "failed read rpc", "cache read stale", "ended read success 0s")

	for range 2 {
		c.call("5", "write", `{}`)
		if len(c.server) > 0 {
			c.text(c.attempt(), "written")
		}
	}
	c.want("began write", "sent write", "ended write success 0s", "began write", "ended write success 0s replayed")

	c.call("6", "read", `{}`)
	c.want("began read", "cache read invalidated", "cache read miss", "sent read")
}

func TestTheMeterIsToldOfLimitsAndFaultyExpressions(t *testing.T) {
	c := newCounted(t, "rate_limit: {calls: 1, per: 10, max_wait: 10}\npolicy: [{call_timeout: 'duration(args.none)'}]")
	c.call("1", "read", `{"n":1}`)
	c.text(c.attempt(), "ok")
	c.want("began read", "error in call_timeout", "breaker server >closed", "sent read", "ended read success 0s")
	c.call("2", "read", `{"n":2}`)
	c.call("3", "read", `{"n":3}`)
	c.want("began read", "error in call_timeout", "limited read 10s refused=false",
		"began read", "error in call_timeout", "limited read 20s refused=true", "ended read refused 0s rate_limit")
}

func TestTheMeterIsToldOfEachLifeOfTheServer(t *testing.T) {
	c := newCounted(t, "")
	c.die()
	c.want("life 1 down")
	c.call("1", "read", `{}`)
	c.want("began read", "breaker server >closed", "life 2 starting")
	c.revive()
	c.text(c.attempt(), "ok")
	c.want("life 2 up", "sent read", "ended read success 0s")
}

func TestTheMeterCountsTheBytesOfFrames(t *testing.T) {
	c := newCounted(t, "")
	before := c.bytes
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	c.send(ping)
	c.reply(c.request("ping"), `{}`)
	in, out := c.bytes[engine.FromTheClient]-before[engine.FromTheClient], c.bytes[engine.ToTheServer]-before[engine.ToTheServer]
	if in != len(ping) || out != len(ping) {
		t.Errorf("%d bytes came from the client and %d went to the server; want %d and as many", in, out, len(ping))
	}
	answer := len(`{"jsonrpc":"2.0","id":3,"result":{}}`)
	in, out = c.bytes[engine.FromTheServer]-before[engine.FromTheServer], c.bytes[engine.ToTheClient]-before[engine.ToTheClient]
	if in != answer || out != answer {
		t.Errorf("%d bytes came from the server and %d went to the client; want %d and as many", in, out, answer)
	}
}

func TestTheStateTellsWhatIsInFlight(t *testing.T) {
	w := session(t, "max_concurrency: 1\nrate_limit: {calls: 5, per: 1}\nretry_budget: {ratio: 0.2, per_second: 1, burst: 7}")
	w.call("1", "read", `{"secret":"hidden"}`)
	w.call(`"two"`, "read", `{"secret":"hidden"}`)
	w.call("3", "write", `{}`)
	w.send(`{"jsonrpc":"2.0","id":4,"method":"prompts/list"}`)
	w.advance(time.Second)
	s := w.e.State(w.now)
	if len(s.Calls) != 3 || s.Calls[0].State != "sending" || !s.Calls[1].Joined || s.Calls[1].ID != `"two"` || s.Calls[2].State != "waiting" {
		t.Errorf("calls: %+v", s.Calls)
	}
	if s.Calls[0].AgeMs != 1000 || s.Calls[0].Attempts != 1 || s.Calls[0].Tool != "read" {
		t.Errorf("a call: %+v", s.Calls[0])
	}
	if len(s.Requests) != 1 || s.Requests[0].Method != "prompts/list" || !s.Requests[0].Sent {
		t.Errorf("requests: %+v", s.Requests)
	}
	if s.Places != (engine.StatePlaces{Most: 1, Taken: 1, Waiting: 1}) || s.Life.State != "up" || s.Life.Gen != 1 || s.Tools.Listed != 4 {
		t.Errorf("%+v %+v %+v", s.Places, s.Life, s.Tools)
	}
	if s.Budget == nil || *s.Budget != 7 || len(s.Buckets) != 2 || len(s.Breakers) != 1 || s.Client.Name != "test" {
		t.Errorf("budget %v, buckets %v, breakers %v, client %v", s.Budget, s.Buckets, s.Breakers, s.Client)
	}
	if text := fmt.Sprintf("%+v", s); strings.Contains(text, "hidden") {
		t.Errorf("an argument shows in the state: %s", text)
	}
}
