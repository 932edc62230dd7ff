package flaky

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// defaultLifetime is how long a server lives at most, unless its script says otherwise.
const defaultLifetime = 2 * time.Minute

// statusTooOld is the exit status of a server that lived for its whole lifetime.
const statusTooOld = 70

// Serve is one life of the server: it plays the script until the end of input, an exit of the script, or the end of its
// lifetime, and returns the exit status. Calls may still wait then; none of them writes any more.
func Serve(in io.Reader, out, stderr io.Writer, script Script) int {
	if err := script.check(); err != nil {
		fmt.Fprintf(stderr, "flaky: %v\n", err)
		return 2
	}
	journal, err := openJournal(script.Ledger)
	if err != nil {
		fmt.Fprintf(stderr, "flaky: %v\n", err)
		return 2
	}
	defer journal.close()
	l := &life{
		script:     script,
		journal:    journal,
		wire:       &wire{faults: &script.Faults, journal: journal, out: out},
		stderr:     stderr,
		ended:      make(chan struct{}),
		requests:   journal.counts(EventRequest),
		first:      make(map[string]time.Time),
		executions: journal.counts(EventExecuted),
		asked:      make(map[string]chan Raw),
		cancelled:  make(map[string]bool),
	}
	return l.run(in)
}

// life is one life of the server.
type life struct {
	script  Script
	journal *journal
	wire    *wire
	stderr  io.Writer

	end    sync.Once
	ended  chan struct{} // closed at the end of life; status is set then
	status int

	mu          sync.Mutex
	requests    map[string]int       // requests so far, by what they are counted under
	first       map[string]time.Time // when the first request of this life came, likewise
	executions  map[string]int       // executions so far, likewise
	asked       map[string]chan Raw  // questions to the client that wait for an answer, by id
	questions   int                  // numbers given to questions so far
	cancelled   map[string]bool      // ids of requests that the client cancelled
	introduced  bool                 // initialize was answered
	initialized bool                 // notifications/initialized came
}

// message is what a line of the client holds.
type message struct {
	ID     Raw    `json:"id"`
	Method string `json:"method"`
	Params Raw    `json:"params"`
	Result Raw    `json:"result"`
	Error  Raw    `json:"error"`
}

// run plays the life and returns its exit status.
func (l *life) run(in io.Reader) int {
	if l.script.IgnoreTerm {
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		defer signal.Stop(terms)
		go l.ignore(terms)
	}
	lifetime := defaultLifetime
	if l.script.Lifetime > 0 {
		lifetime = l.script.Lifetime.duration()
	}
	defer time.AfterFunc(lifetime, func() { l.leave(statusTooOld) }).Stop()
	if l.script.DieAfter > 0 {
		defer time.AfterFunc(l.script.DieAfter.duration(), func() { l.leave(1) }).Stop()
	}
	l.recordStart()
	go l.live(in)
	<-l.ended
	l.wire.shut()
	l.journal.record(Entry{Event: EventEnd, Code: l.status})
	return l.status
}

// live starts, and takes line by line until the input ends.
func (l *life) live(in io.Reader) {
	if l.script.Grandchild {
		l.bearChild()
	}
	if l.script.Start != nil {
		start := l.script.Start.nth(l.journal.life - 1)
		if l.prepare(&start, message{}); !l.goesOn(&start) || start.Hang {
			return
		}
	}
	reader := bufio.NewReader(in)
	if l.script.Sip > 0 {
		reader = bufio.NewReaderSize(in, l.script.Sip)
	}
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 && !l.isOver() {
			method := l.receive(line)
			if method != "" && method == l.script.MuteAfter {
				l.wire.close()
			}
			if method != "" && method == l.script.DeafAfter {
				return
			}
		}
		if l.isOver() {
			return
		}
		if err != nil {
			break
		}
	}
	l.journal.record(Entry{Event: EventEOF})
	l.wire.release()
	if !l.script.IgnoreEOF {
		l.leave(0)
	}
}

// leave ends the life; only the first status counts.
func (l *life) leave(status int) {
	l.end.Do(func() {
		l.status = status
		close(l.ended)
	})
}

// isOver reports whether the life has ended.
func (l *life) isOver() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// wait waits, and reports whether the life goes on.
func (l *life) wait(d Millis) bool {
	if d <= 0 {
		return !l.isOver()
	}
	timer := time.NewTimer(d.duration())
	defer timer.Stop()
	select {
	case <-timer.C:
		return !l.isOver()
	case <-l.ended:
		return false
	}
}

func (l *life) ignore(terms <-chan os.Signal) {
	for {
		select {
		case <-terms:
			l.journal.record(Entry{Event: EventTerm})
		case <-l.ended:
			return
		}
	}
}

func (l *life) recordStart() {
	environment := make(map[string]string)
	for _, name := range l.script.Environment {
		if value, ok := os.LookupEnv(name); ok {
			environment[name] = value
		}
	}
	cwd, _ := os.Getwd() // a directory that is gone is recorded as ""
	l.journal.record(Entry{Event: EventStart, Argv: os.Args, Cwd: cwd, Environment: environment})
}

// receive takes one line and returns its method.
func (l *life) receive(line []byte) string {
	l.journal.record(Entry{Event: EventReceived, Line: trimEnd(line)})
	if l.script.ASCIIOnly && slices.ContainsFunc(line, func(b byte) bool { return b > 0x7F }) {
		fmt.Fprintln(l.stderr, "flaky: cannot decode a line, ignoring it")
		return ""
	}
	var m message
	if json.Unmarshal(line, &m) != nil {
		return ""
	}
	if m.Method != "" && m.Method == l.script.BufferAfter {
		l.wire.buffers.Store(true)
	}
	switch {
	case m.Method == "":
		l.takeAnswer(m)
	case m.ID == nil:
		l.takeNotification(m)
	default:
		l.takeRequest(m)
	}
	return m.Method
}

// takeAnswer hands the client's answer to the outcome that asked.
func (l *life) takeAnswer(m message) {
	l.mu.Lock()
	waiting := l.asked[string(m.ID)]
	delete(l.asked, string(m.ID))
	l.mu.Unlock()
	if waiting == nil {
		return
	}
	switch {
	case m.Result != nil:
		waiting <- Raw(`{"result":` + string(m.Result) + `}`)
	case m.Error != nil:
		waiting <- Raw(`{"error":` + string(m.Error) + `}`)
	default:
		waiting <- Raw(`{}`)
	}
}

func (l *life) takeNotification(m message) {
	if m.Method == "notifications/cancelled" {
		var params struct {
			RequestID Raw `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			l.mu.Lock()
			l.cancelled[string(params.RequestID)] = true
			l.mu.Unlock()
		}
	}
	if l.script.AnswerNotes {
		l.wire.message([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`), false)
	}
	for _, reply := range l.script.On[m.Method] {
		l.send(reply)
	}
	if m.Method == "notifications/initialized" {
		l.mu.Lock()
		l.initialized = true
		l.mu.Unlock()
		for _, reply := range l.script.Initialized {
			l.send(reply)
		}
	}
}

func (m Millis) duration() time.Duration { return time.Duration(m) * time.Millisecond }
