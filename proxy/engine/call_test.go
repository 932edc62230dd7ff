package engine_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

const fast = "retry: {max_retries: 3, base_delay: 0.1, jitter: 0}\n"

func TestTransientErrorsAreRetriedAndOthersAreNot(t *testing.T) {
	for code, attempts := range map[int]int{
		-32603: 2, -32000: 2, -32003: 2,
		-32004: 1, -32602: 1, -32601: 1, -32700: 1, -1: 1, 429: 1,
	} {
		w := session(t, fast)
		w.call("1", "plain", `{}`)
		w.refuse(w.attempt(), code)
		w.advance(time.Second)
		if attempts == 1 {
			w.quiet()
			w.wantError("1", code)
			continue
		}
		w.text(w.attempt(), "done")
		w.wantText("1", "done")
	}
}

func TestTheLastErrorOfTheServerPassesVerbatim(t *testing.T) {
	w := session(t, "retry: {max_retries: 1, base_delay: 0.1}")
	w.call(`"é"`, "plain", `{}`)
	w.refuse(w.attempt(), -32000)
	w.advance(time.Second)
	a := w.attempt()
	w.say(`{"jsonrpc":"2.0", "error":{"code":-32603,"message":"b","data":{"n":[1, 2.50,9007199254740993]},"x":1},"id":` + idOf(a) + `}`)
	if got, want := w.client[0], `{"jsonrpc":"2.0", "error":{"code":-32603,"message":"b","data":{"n":[1, 2.50,9007199254740993]},"x":1},"id":"é"}`; got != want {
		t.Errorf("the client got %s, want %s", got, want)
	}
}

func TestTimeoutOfAReadIsCancelledAndRetried(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "read", `{}`)
	first := w.attempt()
	w.advance(2 * time.Second)
	cancelled := w.request("notifications/cancelled")
	if got := cancelled["params"].(map[string]any)["requestId"]; got != first["id"] {
		t.Errorf("request %v was cancelled, want %v", got, first["id"])
	}
	w.advance(time.Second)
	w.text(w.attempt(), "done")
	w.wantText("1", "done")
}

func TestTimeoutOfAnUnsafeToolIsNotRetriedAndSaysSo(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "write", `{}`)
	w.attempt()
	w.advance(time.Minute)
	data := w.wantError("1", engine.CodeTimeout)
	for name, want := range map[string]any{"mayHaveExecuted": "unknown", "endedBy": "unsafe", "delivery": "unknown", "kind": "timeout"} {
		if data[name] != want {
			t.Errorf("data.%s is %v, want %v", name, data[name], want)
		}
	}
	w.quiet() // neither a second execution nor a cancellation: the late answer is wanted
}

func TestAnUnknownToolCountsAsUnsafeOnceItWasSent(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "never_listed", `{}`)
	w.attempt()
	w.advance(time.Minute)
	w.wantError("1", engine.CodeTimeout)
	w.quiet()
}

func TestRetryUnsafeIsTheOnlyWayPastTheSafetyGate(t *testing.T) {
	rule := "call_timeout: 2\npolicy:\n  - {name: mine, when: 'tool.name == \"write\"', retry: true%s}\n"
	w := session(t, fast+replace(rule, ""))
	w.call("1", "write", `{}`)
	w.attempt()
	w.advance(time.Minute)
	w.quiet()
	w.wantError("1", engine.CodeTimeout)

	w = session(t, fast+replace(rule, ", retry_unsafe: true"))
	w.call("1", "write", `{}`)
	w.attempt()
	w.advance(3 * time.Second)
	w.text(w.attempt(), "done")
	w.wantText("1", "done")
}

func TestALateAnswerIsAdoptedWhileARetryWaits(t *testing.T) {
	w := session(t, "retry: {max_retries: 3, base_delay: 10, jitter: 0}\ncall_timeout: 2")
	w.call("1", "read", `{}`)
	first := w.attempt()
	w.advance(3 * time.Second)
	w.request("notifications/cancelled")
	w.text(first, "late")
	w.wantText("1", "late")
	w.advance(time.Minute)
	w.quiet()
	w.silent()
}

