//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// soakCounts are what came of the calls.
type soakCounts struct {
	calls, results, cancelled, faulty atomic.Int64

	faults [len(soakFaultKinds)]atomic.Int64
	codes  [len(soakCodes)]atomic.Int64 // errors, by code
}

// soakFaultKinds are the faults. The server lives through the first ones, and dies of the others. There are times of the ones and
// times of the others: where it dies thirty times a second, nothing is ever late.
var soakFaultKinds = [...]string{
	faultError, faultHang, faultMalformed, faultLate, faultTwice,
	faultExit, dieRead, dieDone, dieHalf, dieUnended, dieAnswered, soakKill,
}

const (
	soakMild  = 5                       // of the kinds, those that the server lives through
	soakPhase = 1500 * time.Millisecond // how long either time is
)

// fault is a fault of the present time, as an index of soakFaultKinds.
func (s *soak) fault(random *rand.Rand) int {
	if mild := int(time.Since(s.began)/soakPhase)%2 == 0; mild {
		return random.IntN(soakMild)
	}
	return soakMild + random.IntN(len(soakFaultKinds)-soakMild)
}

// soakKill is a kill -9 from outside, at whatever moment that is.
const soakKill = "kill -9"

// soakRest is how long a client waits whose call was refused.
const soakRest = 5 * time.Millisecond

// soakCodes are the errors that may come of them.
var soakCodes = [...]int{-32000, -31001, -31002, -31004, -31007}

// A soakTool is what a call is to: a tool, and whether it is called under a key, twice.
type soakTool struct {
	name          string
	unsafe, keyed bool
}

var soakTools = [...]soakTool{{name: "reads"}, {name: "repeats"}, {name: "plain"}, {name: "pays", unsafe: true}, {name: "reads"}, {name: "pays", unsafe: true, keyed: true}}

// soakToolOf is the tool of a call.
func soakToolOf(n int) soakTool { return soakTools[n%len(soakTools)] }

// A soakAnswer is a response to the client, as far as we look into it.
type soakAnswer struct {
	ID     json.RawMessage
	Method string
	Result *struct {
		Content []struct{ Text string }
	}
	Error *struct {
		Code    int
		Message string
		Data    struct{ MayHaveExecuted string }
	}
}

func (s *soak) id() int64 { return s.next.Add(1) }

// work makes calls until the run is over.
func (s *soak) work(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for !s.over() {
		id := s.id()
		n := int(id)
		tool := soakToolOf(n)
		order := faultOrder{N: n}
		if random.IntN(20) == 0 {
			order.Size = random.IntN(20_000)
		}
		kill := false
		if random.IntN(soakFaults) == 0 {
			kind := s.fault(random)
			s.count.faults[kind].Add(1)
			if order.Fault = soakFaultKinds[kind]; order.Fault == soakKill {
				order.Fault, kill = "", true
			}
		}
		params := fmt.Sprintf(`{"name":%q,"arguments":%s`, tool.name, order.arguments())
		if tool.keyed {
			params += fmt.Sprintf(`,"_meta":{"idempotencyKey":"%d"}`, n)
		}
		params += "}"
		answer := s.send(id, "tools/call", params)
		if kill {
			s.killServer()
		}
		if random.IntN(1000) == 0 {
			s.cancel(id, answer)
			continue
		}
		first := s.check(id, n, s.await(id, answer))
		if tool.keyed && !s.over() {
			again := s.id()
			second := s.check(again, n, s.await(again, s.send(again, "tools/call", params)))
			if first != "" && second != "" && first != second {
				s.failf("call %d under a key came to %q, and then to %q", n, first, second)
			}
		}
	}
}

// killServer kills the server's present life.
func (s *soak) killServer() {
	if pid := s.book.last(); slices.Contains(childrenOf(s.cmd.Process.Pid), pid) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// send sends a request.
func (s *soak) send(id int64, method, params string) chan soakAnswer {
	answer := make(chan soakAnswer, 1)
	s.mu.Lock()
	s.waiting[id] = answer
	s.mu.Unlock()
	s.count.calls.Add(1)
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params))
	return answer
}

