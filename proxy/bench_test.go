//go:build unix

package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// hopPolicy makes four decisions a call, all of which read the arguments.
const hopPolicy = `
servers:
  echo:
    command: placeholder
    policy:
      - {name: key, idempotency_key: 'args.n > 0 ? dyn(null) : dyn("zero")'}
      - {name: scope, breaker_scope: '"n" + string(args.n % 2)'}
      - {name: deny, deny: 'args.n < 0 ? "negative" : ""'}
      - {name: time, call_timeout: 'args.n == 0 ? duration("1s") : duration("30s")'}
`

// barePolicy leaves everything to the built-in policy.
const barePolicy = "servers: {echo: {command: placeholder}}\n"

// BenchmarkHop measures whole processes: how long a small call takes from a client to an answering server and back, one
// after the other, without anything between them, with a relay that copies bytes, and with the proxy. Of the last it
// reports the ratio to a relay that is measured in turns with it.
func BenchmarkHop(b *testing.B) {
	b.Run("direct", func(b *testing.B) { benchmarkHop(b, "answer") })
	b.Run("relay", func(b *testing.B) { benchmarkHop(b, "relay") })
	b.Run("proxy-bare", func(b *testing.B) { benchmarkHop(b, "proxy bare") })
	b.Run("proxy-four-decisions", func(b *testing.B) { benchmarkHop(b, "proxy four") })
}

// BenchmarkThroughput measures the same with many calls in flight.
func BenchmarkThroughput(b *testing.B) {
	for _, window := range []int{16, 64} {
		for _, role := range []string{"relay", "proxy bare", "proxy four"} {
			b.Run(fmt.Sprintf("%s/%d", role, window), func(b *testing.B) {
				p := startPeer(b, role)
				b.ResetTimer()
				p.pump(b.N, window)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}

func benchmarkHop(b *testing.B, role string) {
	const turn = 100 // calls in a row, so that both sides of a ratio see the same machine
	p := startPeer(b, role)
	relay := startPeer(b, "relay")
	var hops, relayed []time.Duration
	b.ResetTimer()
	for n := 0; n < b.N; n += turn {
		for range min(turn, b.N-n) {
			hops = append(hops, p.call())
		}
		b.StopTimer()
		for range min(turn, b.N-n) {
			relayed = append(relayed, relay.call())
		}
		b.StartTimer()
	}
	b.StopTimer()
	b.ReportMetric(float64(median(hops))/1e3, "p50-µs")
	b.ReportMetric(float64(median(hops))/float64(median(relayed)), "×relay")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// A peer is a process that answers calls.
type peer struct {
	tb   testing.TB
	in   *os.File
	out  *os.File
	id   int
	line []byte
	buf  []byte
}

// startPeer starts a process of the given role and shakes hands with it.
func startPeer(tb testing.TB, role string) *peer {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playEnv+"="+role)
	cmd.Stderr = io.Discard
	if os.Getenv("PROXY_TEST_VERBOSE") != "" {
		cmd.Stderr = os.Stderr
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	tb.Cleanup(func() {
		in.Close()
		cmd.Wait()
		out.Close()
	})
	in.Fd() // makes it blocking: cheaper here
	out.Fd()
	p := &peer{tb: tb, in: in, out: out, buf: make([]byte, 64<<10)}
	p.write([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n"))
	p.read(1)
	p.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	for range 100 {
		p.call()
	}
	return p
}

func (p *peer) write(line []byte) {
	if _, err := p.in.Write(line); err != nil {
		p.tb.Fatal(err)
	}
}

// read reads the given number of lines, and returns how many more came.
func (p *peer) read(lines int) (more int) {
	for lines > 0 {
		n, err := p.out.Read(p.buf)
		if err != nil {
			p.tb.Fatal(err)
		}
		lines -= bytes.Count(p.buf[:n], []byte("\n"))
	}
	return -lines
}

func (p *peer) appendCall(b []byte) []byte {
	p.id++
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, int64(p.id), 10)
	b = append(b, `,"method":"tools/call","params":{"name":"echo","arguments":{"n":`...)
	b = strconv.AppendInt(b, int64(p.id), 10) // or one would answer for all that are in flight
	return append(b, "}}}\n"...)
}

// call makes one call and waits for its answer.
func (p *peer) call() time.Duration {
	p.line = p.appendCall(p.line[:0])
	start := time.Now()
	p.write(p.line)
	p.read(1)
	return time.Since(start)
}

// pump makes n calls with a number of them in flight, each written on its own as clients do.
func (p *peer) pump(n, window int) {
	sent, done := 0, 0
	for done < n {
		for sent < n && sent-done < window {
			p.line = p.appendCall(p.line[:0])
			p.write(p.line)
			sent++
		}
		done += 1 + p.read(1)
	}
}

// playBench is the part of a process of a benchmark.
func playBench(role, arg string) int {
	switch role {
	case "answer": // answers every request; the shortest MCP server that there is
		answerAll()
	case "relay":
		relay()
	case "proxy": // in front of "answer", with the policy named
		source := hopPolicy
		if arg == "bare" {
			source = barePolicy
		}
		if err := runProxy(source, "answer"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "proxy-of": // in front of a process in another role
		if err := runProxy(barePolicy, arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	default:
		fmt.Fprintf(os.Stderr, "unknown role %q\n", role)
		return 2
	}
	return 0
}

// answerAll answers each line that has an id with a result of the same id, and each answer is a write of its own, as servers
// do.
func answerAll() {
	in := make([]byte, 64<<10)
	var out []byte
	have := 0
	for {
		n, err := os.Stdin.Read(in[have:])
		if err != nil {
			return
		}
		have += n
		rest := in[:have]
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			rest = after
			if id, ok := lineID(line); ok {
				out = append(out[:0], `{"jsonrpc":"2.0","id":`...)
				out = append(out, id...)
				out = append(out, `,"result":{"content":[]}}`+"\n"...)
				os.Stdout.Write(out)
			}
		}
		have = copy(in, rest)
	}
}

// lineID returns the numeric id of a message that was written by this file or by the proxy.
func lineID(line []byte) ([]byte, bool) {
	_, after, ok := bytes.Cut(line, []byte(`"id":`))
	if !ok {
		return nil, false
	}
	end := 0
	for end < len(after) && after[end] >= '0' && after[end] <= '9' {
		end++
	}
	return after[:end], end > 0
}

// relay copies bytes between its own stdio and an answering process.
func relay() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), playEnv+"=answer")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if cmd.Start() != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.CopyBuffer(struct{ io.Writer }{os.Stdout}, struct{ io.Reader }{out}, make([]byte, 64<<10))
	}()
	io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{os.Stdin}, make([]byte, 64<<10))
	in.Close()
	<-done
	cmd.Wait()
}

// runProxy is the proxy proper over stdin and stdout, in front of a process in the given role.
func runProxy(source, role string) error {
	config, findings := schema.Load("bench.yaml", []byte(source), nil)
	if config == nil || len(config.Servers) == 0 {
		return fmt.Errorf("loading: %v", findings)
	}
	server := config.Servers[0]
	server.Command = os.Args[0]
	server.Env = map[string]string{playEnv: role}
	compiled, findings := policy.Compile(server)
	if compiled == nil {
		return fmt.Errorf("compiling: %v", findings)
	}
	p, err := New(Options{Server: server, Policy: compiled, Stderr: os.Stderr, Seed: 1})
	if err != nil {
		return err
	}
	return p.Serve(context.Background(), os.Stdin, os.Stdout)
}