func TestALateAnswerIsAdoptedWhileARetryRuns(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "read", `{}`)
	first := w.attempt()
	w.advance(3 * time.Second)
	w.request("notifications/cancelled")
	second := w.attempt()
	w.text(first, "late")
	w.wantText("1", "late")
	if got := w.request("notifications/cancelled")["params"].(map[string]any)["requestId"]; got != second["id"] {
		t.Errorf("request %v was cancelled, want the retry %v", got, second["id"])
	}
	w.text(second, "too late")
	w.silent()
}

func TestALateAnswerIsKeptForTheRepeatAndGivenOnce(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "write", `{"a":1}`)
	first := w.attempt()
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.text(first, "late")
	w.silent()
	w.call("2", "write", `{ "a" : 1 }`)
	w.quiet()
	w.wantText("2", "late")
	w.call("3", "write", `{"a":1}`)
	w.attempt()
}

func TestARepeatOfAnUnsafeCallWaitsForTheOverdueAnswer(t *testing.T) {
	w := session(t, fast+"call_timeout: 2")
	w.call("1", "write", `{"a":1}`)
	first := w.attempt()
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
	w.call("2", "write", `{"a":1}`)
	w.advance(time.Second)
	w.quiet()
	w.text(first, "late")
	w.wantText("2", "late")

	w.call("3", "write", `{"a":2}`)
	w.attempt()
	w.advance(3 * time.Second)
	w.wantError("3", engine.CodeTimeout)
	w.call("4", "write", `{"a":2}`)
	w.advance(3 * time.Second)
	w.wantError("4", engine.CodeOutcomeUnknown)
	w.quiet()
}

func TestServerDeathDuringAnUnsafeCallLetsTheNextCallRunUnlessAKeyNamesIt(t *testing.T) {
	w := session(t, fast)
	w.call("1", "write", `{}`)
	w.attempt()
	w.die()
	data := w.wantError("1", engine.CodeUnavailable)
	if data["kind"] != "exit" || data["mayHaveExecuted"] != "unknown" {
		t.Errorf("data is %v", data)
	}
	w.call("2", "write", `{}`)
	w.revive()
	w.text(w.attempt(), "again")
	w.wantText("2", "again")

	key := `"_meta":{"idempotencyKey":"k"}`
	w.call("3", "write", `{}`, key)
	w.attempt()
	w.die()
	w.wantError("3", engine.CodeUnavailable)
	w.call("4", "write", `{"other":1}`, key)
	w.wantError("4", engine.CodeOutcomeUnknown)
	w.advance(301 * time.Second)
	w.call("5", "write", `{}`, key)
	w.revive()
	w.attempt()
}

func TestARetryAfterServerDeathReplaysTheHandshake(t *testing.T) {
	w := session(t, fast)
	w.call("1", "read", `{}`)
	w.attempt()
	w.die()
	w.advance(time.Second)
	w.revive()
	w.text(w.attempt(), "done")
	w.wantText("1", "done")
	w.silent()
}

func TestIdenticalCallsInFlightShareOneExecution(t *testing.T) {
	w := session(t, fast)
	w.call("1", "plain", `{"a":1,"b":[1.0]}`)
	w.call(`"1"`, "plain", `{"b":[1],"a":1}`)
	w.call("3", "plain", `{"a":2}`)
	a := w.attempt()
	w.attempt()
	w.quiet()
	w.text(a, "one")
	w.wantText("1", "one")
	w.wantText(`"1"`, "one")
	w.silent()
}

