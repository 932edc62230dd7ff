package proxy

import (
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// Times of a server's end.
const (
	exitGrace      = 1500 * time.Millisecond // from the end of its stdin to TERM
	exitGraceHurry = 500 * time.Millisecond
	termGrace      = 400 * time.Millisecond // from TERM to KILL
	killGrace      = time.Second            // from KILL to giving up on a process that even the system cannot end
	muteGrace      = 100 * time.Millisecond // from the end of its stdout, or ours of its stdin, to our ending it
	drainGrace     = 500 * time.Millisecond // for reading what it left in its stdout and stderr, if the end of that cannot be told
	drainPatience  = 10 * time.Second       // the same if it can, and only the machine may be slow
	groupPoll      = 10 * time.Millisecond  // between looks at what is left of its process group
)

// A child is one life of the server process.
//
//	run        forks, on a thread that lives as long as the process, and waits for its exit
//	readOut    feeds its stdout to the engine
//	readErr    logs its stderr
//	supervise  sees it to its end, and reports that end once everything it wrote has been read
type child struct {
	link   *link
	server *schema.Server
	gen    uint64
	stdin  *outbox
	stdout source
	stderr source
	lines  *stderrLog

	stopOnce  sync.Once
	stopping  chan struct{} // closed when it is to end
	hurryOnce sync.Once
	hurrying  chan struct{} // closed when it is to end soon
	useless   chan string   // why it is of no use any more though it may run: holds one reason
	exited    chan struct{} // closed once the process has ended, with state set
	readEnded chan struct{} // closed when stdout will give no more frames
	logEnded  chan struct{} // closed when stderr will give no more lines
	gone      chan struct{} // closed once ServerDown was delivered

	process  *os.Process
	lifeline *lifeline
	state    *os.ProcessState
}

// startChild starts the server as life gen and returns at once; ServerUp or ServerDown follows.
func startChild(l *link, server *schema.Server, gen uint64) *child {
	s := l.session
	c := &child{
		link: l, server: server, gen: gen,
		stopping:  make(chan struct{}),
		hurrying:  make(chan struct{}),
		useless:   make(chan string, 1),
		exited:    make(chan struct{}),
		readEnded: make(chan struct{}),
		logEnded:  make(chan struct{}),
		gone:      make(chan struct{}),
	}
	c.lines = newStderrLog(func(line string) { s.log.serverStderr(server.Name, line) },
		func(lines int) { s.log.stderrDropped(server.Name, lines) })
	pipes, err := openPipes()
	if err != nil {
		c.stdin = &outbox{gone: true}
		c.stdout, c.stderr = newPlainSource(nil), newPlainSource(nil)
		go c.neverRan(err)
		return c
	}
	c.stdin, c.stdout, c.stderr = ownOutbox(pipes.toServer), ownSource(pipes.fromOut), ownSource(pipes.fromError)
	c.stdin.high, c.stdin.drained = clientHigh, s.resume
	c.stdin.broken = func(error) { c.give("closed its stdin while running") }
	go c.run(pipes)
	return c
}

// stop has the process end: first by closing its stdin, then by signals. A second call may hurry a first one up.
func (c *child) stop(hurry bool) {
	if hurry {
		c.hurryOnce.Do(func() { close(c.hurrying) })
	}
	c.stopOnce.Do(func() { close(c.stopping) })
}

// kick wakes the reader of stdout if it waits for the client to take what was read before.
func (c *child) kick() { c.stdout.kick() }

// deliver has the session take in an event of this life.
func (c *child) deliver(ev engine.Event) { c.link.session.deliver(c.link, ev) }

// run starts the process and waits for its exit. On Linux a process can be made to die with the thread that forked it; so
// that this means with us, the goroutine keeps its thread.
func (c *child) run(pipes *pipes) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := newCommand(c.server)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.stdin, pipes.stdout, pipes.stderr
		c.lifeline = newLifeline(cmd)
		if err = cmd.Start(); err != nil {
			err = explainStart(cmd, err)
		}
	}
	closeFiles(pipes.stdin, pipes.stdout, pipes.stderr)
	if err != nil {
		c.lifeline.cut()
		c.stdin.abandon()
		c.stdout.close()
		c.stderr.close()
		c.neverRan(err)
		return
	}
	c.process = cmd.Process
	adopt(c.process)
	c.lifeline.tie(c.process)
	c.deliver(engine.Event{Kind: engine.ServerUp, Gen: c.gen})
	go c.readOut()
	go c.readErr()
	go c.supervise()
	cmd.Wait() // its error says what state says
	c.state = cmd.ProcessState
	close(c.exited)
}

// neverRan reports that the process could not be started.
func (c *child) neverRan(err error) {
	c.deliver(engine.Event{
		Kind: engine.ServerDown, Gen: c.gen, Spawn: true, Detail: err.Error(), Unsent: c.stdin.unsent(),
	})
	close(c.gone)
}

