//go:build unix

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// A crossing is an engine that passes every frame on to the other side and restarts nothing. It writes down what happens.
type crossing struct {
	events chan engine.Event
	gen    uint64
	up     bool
	ended  bool
	held   [][]byte
	tag    int64
	quiet  atomic.Bool // frames are neither copied nor written down
}

func newCrossing() *crossing { return &crossing{events: make(chan engine.Event, 1<<16)} }

func (c *crossing) NextWake() (time.Time, bool) { return time.Time{}, false }

func (c *crossing) Step(now time.Time, ev engine.Event) []engine.Action {
	if !c.quiet.Load() || ev.Kind != engine.FromClient && ev.Kind != engine.FromServer {
		ev.Frame = bytes.Clone(ev.Frame)
		c.events <- ev
	}
	switch ev.Kind {
	case engine.Tick:
		if c.gen == 0 {
			c.gen = 1
			return []engine.Action{{Kind: engine.StartServer, Gen: 1}}
		}
	case engine.FromClient:
		if !c.up {
			c.held = append(c.held, ev.Frame)
			return nil
		}
		if tag, ok := strings.CutPrefix(string(ev.Frame), "take back "); ok {
			n, _ := strconv.ParseInt(tag, 10, 64)
			return []engine.Action{{Kind: engine.TakeBack, Gen: c.gen, Tag: n}}
		}
		return []engine.Action{c.toServer(ev.Frame)}
	case engine.FromServer:
		return []engine.Action{{Kind: engine.ToClient, Data: [][]byte{ev.Frame}}}
	case engine.ServerUp:
		c.up = true
		var actions []engine.Action
		for _, f := range c.held {
			actions = append(actions, c.toServer(f))
		}
		return actions
	case engine.ClientEOF, engine.Terminate, engine.ServerDown:
		if !c.ended {
			c.ended = true
			return []engine.Action{{Kind: engine.Finish}}
		}
	}
	return nil
}

func (c *crossing) toServer(frame []byte) engine.Action {
	c.tag++
	return engine.Action{Kind: engine.ToServer, Gen: c.gen, Data: [][]byte{frame}, Tag: c.tag}
}

// next returns the next event of a kind.
func (c *crossing) next(t *testing.T, kind engine.EventKind) engine.Event {
	t.Helper()
	for {
		if ev := wait(t, c.events, fmt.Sprintf("event %d", kind)); ev.Kind == kind {
			return ev
		}
	}
}

// A bench is a session under test: the client's ends of its pipes, its engine and its log.
type bench struct {
	t      *testing.T
	engine *crossing
	in     io.WriteCloser
	out    io.Reader
	stop   chan struct{}
	done   chan struct{}
	log    *syncBuffer
}

// runServer starts a session over real pipes with a server.
func runServer(t *testing.T, server *schema.Server) *bench {
	t.Helper()
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	b := runOver(t, server, inR, outW)
	b.in, b.out = inW, outR
	go func() {
		<-b.done
		outW.Close()
	}()
	return b
}

func runOver(t *testing.T, server *schema.Server, in io.Reader, out io.Writer) *bench {
	t.Helper()
	if server.Name == "" {
		server.Name = "s"
	}
	if server.MaxMessageBytes == 0 {
		server.MaxMessageBytes = 64 << 20
	}
	b := &bench{t: t, engine: newCrossing(), stop: make(chan struct{}), done: make(chan struct{}), log: &syncBuffer{}}
	l := newLogger(b.log, slog.LevelInfo, &jsonFormatter{})
	s := newSession(l, in, out, server)
	s.engine = b.engine
	go func() {
		defer close(b.done)
		s.serve(b.stop)
		l.flush(time.Minute)
	}()
	t.Cleanup(func() {
		b.terminate()
		wait(t, b.done, "the end of the session")
	})
	return b
}

func (b *bench) terminate() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
}

// playing is a server that is the test binary in a role.
func playing(role string) *schema.Server {
	return &schema.Server{Command: os.Args[0], Env: map[string]string{playEnv: role}}
}

