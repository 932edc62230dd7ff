package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// reload puts other settings of the server in place.
func (w *world) reload(settings string) {
	w.t.Helper()
	server, compiled, err := load(settings)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(engine.Event{Kind: engine.Reload, Server: server, Policy: compiled})
}

func TestACallEndsUnderThePolicyThatAdmittedIt(t *testing.T) {
	w := session(t, "retry: {max_retries: 3, base_delay: 1s, jitter: 0}")
	w.call("1", "read", `{}`)
	first := w.attempt()
	w.reload("retry: {max_retries: 0}")
	w.refuse(first, -32000)
	w.silent()
	w.advance(time.Second)
	w.text(w.attempt(), "old")
	w.wantText("1", "old")

	w.call("2", "read", `{}`)
	w.refuse(w.attempt(), -32000)
	w.wantError("2", -32000)
	w.quiet()
}

func TestACallInFlightIsNotTrustedMoreThanWhenItCame(t *testing.T) {
	const settings = "call_timeout: 1\nretry: {max_retries: 3, base_delay: 1s, jitter: 0}\n"
	w := session(t, settings+"trust_annotations: false")
	w.call("1", "read", `{}`)
	w.attempt()
	w.reload(settings + "trust_annotations: true")
	w.advance(10 * time.Second)
	if data := w.wantError("1", engine.CodeTimeout); data["endedBy"] != "unsafe" {
		t.Errorf("it ended by %v", data["endedBy"])
	}
	w.call("2", "read", `{"n":2}`)
	w.attempt()
	w.advance(1 * time.Second)
	w.request("notifications/cancelled")
	w.advance(1 * time.Second)
	w.text(w.attempt(), "tried again")
	w.wantText("2", "tried again")
}

func TestWhatIsKnownSurvivesANewConfig(t *testing.T) {
	const settings = "cache: {tools: {read: 60}}\nidempotency_ttl: 60\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 30}\nretry: {max_retries: 0}"
	w := session(t, settings)
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "cached")
	w.wantText("1", "cached")
	w.call("2", "idem", `{}`, `"_meta":{"idempotencyKey":"k"}`)
	w.text(w.attempt(), "kept")
	w.wantText("2", "kept")
	w.call("3", "read", `{"n":1}`)
	w.text(w.attempt(), "cached too")
	w.wantText("3", "cached too")
	w.call("4", "plain", `{}`)
	w.refuse(w.attempt(), -32000)
	w.wantError("4", -32000)

	w.reload(settings + "\ncall_timeout: 10")
	w.call("5", "idem", `{}`, `"_meta":{"idempotencyKey":"k"}`)
	w.wantText("5", "kept")
	w.call("6", "read", `{"n":1}`)
	w.wantText("6", "cached too")
	w.call("7", "plain", `{"n":2}`)
	w.wantError("7", engine.CodeCircuitOpen)
	w.quiet()
	if w.starts != 1 || w.stops != 0 {
		t.Errorf("the server was started %d times and stopped %d times", w.starts, w.stops)
	}
}

func TestAServerThatIsStartedOtherwiseIsRenewedOnceIdle(t *testing.T) {
	w := session(t, "")
	w.call("1", "read", `{}`)
	running := w.attempt()
	w.reload("args: [other]\nrestart: never")
	if w.stops != 0 {
		t.Fatal("the server was stopped under a call")
	}
	w.text(running, "done")
	w.wantText("1", "done")
	if w.stops != 1 || w.starts != 1 {
		t.Fatalf("idle, it was stopped %d times and started %d times", w.stops, w.starts)
	}
	w.call("2", "read", `{"n":2}`) // comes while it ends
	w.quiet()
	w.die()
	w.reply(w.request("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}}}`)
	w.request("notifications/initialized")
	w.reply(w.request("tools/list"), tools)
	w.text(w.attempt(), "anew")
	w.wantText("2", "anew")
	if w.starts != 2 {
		t.Errorf("it was started %d times", w.starts)
	}
	w.reload("args: [other]\nrestart: never\ncall_timeout: 5")
	if w.stops != 1 {
		t.Error("it was stopped for a setting that does not concern its start")
	}
}

func TestAServerThatCouldNotStartIsTriedAtOnceWithANewCommand(t *testing.T) {
	w := coldWorld(t, "restart: never\nretry: {max_retries: 0}")
	w.step(engine.Event{Kind: engine.ServerDown, Gen: w.gen, Spawn: true, Detail: "not found"})
	w.call("1", "read", `{}`)
	w.wantError("1", engine.CodeUnavailable)
	w.reload("args: [better]\nrestart: never")
	w.manual = false
	w.call("2", "read", `{}`)
	w.text(w.attempt(), "ok")
	w.wantText("2", "ok")
}

func TestANewFilterIsToldToTheClient(t *testing.T) {
	w := session(t, "")
	w.reload("tool_filter: {deny: [write]}")
	w.wantToClient(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.call("1", "write", `{}`)
	w.wantError("1", engine.CodeDenied)
	w.reload("tool_filter: {deny: [write]}\ncall_timeout: 3")
	w.silent()
}

func TestANewRateHoldsForTheBucketsThereAre(t *testing.T) {
	w := session(t, "rate_limit: {calls: 2, per: 60}\nretry: {max_retries: 0}")
	for _, id := range []string{"1", "2"} {
		w.call(id, "read", `{"n":`+id+`}`)
		w.text(w.attempt(), "ok")
		w.wantText(id, "ok")
	}
	w.reload("rate_limit: {calls: 60, per: 60}\nretry: {max_retries: 0}")
	w.call("3", "read", `{"n":3}`)
	w.wantError("3", engine.CodeRateLimited) // a saved file is no way to a full bucket
	w.advance(time.Second)
	w.call("4", "read", `{"n":4}`)
	w.text(w.attempt(), "ok")
	w.wantText("4", "ok")
}

func TestCallsThatWaitForAPlaceGoOnOnceThereIsNoLimit(t *testing.T) {
	w := session(t, "max_concurrency: 1")
	w.call("1", "read", `{"n":1}`)
	first := w.attempt()
	w.call("2", "read", `{"n":2}`)
	w.quiet()
	w.reload("")
	w.text(w.attempt(), "second")
	w.wantText("2", "second")
	w.text(first, "first")
	w.wantText("1", "first")
}

func TestACallInFlightLearnsWhatItsToolDoesThoughTheConfigIsNew(t *testing.T) {
	const settings = "retry: {max_retries: 3, base_delay: 1s, jitter: 0}"
	w := newWorld(t, settings)
	w.send(hello)
	w.reply(w.request("initialize"), welcome)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.request("notifications/initialized")
	w.client = nil
	w.call("1", "write", `{}`)
	list, a := w.request("tools/list"), w.attempt()
	w.reload(settings)
	w.reply(list, tools)
	w.refuse(a, -32603)
	w.wantError("1", -32603)
	w.advance(time.Minute)
	w.quiet()
}
