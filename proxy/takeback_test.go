//go:build unix

package proxy

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

func TestWhatAServerHasNotBegunToReadCanBeTakenBack(t *testing.T) {
	b := runServer(t, playing("deaf"))
	b.engine.next(t, engine.FromServer)
	b.send(`"` + strings.Repeat("x", 8<<20) + `"`) // frame 1 fills the pipe, and more
	b.send(`"second"`)
	for _, tt := range []struct {
		tag   int64
		taken bool
	}{{1, false}, {2, true}, {2, false}, {3, false}} {
		b.send("take back " + string(rune('0'+tt.tag)))
		if ev := b.engine.next(t, engine.TakenBack); ev.Gen != 1 || ev.Tag != tt.tag || ev.Taken != tt.taken {
			t.Errorf("of frame %d came %+v", tt.tag, ev)
		}
	}
	b.terminate()
	wait(t, b.done, "the end of the session")
}