func (b *bench) send(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(b.in, line+"\n"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// finish closes the client's end and returns all output.
func (b *bench) finish() string {
	b.t.Helper()
	b.in.Close()
	read := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(b.out)
		read <- string(all)
	}()
	wait(b.t, b.done, "the end of the session")
	return wait(b.t, read, "the end of the output")
}

func TestFramesPassInBothDirections(t *testing.T) {
	b := runServer(t, playing("echo"))
	b.send(`{"a":1}`, "", `{"b":"`+strings.Repeat("x", 300<<10)+`"}`, `{"c":3}`)
	for range 3 {
		b.engine.next(t, engine.FromServer)
	}
	if got, want := b.finish(), `{"a":1}`+"\n"+`{"b":"`+strings.Repeat("x", 300<<10)+`"}`+"\n"+`{"c":3}`+"\n"; got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// TestAnyReaderAndWriterWillDo uses in-memory pipes instead of files.
func TestAnyReaderAndWriterWillDo(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := runOver(t, playing("echo"), inR, outW)
	b.in, b.out = inW, outR
	go func() {
		<-b.done
		outW.Close()
	}()
	read := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(outR)
		read <- string(all)
	}()
	var want strings.Builder
	for i := range 500 {
		line := fmt.Sprintf(`{"n":%d,"x":"%s"}`, i, strings.Repeat("y", i*7))
		b.send(line)
		want.WriteString(line + "\n")
		b.engine.next(t, engine.FromServer)
	}
	inW.Close()
	wait(t, b.done, "the end of the session")
	if got := wait(t, read, "the output"); got != want.String() {
		t.Errorf("got %d bytes, want %d", len(got), want.Len())
	}
}

func TestOverlongFramesAreReportedAndTheNextPasses(t *testing.T) {
	server := playing("echo")
	server.MaxMessageBytes = 1 << 20
	b := runServer(t, server)
	b.send(`{"id":5,"x":"`+strings.Repeat("x", 2<<20)+`","last":1}`, `{"id":6}`)
	ev := b.engine.next(t, engine.ClientTooBig)
	if ev.Size != int64(len(`{"id":5,"x":"`)+2<<20+len(`","last":1}`)) || !bytes.HasPrefix(ev.Frame, []byte(`{"id":5,`)) || !bytes.HasSuffix(ev.Tail, []byte(`"last":1}`)) {
		t.Errorf("size %d, head %.20q, tail of %d bytes", ev.Size, ev.Frame, len(ev.Tail))
	}
	if ev := b.engine.next(t, engine.FromServer); string(ev.Frame) != `{"id":6}` {
		t.Errorf("got %q", ev.Frame)
	}
}

// TestASlowClientStopsTheServerFromBeingRead has a client that reads nothing while the server echoes more than may wait.
func TestASlowClientStopsTheServerFromBeingRead(t *testing.T) {
	b := runServer(t, playing("echo"))
	line := `"` + strings.Repeat("x", 1<<20) + `"`
	const n = 40
	go func() {
		for range n {
			io.WriteString(b.in, line+"\n")
		}
	}()
	for range clientHigh >> 20 {
		b.engine.next(t, engine.FromServer)
	}
	// What more can come until reading stops is a frame or two; all of it must arrive once the client reads.
	all := make(chan int, 1)
	go func() {
		n, _ := io.Copy(io.Discard, io.LimitReader(b.out, int64(n*(len(line)+1))))
		all <- int(n)
	}()
	got := wait(t, all, "the output")
	if got != n*(len(line)+1) {
		t.Errorf("got %d bytes", got)
	}
}

func TestTheEndOfTheClientsInputIsSeenThoughItIsNotRead(t *testing.T) {
	server := playing("deaf")
	server.MaxMessageBytes = 1 << 20
	b := runServer(t, server)
	b.engine.next(t, engine.ServerUp)
	go func() {
		line := `"` + strings.Repeat("x", 1<<20-2) + `"` + "\n"
		for {
			if _, err := io.WriteString(b.in, line); err != nil {
				return
			}
		}
	}()
	for range (serverHigh + server.MaxMessageBytes) >> 20 {
		b.engine.next(t, engine.FromClient)
	}
	b.in.Close()
	b.engine.next(t, engine.ClientEOF)
	wait(t, b.done, "the end of the session")
}

func TestTheSessionEndsWhenTheClientTakesNoMoreOutput(t *testing.T) {
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	outR.Close()
	b := runOver(t, playing("echo"), inR, outW)
	b.in = inW
	b.send(`{"a":1}`)
	b.engine.next(t, engine.ClientEOF)
	wait(t, b.done, "the end of the session")
}

func TestOutputIsBlockingAgainAtTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	before := blocking(t, w) // makes it so
	inR, inW := pipe(t)
	b := runOver(t, playing("echo"), inR, w)
	b.engine.next(t, engine.ServerUp)
	inW.Close()
	wait(t, b.done, "the end of the session")
	if after := isBlocking(t, w); !before || !after {
		t.Errorf("blocking before: %v, after: %v", before, after)
	}
}
