package proxy

import (
	"cmp"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bentabol/mcp-retry/proxy/compose"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

const (
	clientHigh = 8 << 20  // bytes that wait for the client before the server is no longer read; half of it, and it is again
	serverHigh = 64 << 20 // bytes that wait for the server, beyond one frame of the greatest size, before the client is no longer read

	flushFrames = 16 // frames of one read after which what came of them is sent: the other side works on it while we go on

	// How often to look whether a client that has closed its output still takes ours.
	drainLook = 500 * time.Millisecond

	// How long the last output may sit untouched by the client before it is given up.
	flushStall      = 5 * time.Second
	flushStallHurry = time.Second // told to end: whoever told us kills us two seconds later
)

// stepper is the engine, as far as the shell is concerned.
type stepper interface {
	Step(now time.Time, ev engine.Event) []engine.Action
	NextWake() (time.Time, bool)
}

// A session connects an engine with a client, a server process and time; or a board with several servers, each of which has
// an engine there.
type session struct {
	linked atomic.Pointer[[]*link] // see links
	log    *logger
	client *outbox
	input  source
	memory releaser
	done   chan struct{}   // closed when the engine has finished
	kill   <-chan struct{} // closed when there is no more time for servers to end; nil = never

	makers  *makers             // of the engines of servers that a changed config adds
	watch   *watch              // nil = no config is watched
	removed func(server string) // nil = nobody is told
	inEnded atomic.Bool         // the client will send no more

	mu         sync.Mutex
	engine     stepper        // of the only server
	board      *compose.Board // of several; nil = there is only one
	alarm      alarm
	clock      clock
	takenBack  []takenBack
	terminated bool // there is need to hurry
	finished   bool
}

// A link is the way to one server.
type link struct {
	session *session
	index   int // among the session's servers
	server  *schema.Server
	launch  *schema.Server        // how it is started since the last reload; nil = as server says
	engine  *engine.Engine        // for those who look for a fault
	retired bool                  // a reload has removed it
	child   atomic.Pointer[child] // the last one that was started; nil before the first
}

// newSession returns a session between a client and servers, for which an engine or a board must be set.
func newSession(log *logger, in io.Reader, out io.Writer, servers ...*schema.Server) *session {
	s := &session{log: log, input: newSource(in), client: newOutbox(out), done: make(chan struct{})}
	var links []*link
	for i, server := range servers {
		links = append(links, &link{session: s, index: i, server: server})
	}
	s.linked.Store(&links)
	return s
}

// links are the ways to the servers, by their index; there may be more of them at the next look.
func (s *session) links() []*link { return *s.linked.Load() }

// serve runs the session to its end.
func (s *session) serve(stop <-chan struct{}) {
	s.client.high = clientHigh
	s.client.drained = s.resume
	s.client.broken = func(error) { s.clientGone() }
	tick := func() { s.deliver(s.links()[0], engine.Event{Kind: engine.Tick}) }
	s.alarm.ring = tick
	s.memory.letGo = tick // what a Step returned is valid until the next, and so are the frames in it

	tick()
	defer afterStart()()
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer s.input.close()
		s.readClient()
	}()
	select {
	case <-s.done:
	case <-stop:
		s.terminate()
		<-s.done
	}
	s.alarm.stop()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.endChildren(stop)
	}()
	s.flushClient(stop)
	<-ended
	s.client.abandon()
	s.input.finish()
	if s.input.interruptible() {
		<-read
	}
}

// flushClient waits until the client has its output.
func (s *session) flushClient(stop <-chan struct{}) {
	stall := flushStall
	if !s.told() {
		if s.client.waitEmpty(stall, stop) || !s.stopped(stop) {
			return
		}
	}
	s.client.waitEmpty(flushStallHurry, nil)
}

// endChildren stops the server processes, all at once, and waits until they are gone.
func (s *session) endChildren(stop <-chan struct{}) {
	told := s.told()
	for _, l := range s.links() {
		if c := l.child.Load(); c != nil {
			c.stop(told)
		}
	}
	for _, l := range s.links() {
		c := l.child.Load()
		if c == nil {
			continue
		}
		select {
		case <-c.gone:
		case <-stop:
			for _, other := range s.links() {
				if c := other.child.Load(); c != nil {
					c.stop(true)
				}
			}
			<-c.gone
		}
	}
}

// told reports whether we were told to end.
func (s *session) told() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terminated
}

func (s *session) stopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// terminate tells the engine to end.
func (s *session) terminate() {
	s.mu.Lock()
	s.terminateLocked()
	s.mu.Unlock()
	s.flush()
}

func (s *session) terminateLocked() {
	if !s.terminated {
		s.terminated = true
		s.step(s.links()[0], engine.Event{Kind: engine.Terminate}, nil)
	}
}

// clientGone ends the session because the client takes no more output.
func (s *session) clientGone() {
	s.mu.Lock()
	s.step(s.links()[0], engine.Event{Kind: engine.ClientEOF}, nil)
	s.terminateLocked()
	s.mu.Unlock()
	s.flush()
}