func TestCancellingTheFirstOfTwoIdenticalCallsLeavesTheOther(t *testing.T) {
	w := session(t, fast)
	w.call("1", "plain", `{}`)
	w.call("2", "plain", `{}`)
	a := w.attempt()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.quiet()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"r"}}`)
	if got := w.request("notifications/cancelled")["params"].(map[string]any); got["requestId"] != a["id"] || got["reason"] != "r" {
		t.Errorf("the server was told %v", got)
	}
	w.text(a, "late")
	w.silent()
	w.call("3", "plain", `{}`)
	w.wantText("3", "late") // the client never received it
}

func TestExplicitKeysNameAnOperationWhateverItsArguments(t *testing.T) {
	w := session(t, "")
	w.call("1", "write", `{"n":1,"_idempotency_key":"k"}`)
	a := w.attempt()
	if args := a["params"].(map[string]any)["arguments"].(map[string]any); len(args) != 1 {
		t.Errorf("the tool got %v", args)
	}
	w.text(a, "one")
	w.wantText("1", "one")
	w.call("2", "write", `{"n":2}`, `"_meta":{"idempotencyKey":"k"}`)
	w.wantText("2", "one")
	w.call("3", "plain", `{}`, `"_meta":{"idempotencyKey":"k"}`)
	w.attempt() // the same key on another tool is another operation
	w.advance(301 * time.Second)
	w.client = nil
	w.call("4", "write", `{"n":2}`, `"_meta":{"idempotencyKey":"k"}`)
	w.server = w.server[len(w.server)-1:]
	w.attempt()
}

func TestAConflictOfKeysIsRefusedIfPolicySaysSo(t *testing.T) {
	w := session(t, "policy: [{on_conflict: reject}]")
	key := `"_meta":{"idempotencyKey":"k"}`
	w.call("1", "write", `{"n":1}`, key)
	a := w.attempt()
	w.call("2", "write", `{"n":2}`, key)
	w.wantError("2", engine.CodeConflict)
	w.text(a, "one")
	w.wantText("1", "one")
	w.call("3", "write", `{"n":2}`, key)
	w.wantError("3", engine.CodeConflict)
	w.call("4", "write", `{"n":1}`, key)
	w.wantText("4", "one")
}

func TestCachedReadsAreDroppedByAWriteWhateverItComesTo(t *testing.T) {
	w := session(t, "cache: {tools: {read: 60}}\n"+fast+"call_timeout: 5")
	read := func(id, text string) {
		t.Helper()
		w.call(id, "read", `{}`)
		w.text(w.attempt(), text)
		w.wantText(id, text)
	}
	hit := func(id, text string) {
		t.Helper()
		w.call(id, "read", `{}`)
		w.quiet()
		w.wantText(id, text)
	}
	read("1", "old")
	hit("2", "old")
	w.call("3", "write", `{}`)
	w.refuse(w.attempt(), -32602)
	w.wantError("3", -32602)
	read("4", "new")
	hit("5", "new")
	w.call("6", "plain", `{}`) // may write too
	w.attempt()
	w.call("7", "read", `{}`) // begun while the write runs: must not outlive it
	a := w.attempt()
	w.text(a, "between")
	w.wantText("7", "between")
	w.advance(2 * time.Minute)
	w.client, w.server, w.tags = nil, nil, nil
	read("8", "after")
	w.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.client = nil
	w.call("9", "read", `{}`)
	w.request("tools/list")
	w.attempt()
}

func TestErrorsAreNeitherCachedNorKept(t *testing.T) {
	w := session(t, "cache: {tools: {read: 60}}\nidempotency_ttl: 60\nretry: {max_retries: 0}")
	w.call("1", "read", `{}`)
	w.reply(w.attempt(), `{"content":[],"isError":true}`)
	w.client = nil
	w.call("2", "read", `{}`)
	w.refuse(w.attempt(), -32603)
	w.client = nil
	w.call("3", "read", `{}`)
	w.text(w.attempt(), "ok")
	w.client = nil
	w.call("4", "read", `{}`)
	w.quiet()
}

func TestAStaleResultStandsInForAFailure(t *testing.T) {
	w := session(t, "cache: {tools: {read: 10}}\nretry: {max_retries: 0}\npolicy: [{stale_if_error: 1m}]\nmark_results: true")
	w.call("1", "read", `{}`)
	w.text(w.attempt(), "old")
	w.client = nil
	w.advance(20 * time.Second)
	w.call("2", "read", `{}`)
	w.refuse(w.attempt(), -32603)
	w.wantText("2", "old")
	w.advance(time.Minute)
	w.call("3", "read", `{}`)
	w.refuse(w.attempt(), -32603)
	w.wantError("3", -32603)
}

func TestBreakerOpensFailsFastAndLetsOneProbeThrough(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 2, cooldown_seconds: 10}")
	for _, id := range []string{"1", "2"} {
		w.call(id, "plain", `{"n":`+id+`}`)
		w.refuse(w.attempt(), -32000)
		w.wantError(id, -32000)
	}
	w.call("3", "plain", `{"n":3}`)
	w.quiet()
	if data := w.wantError("3", engine.CodeCircuitOpen); data["mayHaveExecuted"] != "no" {
		t.Errorf("data is %v", data)
	}
	w.advance(10 * time.Second)
	w.call("4", "plain", `{"n":4}`)
	probe := w.attempt()
	w.call("5", "plain", `{"n":5}`)
	w.wantError("5", engine.CodeCircuitOpen)
	w.text(probe, "ok")
	w.wantText("4", "ok")
	w.call("6", "plain", `{"n":6}`)
	w.attempt()
}

func TestACancelledProbeGivesItsPlaceBack(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncircuit_breaker: {failure_threshold: 1, cooldown_seconds: 10}")
	w.call("1", "plain", `{}`)
	w.refuse(w.attempt(), -32000)
	w.wantError("1", -32000)
	w.advance(10 * time.Second)
	w.call("2", "plain", `{"n":2}`)
	w.attempt()
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	w.request("notifications/cancelled")
	w.call("3", "plain", `{"n":3}`)
	w.attempt()
}

func TestNoRetryThatDoesNotFitTheDeadline(t *testing.T) {
	w := session(t, "retry: {max_retries: 5, base_delay: 4, jitter: 0}\ncall_timeout: 3\ntotal_timeout: 6")
	w.call("1", "read", `{}`)
	w.attempt()
	w.advance(3 * time.Second)
	if data := w.wantError("1", engine.CodeTimeout); data["endedBy"] != "deadline" {
		t.Errorf("data is %v", data)
	}
}

func TestTheRetryHintOfTheServerIsALowerBound(t *testing.T) {
	w := session(t, fast)
	w.call("1", "write", `{}`)
	a := w.attempt()
	w.say(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"error":{"code":-32023,"message":"slow down","data":{"retryAfterMs":2000}}}`)
	w.advance(1999 * time.Millisecond)
	w.quiet()
	w.advance(600 * time.Millisecond)
	w.text(w.attempt(), "done") // rejected, so even an unsafe tool may be called again
	w.wantText("1", "done")
}

