//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The soak drives the product at full rate, with faults, for as long as one likes:
//
//	go test ./cmd/mcp-retry -run '^TestSoak$' -v -timeout 0 -soak 30m [-soak-product PATH]
var (
	soakTime    = flag.Duration("soak", 2*time.Second, "how long TestSoak goes on")
	soakProduct = flag.String("soak-product", "", "the mcp-retry that it drives; \"\" = the test binary")
)

const (
	soakInFlight = 64                     // calls at a time
	soakFaults   = 100                    // one call in so many goes wrong
	soakLook     = 250 * time.Millisecond // between looks at the process
	soakPatience = 60 * time.Second       // the longest that an answer may take, on a machine with other things to do
)

// Bounds of what the process holds. The race detector multiplies memory.
const (
	soakMostKiB        = 128 << 10
	soakMostFiles      = 64
	soakMostThreads    = 64
	soakMostGoroutines = 64
)

// soakSettings leave it to each tool what its failures come to; all times are short, so that much happens.
const soakSettings = `call_timeout: 0.5
total_timeout: 10
retry: {max_retries: 3, base_delay: 0.001, max_delay: 0.05}
circuit_breaker: {failure_threshold: 1000, cooldown_seconds: 0.05}
cache: {default_ttl: 0, max_entries: 1000, max_bytes: 1MiB}
idempotency_ttl: 10
tools: {plain: {circuit_breaker: {failure_threshold: 2, cooldown_seconds: 0.05}}}
`

// A soak is one run.
type soak struct {
	t       *testing.T
	cmd     *exec.Cmd
	book    *faultBook
	stdin   *os.File
	metrics string // its address
	began   time.Time
	last    tail // of stderr

	next  atomic.Int64 // the last id that was used
	stop  chan struct{}
	count soakCounts

	mu       sync.Mutex
	waiting  map[int64]chan soakAnswer // by id
	answered bits                      // by id
	harmless map[int]bool              // calls of which we were told that nothing was executed
}

// TestSoak holds: each request has one answer, which is its own; an unsafe call is done at most once, and not at all if the error
// says so; the process stays as small as it was; and it ends in order, without leaving anything behind.
func TestSoak(t *testing.T) {
	s := startSoak(t)
	watched := make(chan soakFootprints, 1)
	go func() { watched <- s.watch() }()
	var workers sync.WaitGroup
	for i := range soakInFlight {
		workers.Go(func() { s.work(uint64(i)) })
	}
	select {
	case <-time.After(*soakTime):
	case <-s.stop: // something is wrong already
	}
	s.end()
	workers.Wait()
	took := time.Since(s.began)
	sizes := <-watched
	page := s.page()
	s.finish()
	s.checkBook()
	sizes.check(t)
	t.Logf("%s", s.table(took, sizes, page))
	if t.Failed() {
		t.Logf("stderr ends in\n%s", s.last.text())
	}
}

// startSoak starts the product, and its session.
func startSoak(t *testing.T) *soak {
	t.Helper()
	dir := t.TempDir()
	s := &soak{
		t: t, book: newFaultBook(t, dir), metrics: freeAddress(t), stop: make(chan struct{}), began: time.Now(),
		waiting: map[int64]chan soakAnswer{}, harmless: map[int]bool{},
	}
	config := filepath.Join(dir, "mcp-retry.yaml")
	if err := os.WriteFile(config, []byte(faultConfig(t, s.book, soakSettings)), 0o600); err != nil {
		t.Fatal(err)
	}
	product := *soakProduct
	if product == "" {
		product = fieldProgram(t)
	}
	s.cmd = exec.Command(product, "run", "--log-level", "warn", "--metrics", s.metrics, "--config", config)
	s.cmd.Env = fieldEnvironment(nil)
	s.cmd.Stderr = &s.last
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdin, s.cmd.Stdout, s.stdin = in, out, stdin
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill() })
	in.Close()
	out.Close()
	go s.read(stdout)
	s.ask(s.id(), "initialize", fieldHello)
	s.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	s.ask(s.id(), "tools/list", "{}")
	return s
}

// failf notes that something does not hold, and ends the run.
func (s *soak) failf(format string, args ...any) {
	if s.count.faulty.Add(1) <= 20 {
		s.t.Errorf(format, args...)
	}
	s.end()
}

func (s *soak) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over() {
		close(s.stop)
	}
}

func (s *soak) over() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// finish ends the session, in order.
func (s *soak) finish() {
	s.stdin.Close()
	exited := make(chan error, 1)
	go func() { exited <- s.cmd.Wait() }()
	select {
	case err := <-exited:
		if err != nil {
			s.t.Errorf("mcp-retry ended with %v", err)
		}
	case <-time.After(soakPatience):
		s.t.Errorf("mcp-retry still runs although its client has gone")
		s.cmd.Process.Signal(syscall.SIGQUIT)
		<-exited
	}
	for _, pid := range processesOf(s.book.path) {
		s.t.Errorf("process %d is left behind", pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// checkBook goes through all calls that were made.
func (s *soak) checkBook() {
	for n := 1; n <= int(s.next.Load()); n++ {
		_, executions := s.book.counts(n)
		if executions > 1 && soakToolOf(n).unsafe {
			s.t.Errorf("call %d of %s was done %d times", n, soakToolOf(n).name, executions)
		}
		if executions > 0 && s.harmless[n] {
			s.t.Errorf("call %d was done %d times, and the client was told that nothing was executed", n, executions)
		}
	}
}

// table is what is shown at the end.
func (s *soak) table(took time.Duration, sizes soakFootprints, page map[string]float64) string {
	c := &s.count
	text := fmt.Sprintf("\n  %-22s %10s\n", "time", took.Round(time.Millisecond))
	row := func(name string, value any) { text += fmt.Sprintf("  %-22s %10v\n", name, value) }
	row("calls", c.calls.Load())
	row("calls/s", int(float64(c.calls.Load())/took.Seconds()))
	row("results", c.results.Load())
	for i := range soakFaultKinds {
		row("fault: "+soakFaultKinds[i], c.faults[i].Load())
	}
	row("cancelled by client", c.cancelled.Load())
	for i, code := range soakCodes {
		row(fmt.Sprintf("error %d", code), c.codes[i].Load())
	}
	row("retries", int(page["mcp_retry_retries_total"]))
	row("restarts", int(page["mcp_retry_server_restarts_total"]))
	least, most := sizes.bounds()
	row("RSS min, KiB", least.rss)
	row("RSS max, KiB", most.rss)
	for i := range 4 {
		_, most := sizes[i*len(sizes)/4 : (i+1)*len(sizes)/4].bounds()
		row(fmt.Sprintf("  in quarter %d", i+1), most.rss)
	}
	row("files max", most.files)
	row("threads max", most.threads)
	row("goroutines max", most.goroutines)
	return text
}
