package engine_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestB21EveryIDComesBackAsItWasWritten(t *testing.T) {
	w := session(t, "")
	ids := []string{
		`9007199254740992`, `9007199254740993`, `-9223372036854775808`, `9223372036854775807`, `18446744073709551616`,
		`0`, `1`, `1.0`, `1e0`, `"1"`, `""`, `"init-1"`, `"\u0061"`, `"\"\\\/"`, `"é 日本"`, `-0`,
	}
	for i, id := range ids {
		w.call(id, "plain", `{"n":`+strconv.Itoa(i)+`}`)
		w.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
	}
	var got []string
	for len(w.server) > 0 {
		m := decode(t, w.server[0])
		w.server = w.server[1:]
		w.reply(m, `{}`)
		got, w.client = append(got, w.client...), nil
	}
	seen := map[string]int{}
	for _, frame := range got {
		id := strings.TrimSuffix(strings.TrimPrefix(frame, `{"jsonrpc":"2.0","id":`), `,"result":{}}`)
		seen[id]++
	}
	for _, id := range ids {
		if seen[id] != 2 {
			t.Errorf("id %s came back %d times, want twice", id, seen[id])
		}
	}
}

func TestB21ACancelHitsOnlyItsOwnCall(t *testing.T) {
	w := session(t, "")
	w.call("9007199254740992", "plain", `{"n":1}`)
	w.call("9007199254740993", "plain", `{"n":2}`)
	first, second := w.attempt(), w.attempt()
	w.cancel("9007199254740993")
	if got := w.request("notifications/cancelled")["params"].(map[string]any)["requestId"]; got != second["id"] {
		t.Errorf("our request %v was cancelled, want %v", got, second["id"])
	}
	w.text(second, "two")
	w.silent()
	w.text(first, "one")
	w.wantText("9007199254740992", "one")
	w.call("7", "plain", `{"n":3}`)
	a := w.attempt()
	w.cancel(`"7"`)
	w.quiet()
	w.text(a, "three")
	w.wantText("7", "three")
}

// The server is shown small integers of ours, whatever the client's id is, so one that truncates or rounds ids still works.
func TestB22TheServerSeesSmallIntegers(t *testing.T) {
	w := session(t, "")
	w.call("1774232524389", "plain", `{}`)
	a := w.attempt()
	if id := idOf(a); len(id) > 4 {
		t.Errorf("the server was given the id %s", id)
	}
	w.text(a, "ok")
	w.wantText("1774232524389", "ok")
}

func TestB23B24AnswersUnderAReshapedIDAreKnown(t *testing.T) {
	w := session(t, "")
	for i, shape := range []string{"%s.0", "%se0", `"%s"`, "%s.00", "%s0e-1"} {
		id := `"call ` + string(rune('a'+i)) + `"`
		w.call(id, "plain", `{}`)
		w.say(`{"jsonrpc":"2.0","id":` + replace(shape, idOf(w.attempt())) + `,"result":{"content":[{"type":"text","text":"ok"}]}}`)
		w.wantText(id, "ok")
	}
}

func TestB24AnswersUnderAForeignIDEndInATimeout(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncall_timeout: 2")
	w.call(`"init-1"`, "plain", `{}`)
	w.attempt()
	for _, id := range []string{`0`, `-3`, `3.5`, `"init-1"`, `99999`, `1e300`, `"007"`} {
		w.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	}
	w.silent()
	w.advance(3 * time.Second)
	w.wantError(`"init-1"`, engine.CodeTimeout)
}

func TestB26B27AnswersWithoutAnIDAreDroppedAndLogged(t *testing.T) {
	w := session(t, "retry: {max_retries: 0}\ncall_timeout: 2\ncircuit_breaker: {failure_threshold: 1}")
	w.call("0", "plain", `{"n":0}`)
	w.call("1", "plain", `{"n":1}`)
	a := w.attempt()
	w.attempt()
	w.say(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"lost"}}`)
	w.say(`{"jsonrpc":"2.0","error":{"code":-32603,"message":"lost"}}`)
	w.say(`{"jsonrpc":"2.0","id":null,"result":{}}`)
	w.say(`{"jsonrpc":"2.0","id":0,"result":{}}`)
	w.silent()
	if w.logged("stray_answer") != 4 || w.logged("circuit_breaker_state_change") != 0 {
		t.Errorf("the log is %v", w.logs)
	}
	w.text(a, "ok")
	w.wantText("0", "ok")
	w.advance(3 * time.Second)
	w.wantError("1", engine.CodeTimeout)
}

func TestB29OneIDForTwoCallsInFlight(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{"n":1}`)
	w.call("1", "plain", `{"n":2}`)
	first, second := w.attempt(), w.attempt()
	w.text(second, "two")
	w.wantText("1", "two")
	w.text(first, "one")
	w.wantText("1", "one")
	w.silent()
}