// readOut feeds the frames on stdout to the engine.
func (c *child) readOut() {
	defer close(c.readEnded)
	defer c.stdout.close()
	s := c.link.session
	in := &inlet{session: s, source: c.stdout, full: s.fullForServer}
	s.read(c.link, in, c.link.server.MaxMessageBytes, engine.Event{Kind: engine.FromServer, Gen: c.gen}, engine.ServerTooBig)
	c.give("closed its stdout while running")
}

// readErr logs the lines on stderr. It never waits for anybody, so the process never does either.
func (c *child) readErr() {
	defer close(c.logEnded)
	defer c.stderr.close()
	io.Copy(c.lines, c.stderr)
	c.lines.finish()
}

// give notes why the process is of no use any more.
func (c *child) give(reason string) {
	select {
	case c.useless <- reason:
	default:
	}
}

// supervise sees the process to its end and reports that.
func (c *child) supervise() {
	reason := ""
	select {
	case <-c.exited:
	case <-c.stopping:
		c.end()
	case why := <-c.useless:
		// A process that is about to exit closes its ends first: no reason to hurry it.
		select {
		case <-c.exited:
		case <-c.stopping:
			c.end()
		case <-time.After(muteGrace):
			reason = why
			c.force()
		}
	}
	c.endGroup()
	c.lifeline.cut()
	disown(c.process)
	c.stdin.abandon()
	c.stdout.finish()
	c.stderr.finish()
	grace := drainGrace
	if c.stdout.interruptible() && c.stderr.interruptible() {
		grace = drainPatience
	}
	left := time.NewTimer(grace)
	defer left.Stop()
	for _, ended := range []chan struct{}{c.readEnded, c.logEnded} {
		select {
		case <-ended:
		case <-left.C: // somebody else holds the pipe, and this system cannot interrupt a read
			left.Reset(0)
		}
	}
	detail := "could not be killed"
	if c.hasExited() {
		detail = describeExit(c.state)
	}
	if reason != "" {
		detail = reason + ", and was ended (" + detail + ")"
	}
	c.deliver(engine.Event{
		Kind: engine.ServerDown, Gen: c.gen, Detail: detail, Stderr: c.lines.tail(), Unsent: c.stdin.unsent(),
	})
	close(c.gone)
}

// end ends the process in the order that the protocol asks for.
//
// MCP 2025-11-25, lifecycle, "Shutdown", stdio: "First, closing the input stream to the child process (the server)",
// "Waiting for the server to exit, or sending SIGTERM if the server does not exit within a reasonable time", "Sending
// SIGKILL if the server does not exit within a reasonable time after SIGTERM".
func (c *child) end() {
	c.stdin.finish()
	if !c.exitsWithin(exitGrace, exitGraceHurry) {
		c.force()
	}
}

// force ends the process by signals to its group.
func (c *child) force() {
	c.stdin.abandon()
	terminateGroup(c.process)
	if c.exitsWithin(termGrace, termGrace) {
		return
	}
	killGroup(c.process)
	c.exitsWithin(killGrace, killGrace)
}

// exitsWithin waits for the exit: for the time given, or for the shorter one from when there is need to hurry.
func (c *child) exitsWithin(grace, hurried time.Duration) bool {
	deadline := time.Now().Add(grace)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	hurrying := c.hurrying
	for {
		select {
		case <-c.exited:
			return true
		case <-hurrying:
			hurrying = nil
			timer.Reset(min(hurried, time.Until(deadline)))
		case <-c.link.session.kill:
			return c.hasExited()
		case <-timer.C:
			return c.hasExited()
		}
	}
}

func (c *child) hasExited() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// endGroup ends what the process leaves behind in its group: the real server under a launcher that died, say. The next
// life must not meet it.
func (c *child) endGroup() {
	if !groupAlive(c.process) {
		return
	}
	terminateGroup(c.process)
	for deadline := time.Now().Add(termGrace); time.Now().Before(deadline) && !c.link.session.stopped(c.link.session.kill); time.Sleep(groupPoll) {
		if !groupAlive(c.process) {
			return
		}
	}
	killGroup(c.process)
}

// pipes are the three pipes of a server before it has started.
type pipes struct {
	stdin, stdout, stderr        *os.File // the server's ends
	toServer, fromOut, fromError *os.File // ours
}

func openPipes() (p *pipes, err error) {
	p = &pipes{}
	if p.stdin, p.toServer, err = os.Pipe(); err != nil {
		return nil, err
	}
	if p.fromOut, p.stdout, err = os.Pipe(); err != nil {
		closeFiles(p.stdin, p.toServer)
		return nil, err
	}
	if p.fromError, p.stderr, err = os.Pipe(); err != nil {
		closeFiles(p.stdin, p.toServer, p.fromOut, p.stdout)
		return nil, err
	}
	return p, nil
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
