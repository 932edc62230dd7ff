package compose

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestAServerThatJoinsIsGreetedAndToldWhenItIsThere(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	if err := w.rearrange("", "alpha", "new", "beta"); err != nil {
		t.Fatal(err)
	}
	w.quiet()
	w.answers(2, "initialize", greeting(`{"tools":{}}`))
	w.gets(2, "notifications/initialized")
	w.told("notifications/tools/list_changed")
	w.quiet() // it has nothing else
	w.ask("1", "tools/list", "")
	for i, tool := range []string{"a", "b", "n"} {
		w.answers(i, "tools/list", `{"tools":[{"name":"`+tool+`"}]}`)
	}
	if got := w.listed("1"); got != "alpha__a new__n beta__b" {
		t.Errorf("listed: %s", got)
	}
}

func TestAServerThatIsRemovedBeforeItsListIsThereIsNotInIt(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.ask("1", "tools/list", "")
	w.answers(0, "tools/list", `{"tools":[{"name":"a"}]}`)
	if err := w.rearrange("", "alpha"); err != nil {
		t.Fatal(err)
	}
	w.answers(1, "tools/list", `{"tools":[{"name":"b"}],"nextCursor":"more"}`)
	if got := w.listed("1"); got != "alpha__a" {
		t.Errorf("listed: %s", got)
	}
}

func TestAServerThatIsRemovedIsNotKeptByWhatNeverEnds(t *testing.T) {
	w := newWorld(t, "defaults: {call_timeout: 600, total_timeout: 700, max_call_time: 900}", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	w.ask("1", "tools/call", `{"name":"beta__b"}`)
	w.gets(1, "tools/call")
	w.ask("2", "prompts/get", `{"name":"beta__p"}`)
	w.gets(1, "prompts/get")
	if err := w.rearrange("", "alpha"); err != nil {
		t.Fatal(err)
	}
	w.advance(15 * time.Minute)
	for _, id := range []string{"1", "2"} {
		if m := w.answered(id); m.Error == nil {
			t.Errorf("got %s", m.raw)
		}
	}
	w.step(0, engine.Event{Kind: engine.ClientEOF})
	if !w.ended {
		t.Error("the session does not end")
	}
}

func TestNamesThatCannotStandTogetherChangeNothing(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta")
	w.greeted()
	w.knows(`{"name":"a"}`, `{"name":"b"}`)
	if err := w.rearrange("", "alpha__x", "alpha"); err == nil || !strings.Contains(err.Error(), "alpha__") {
		t.Fatalf("got %v", err)
	}
	w.ask("1", "tools/call", `{"name":"beta__b"}`)
	w.answers(1, "tools/call", `{"content":[]}`)
	w.answered("1")
	w.quiet()
}

func TestAResourceOfSeveralServersIsAskedOfOneAfterTheOther(t *testing.T) {
	w := newWorld(t, "", "alpha", "beta", "gamma")
	w.greeted()
	for _, id := range []string{"1", "2"} {
		w.ask(id, "resources/list", "")
		for i, uri := range []string{"x://both", "x://both", "x://gamma"} {
			w.answers(i, "resources/list", `{"resources":[{"uri":"`+uri+`","name":"n"}]}`)
		}
		if m := w.answered(id); strings.Count(string(m.Result), "x://both") != 1 {
			t.Errorf("got %s", m.raw)
		}
	}
	logged := 0
	for _, r := range w.logs {
		if r.Event == "resource_shared" && r.Server == "beta" && strings.Contains(r.Detail, `"alpha"`) {
			logged++
		}
	}
	if logged != 1 {
		t.Errorf("it was logged %d times", logged)
	}
	w.ask("3", "resources/read", `{"uri":"x://both"}`)
	w.answers(0, "resources/read", `{"contents":[1]}`)
	w.answered("3")
	w.ask("4", "resources/read", `{"uri":"x://both"}`)
	w.refuses(0, "resources/read", codeNoResource)
	w.answers(1, "resources/read", `{"contents":[2]}`)
	if m := w.answered("4"); string(m.Result) != `{"contents":[2]}` {
		t.Errorf("got %s", m.raw)
	}
	w.ask("5", "resources/read", `{"uri":"x://both"}`)
	w.refuses(0, "resources/read", codeNoResource)
	w.refuses(1, "resources/read", codeNoResource)
	if m := w.answered("5"); m.Error == nil || m.Error.Code != codeNoResource {
		t.Errorf("got %s", m.raw)
	}
	w.idle(2)
	if err := w.rearrange("", "beta", "gamma"); err != nil {
		t.Fatal(err)
	}
	w.ask("6", "resources/read", `{"uri":"x://both"}`)
	w.answers(1, "resources/read", `{"contents":[3]}`)
	w.answered("6")
}