func (s *soak) write(line string) {
	if _, err := io.WriteString(s.stdin, line); err != nil {
		s.failf("mcp-retry does not read: %v", err)
	}
}

// await waits for the answer to a request.
func (s *soak) await(id int64, answer chan soakAnswer) (got soakAnswer) {
	patience := time.NewTimer(soakPatience)
	defer patience.Stop()
	select {
	case got = <-answer:
	case <-patience.C:
		s.failf("request %d has no answer", id)
	}
	return got
}

// ask sends a request and waits for its answer, which must be a result.
func (s *soak) ask(id int64, method, params string) {
	if got := s.await(id, s.send(id, method, params)); got.Result == nil {
		s.failf("%s failed: %+v", method, got.Error)
	}
}

// cancel takes a call back. It may have been answered already; once a later request has been, it will not be any more.
func (s *soak) cancel(id int64, answer chan soakAnswer) {
	s.count.cancelled.Add(1)
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", id))
	ping := s.id()
	s.await(ping, s.send(ping, "ping", "{}"))
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
	s.answered.set(id) // any answer from now on is one too many
}

// check checks the answer to a call, and returns the text of a result.
func (s *soak) check(id int64, n int, got soakAnswer) (text string) {
	attempts, executions := s.book.counts(n)
	switch {
	case got.Result != nil && len(got.Result.Content) == 1:
		text = got.Result.Content[0].Text
		s.count.results.Add(1)
		if !strings.HasPrefix(text, fmt.Sprintf("n=%d execution=", n)) {
			s.failf("request %d for call %d was answered %.200q", id, n, text)
		}
		if executions == 0 {
			s.failf("call %d was answered and never done", n)
		}
	case got.Error != nil:
		i := slices.Index(soakCodes[:], got.Error.Code)
		if i < 0 {
			s.failf("call %d came to error %d: %s", n, got.Error.Code, got.Error.Message)
			return ""
		}
		s.count.codes[i].Add(1)
		if got.Error.Code == -31002 {
			time.Sleep(soakRest) // as a client would that is told when to try again
		}
		if got.Error.Data.MayHaveExecuted == "no" && soakToolOf(n).unsafe && got.Error.Code != -31007 {
			s.mu.Lock()
			s.harmless[n] = !soakToolOf(n).keyed // the repeat may run
			s.mu.Unlock()
		}
	case !s.over():
		s.failf("call %d came to nothing: %+v", n, got)
	}
	if executions > 1 && soakToolOf(n).unsafe {
		s.failf("call %d of %s came %d times and was done %d times", n, soakToolOf(n).name, attempts, executions)
	}
	return text
}

// read takes in what the client gets.
func (s *soak) read(from *os.File) {
	defer from.Close()
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var got soakAnswer
		var id int64
		if err := json.Unmarshal(line, &got); err != nil {
			s.failf("%.200q is no frame: %v", line, err)
			continue
		}
		if got.Method != "" {
			continue
		}
		if err := json.Unmarshal(got.ID, &id); err != nil {
			s.failf("%.300s answers nothing", line)
			continue
		}
		s.mu.Lock()
		answer, known := s.waiting[id]
		twice := s.answered.set(id)
		delete(s.waiting, id)
		s.mu.Unlock()
		if twice || !known {
			s.failf("request %d was not made, was cancelled, or has been answered already: %.300s", id, line)
			continue
		}
		answer <- got
	}
}

// bits are a set of numbers.
type bits []uint64

// set puts a number in, and reports whether it was there.
func (b *bits) set(n int64) (was bool) {
	for int64(len(*b)) <= n/64 {
		*b = append(*b, 0)
	}
	word, bit := &(*b)[n/64], uint64(1)<<(n%64)
	was = *word&bit != 0
	*word |= bit
	return was
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const most = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = slices.Clone(t.kept[max(0, len(t.kept)-most):])
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