func TestB29OneIDForACallAndAnotherRequest(t *testing.T) {
	w := session(t, "")
	w.call("1", "plain", `{}`)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	a, list := w.attempt(), w.request("resources/list")
	w.reply(list, `{"resources":[]}`)
	w.wantToClient(`{"jsonrpc":"2.0","id":1,"result":{"resources":[]}}`)
	w.text(a, "ok")
	w.wantText("1", "ok")
}

func TestB31RequestsOfBothSidesUnderOneID(t *testing.T) {
	w := session(t, "")
	for round := range 2 {
		w.call("1", "plain", `{}`)
		a := w.attempt()
		w.say(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"method":"sampling/createMessage","params":{"n":1}}`)
		w.say(`{"jsonrpc":"2.0","id":"1","method":"roots/list"}`)
		sampling, roots := decode(t, w.client[0]), decode(t, w.client[1])
		w.client = nil
		w.send(`{"jsonrpc":"2.0","id":` + idOf(roots) + `,"error":{"code":-1,"message":"no"}}`)
		w.wantToServer(`{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"no"}}`)
		w.send(`{"jsonrpc":"2.0","id":` + idOf(sampling) + `,"result":{"x":1}}`)
		w.wantToServer(`{"jsonrpc":"2.0","id":` + idOf(a) + `,"result":{"x":1}}`)
		w.send(`{"jsonrpc":"2.0","id":` + idOf(sampling) + `,"result":{"x":1}}`) // a second answer
		w.quiet()
		w.text(a, "ok")
		w.wantText("1", "ok")
		if round == 0 { // a new life of the server begins its ids anew: an answer to the old life's question must not reach it
			w.say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
			old := decode(t, w.client[0])
			w.client = nil
			w.die()
			if got := decode(t, w.client[0]); got["method"] != "notifications/cancelled" || got["params"].(map[string]any)["requestId"] != old["id"] {
				t.Errorf("the client was told %v", got)
			}
			w.client = nil
			w.call("2", "read", `{}`)
			w.revive()
			w.text(w.attempt(), "ok")
			w.wantText("2", "ok")
			w.say(`{"jsonrpc":"2.0","id":7,"method":"roots/list"}`)
			w.client = nil
			w.send(`{"jsonrpc":"2.0","id":` + idOf(old) + `,"result":{"roots":[]}}`)
			w.quiet()
		}
	}
}

func TestB33ReplayedCachedAndJoinedAnswersCarryTheCallersID(t *testing.T) {
	w := session(t, "cache: {tools: {read: 60}}")
	w.call("5", "read", `{"n":1}`)
	w.text(w.attempt(), "one")
	w.wantText("5", "one")
	w.call(`"x"`, "read", `{"n":1}`)
	w.wantText(`"x"`, "one")
	w.call("8", "read", `{"n":2}`)
	w.call("9", "read", `{"n":2}`)
	w.text(w.attempt(), "two")
	w.wantText("8", "two")
	w.wantText("9", "two")
	w.quiet()
}

func TestB34ResultsKeepTheirDigitsFromTheCacheToo(t *testing.T) {
	const result = `{"content":[],"structuredContent":{"a":1915883588174806058,"b":[12345678901234567890, 0.1, 1.0, 1E5, -0]}}`
	w := session(t, "cache: {tools: {read: 60}}")
	for _, id := range []string{"1", "2"} {
		w.call(id, "read", `{}`)
		if id == "1" {
			w.reply(w.attempt(), result)
		}
		w.wantToClient(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
	}
}

func TestMalformedAnswersOfTheClientDoNotLookLikeAnswersToIt(t *testing.T) {
	w := session(t, "")
	w.call("5", "plain", `{}`)
	a := w.attempt()
	w.send(`{"jsonrpc":"2.0","id":5,"result":{},"error":{}}`)
	w.wantError("null", -32600)
	w.text(a, "ok")
	w.wantText("5", "ok")
}
