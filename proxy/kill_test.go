//go:build unix

package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// TestKillTakesAServersTime has the clock of the bubble say how long a server that does not end is waited for.
func TestKillTakesAServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const until = 10 * time.Millisecond
		kill := make(chan struct{})
		c := &child{link: &link{session: &session{kill: kill}}, exited: make(chan struct{}), hurrying: make(chan struct{})}
		time.AfterFunc(until, func() { close(kill) })
		began := time.Now()
		for _, step := range []string{"asked to end", "terminated"} {
			if c.exitsWithin(exitGrace, exitGraceHurry) {
				t.Errorf("%s: it has ended", step)
			}
			if took := time.Since(began); took != until {
				t.Errorf("%s: it was waited for until %s, want %s", step, took, until)
			}
		}
		close(c.exited)
		if !c.exitsWithin(0, 0) {
			t.Error("it has ended, and that is not seen")
		}
	})
}

func TestKillIsForTheSessionThatItWasGivenFor(t *testing.T) {
	kill := make(chan struct{})
	server, compiled := load(t, oneServer, flaky.Script{Faults: flaky.Faults{IgnoreEOF: true, IgnoreTerm: true}})
	p, err := New(Options{Server: server, Policy: compiled, Stderr: &syncBuffer{}, Kill: kill, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, p)
	c.initialize(t)
	for _, s := range p.running.all() {
		if s.kill != kill {
			t.Error("the session does not know of it")
		}
	}
	close(kill)
	select { // as long as the session is not ending, it means nothing
	case err := <-c.served:
		t.Fatalf("the session ended: %v", err)
	default:
	}
	c.send(`{"jsonrpc":"2.0","id":"still","method":"ping"}`)
	if m := c.answer(t); string(m.ID) != `"still"` {
		t.Errorf("the answer is to %s", m.ID)
	}
	c.cancel()
	wait(t, c.served, "the end of the session")
}