// deliver has the engine take in an event, and sends what comes of it on its way. The link says which server it is of, if it
// is one of a server.
func (s *session) deliver(l *link, ev engine.Event) {
	s.mu.Lock()
	s.step(l, ev, nil)
	s.mu.Unlock()
	s.flush()
}

// feed has the engine take in a frame. What comes of it is sent by the reader's next Read, or if it becomes much.
func (s *session) feed(l *link, ev engine.Event) {
	var keep []byte
	if ev.Owned {
		keep = ev.Frame
	}
	s.mu.Lock()
	s.step(l, ev, keep)
	s.mu.Unlock()
	s.memory.passed(len(ev.Frame))
}

// step has the engine take in an event and carries out its actions. The lock is held.
func (s *session) step(l *link, ev engine.Event, keep []byte) {
	now := s.clock.now()
	if s.finished {
		if ev.Kind == engine.ServerDown && !ev.Spawn {
			// The engine is at its end before the server is.
			s.log.record(now, &engine.Record{Event: "server_exit", Server: l.server.Name, Attempt: int(ev.Gen), Detail: ev.Detail})
		}
		return
	}
	if s.board != nil {
		s.stepBoard(now, l, ev, keep)
		return
	}
	actions := s.engine.Step(now, ev)
	for i := range actions {
		s.perform(now, l, &actions[i], keep)
	}
	s.tellTakenBack()
	if at, ok := s.engine.NextWake(); ok && !s.finished {
		s.alarm.set(now, at)
	}
}

// stepBoard is step for several servers.
func (s *session) stepBoard(now time.Time, l *link, ev engine.Event, keep []byte) {
	s.carryOut(now, s.board.Step(now, l.index, ev), keep)
}

// carryOut carries out what a board wants done.
func (s *session) carryOut(now time.Time, actions []compose.Action, keep []byte) {
	links := s.links()
	for i := range actions {
		s.perform(now, links[actions[i].Server], &actions[i].Action, keep)
	}
	s.tellTakenBack()
	if at, ok := s.board.NextWake(); ok && !s.finished {
		s.alarm.set(now, at)
	}
}

// perform carries out one action. It does not block.
func (s *session) perform(now time.Time, l *link, a *engine.Action, keep []byte) {
	switch a.Kind {
	case engine.ToClient:
		s.client.add(a.Data, 0, keep)
	case engine.ToServer:
		if c := l.child.Load(); c != nil && c.gen == a.Gen {
			c.stdin.add(a.Data, a.Tag, keep)
		}
	case engine.TakeBack:
		s.takeBack(l, a, keep)
	case engine.StartServer:
		l.child.Store(startChild(l, cmp.Or(l.launch, l.server), a.Gen))
	case engine.StopServer:
		if c := l.child.Load(); c != nil && c.gen == a.Gen {
			c.stop(a.Hurry)
		}
		s.tellRemoved(l)
	case engine.Log:
		a.Record.Scope = s.discreet(a.Record.Scope)
		s.log.record(now, a.Record)
	case engine.Finish:
		s.finished = true
		s.terminated = s.terminated || a.Hurry
		close(s.done)
	}
}

// flush sends what was gathered on its way. The lock is not held: the write wakes the other side, whose answer would find
// it taken.
func (s *session) flush() {
	s.client.flush()
	for _, l := range s.links() {
		if c := l.child.Load(); c != nil {
			c.stdin.flush()
		}
	}
}

// resume wakes readers that wait for an outbox to drain. It is called with the outbox's lock held, and takes none.
func (s *session) resume() {
	s.memory.passed(largeFrame)
	s.input.kick()
	for _, l := range s.links() {
		if c := l.child.Load(); c != nil {
			c.kick()
		}
	}
}

// readClient feeds the client's frames to the engine until there are no more.
func (s *session) readClient() {
	in := &inlet{session: s, source: s.input, full: s.fullForClient}
	s.read(s.links()[0], in, s.maxFrame(), engine.Event{Kind: engine.FromClient}, engine.ClientTooBig)
	s.inEnded.Store(true)
	s.deliver(s.links()[0], engine.Event{Kind: engine.ClientEOF})
	s.watchDraining()
}

// watchDraining ends the session early if the client, which will send no more, turns out to take no more either: it has died, and
// the calls in flight need not finish for nobody.
func (s *session) watchDraining() {
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for !s.client.deaf() {
		select {
		case <-s.done:
			return
		case <-look.C:
		}
	}
	s.clientGone()
}

// maxFrame is the size of the largest frame that the client may send: it is not known yet which server it is for.
func (s *session) maxFrame() (most int64) {
	for _, l := range s.links() {
		most = max(most, l.server.MaxMessageBytes)
	}
	return most
}

// fullForClient says whether so much is waiting that the client is not read.
func (s *session) fullForClient() bool {
	limit := serverHigh + s.maxFrame()
	if s.client.queued.Load() > limit {
		return true
	}
	for _, l := range s.links() {
		if c := l.child.Load(); c != nil && c.stdin.queued.Load() > limit {
			return true
		}
	}
	return false
}

// fullForServer says whether so much is waiting that the server is not read.
func (s *session) fullForServer() bool { return s.client.queued.Load() > clientHigh }
