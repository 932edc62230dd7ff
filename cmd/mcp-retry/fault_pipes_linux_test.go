package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

// A deafClient is a session whose client reads when the test does.
type deafClient struct {
	t      *testing.T
	cmd    *exec.Cmd
	book   *faultBook
	stdin  *os.File
	stdout *os.File
	lines  *bufio.Reader // of stdout
}

// startDeaf starts a session; server are more arguments of the server.
func startDeaf(t *testing.T, settings string, server ...string) *deafClient {
	t.Helper()
	dir := t.TempDir()
	c := &deafClient{t: t, book: newFaultBook(t, dir)}
	config := dir + "/mcp-retry.yaml"
	if err := os.WriteFile(config, []byte(faultConfig(t, c.book, settings, server...)), 0o600); err != nil {
		t.Fatal(err)
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(fieldProgram(t), "run", "--log-level", "warn", "--config", config)
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = fieldEnvironment(nil), in, out, os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	c.stdin, c.stdout, c.lines = stdin, stdout, bufio.NewReaderSize(stdout, 1<<20)
	t.Cleanup(c.end)
	return c
}

// hear has the client read from something else than stdout itself.
func (c *deafClient) hear(r io.Reader) { c.lines = bufio.NewReaderSize(r, 1<<20) }

// end ends the session, which must end in order.
func (c *deafClient) end() {
	c.stdin.Close()
	kill := time.AfterFunc(2*fieldPatience, func() { c.cmd.Process.Kill() })
	io.Copy(io.Discard, c.stdout)
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("mcp-retry ended with %v", err)
	}
	kill.Stop()
	c.stdout.Close()
	for _, pid := range c.book.lives() {
		awaitEnd(c.t, pid)
	}
}

func (c *deafClient) write(line string) error {
	_, err := io.WriteString(c.stdin, line+"\n")
	return err
}

func (c *deafClient) call(id int, tool string, o faultOrder) error {
	return c.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, o.arguments()))
}

// open makes the handshake.
func (c *deafClient) open() {
	c.t.Helper()
	c.write(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":` + fieldHello + `}`)
	c.next()
	c.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.write(`{"jsonrpc":"2.0","id":"tools","method":"tools/list"}`)
	c.next()
}

// next is the next frame to the client. If none ever comes, the deadline is the test's.
func (c *deafClient) next() *fieldFrame {
	c.t.Helper()
	c.stdout.SetReadDeadline(time.Now().Add(2 * fieldPatience))
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no frame came: %v", err)
	}
	frame := &fieldFrame{line: string(line)}
	if err := json.Unmarshal(line, frame); err != nil {
		c.t.Fatalf("%.200q is no frame: %v", line, err)
	}
	return frame
}

// TestFaultAllPipesAreFull: the client writes more than we hold while it reads nothing, and so does the server. We hold what
// the limits say and no more; and once the client reads, everything goes on, in order and complete.
func TestFaultAllPipesAreFull(t *testing.T) {
	t.Parallel()
	const (
		flood = 48 << 20 // of the server; we hold 8 MiB
		piece = 64 << 10
		calls = (96 << 20) / piece // of the client; we hold 64 MiB and one frame of the greatest size
	)
	c := startDeaf(t, "max_message_bytes: 1MiB\ncall_timeout: 100\ntotal_timeout: 200\n")
	c.open()
	if err := c.call(0, "plain", faultOrder{N: 1, Fault: faultFlood, Size: flood}); err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	wrote := make(chan error, 1)
	go func() {
		pad := strings.Repeat("z", piece)
		for id := 1; id <= calls; id++ {
			if err := c.call(id, "plain", faultOrder{N: id + 1, Pad: pad}); err != nil {
				wrote <- err
				return
			}
			written.Add(piece)
		}
		wrote <- nil
	}()
	for deadline := time.Now().Add(2 * fieldPatience); written.Load() < 64<<20; time.Sleep(fieldPoll) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d bytes of the client were taken", written.Load())
		}
	}
	notes, answers := 0, 0
	for answers <= calls {
		frame := c.next()
		switch {
		case frame.Method == "notifications/message":
			var params struct{ Logger string }
			if json.Unmarshal(frame.Params, &params); params.Logger != fmt.Sprint(notes) {
				t.Fatalf("notification %s came in place of %d", params.Logger, notes)
			}
			notes++
		case string(frame.ID) != fmt.Sprint(answers):
			t.Fatalf("%.200s came in place of the answer to %d", frame.line, answers)
		default:
			frame.done(t, answers+1, 1)
			answers++
		}
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if notes != flood/faultFloodPiece {
		t.Errorf("%d notifications came, want %d", notes, flood/faultFloodPiece)
	}
	// A call that waits is held twice, for the pipe and for a retry, and the collector lets as much garbage gather.
	held := footprintOf(t, c.cmd.Process.Pid)
	if most := 400 << 10; held.peak > most && !underRace() {
		t.Errorf("mcp-retry held %d KiB, more than %d", held.peak, most)
	}
}

// TestFaultBothEndsReadAByteAtATime: frames far larger than a read come through whole.
func TestFaultBothEndsReadAByteAtATime(t *testing.T) {
	t.Parallel()
	c := startDeaf(t, "call_timeout: 100\ntotal_timeout: 200\n", faultSip)
	c.hear(iotest.OneByteReader(c.stdout))
	c.open()
	const calls, size = 3, 300 << 10 // more than a pipe holds
	wrote := make(chan error, 1)
	go func() {
		for id := range calls {
			if err := c.call(id, "pays", faultOrder{N: id, Size: size, Pad: strings.Repeat("z", size)}); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	for id := range calls {
		frame := c.next()
		frame.done(t, id, 1)
		if string(frame.ID) != fmt.Sprint(id) || strings.Count(frame.text(), "x") < size {
			t.Errorf("the answer to %d is %.200s (%d bytes)", id, frame.line, len(frame.line))
		}
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}