func TestProgressCarriesAnAttemptOnAndMustRise(t *testing.T) {
	w := session(t, fast+"call_timeout: 2\ntotal_timeout: 4\nmax_call_time: 7")
	w.call("1", "read", `{}`, `"_meta":{"progressToken":"tok"}`)
	a := w.attempt()
	token := a["params"].(map[string]any)["_meta"].(map[string]any)["progressToken"]
	if token != a["id"] {
		t.Errorf("the progress token is %v, want our id %v", token, a["id"])
	}
	for _, n := range []string{"1", "2", "2", "3"} {
		w.advance(1500 * time.Millisecond)
		w.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + idOf(a) + `,"progress":` + n + `}}`)
	}
	if len(w.client) != 3 {
		t.Errorf("the client got %v, want three notifications", w.client)
	}
	w.client = nil
	w.advance(time.Second)
	w.wantError("1", engine.CodeTimeout)
}

func TestDeniedCallsAreNotSent(t *testing.T) {
	w := session(t, "policy: [{when: 'args.path.startsWith(\"/etc\")', deny: '\"not there\"'}]")
	w.call("1", "read", `{"path":"/etc/passwd"}`)
	w.quiet()
	w.wantError("1", engine.CodeDenied)
	w.call("2", "read", `{"path":"/tmp"}`)
	w.attempt()
}

func TestAForwardedKeyMakesARetrySafe(t *testing.T) {
	w := session(t, fast+"policy: [{when: 'tool.name == \"write\"', idempotency_key: args.order, forward_key: arguments.key}]\ncall_timeout: 2")
	w.call("1", "write", `{"order":"o1"}`)
	a := w.attempt()
	if got := a["params"].(map[string]any)["arguments"].(map[string]any)["key"]; got != "o1" {
		t.Errorf("the server got the key %v", got)
	}
	w.advance(2500 * time.Millisecond)
	w.request("notifications/cancelled")
	w.text(w.attempt(), "done")
	w.wantText("1", "done")
}
