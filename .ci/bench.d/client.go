package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A client talks to one contender, as an MCP client does.
type client struct {
	contender
	cmd     *exec.Cmd
	in, out *os.File
	id      int
	payload []byte
	times   int // that the server repeats it
	line    []byte
	buf     []byte
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// start starts a contender and shakes hands with it.
func start(c contender) (*client, error) {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Stderr = os.Stderr
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	err = cmd.Start()
	theirIn.Close()
	theirOut.Close()
	if err != nil {
		return nil, err
	}
	in.Fd() // makes them blocking: no poller between a call and its time
	out.Fd()
	p := &client{contender: c, cmd: cmd, in: in, out: out, buf: make([]byte, 256<<10)}
	if _, err := p.in.WriteString(hello); err != nil {
		return nil, err
	}
	return p, p.read(1)
}

// stop ends the contender and waits for it.
func (p *client) stop() {
	p.in.Close()
	p.cmd.Wait()
	p.out.Close()
}

// fill makes the calls to come carry that many bytes, which come back that many times, and makes one to see that they do.
func (p *client) fill(size, times int) error {
	p.payload, p.times = bytes.Repeat([]byte("x"), size), times
	if _, err := p.in.Write(p.next()); err != nil {
		return err
	}
	var answer []byte
	for !bytes.HasSuffix(answer, []byte("\n")) {
		n, err := p.out.Read(p.buf)
		if err != nil {
			return err
		}
		answer = append(answer, p.buf[:n]...)
	}
	if got := between(answer, `"text":"`, '"'); len(got) != size*times {
		return fmt.Errorf("%s answers %.200q", p.name, answer)
	}
	return nil
}

// next is the next call, a line of its own. It is valid until the one after it.
func (p *client) next() []byte {
	p.id++
	n := p.id
	if p.same {
		n = 1
	}
	p.line = append(p.line[:0], `{"jsonrpc":"2.0","id":`...)
	p.line = strconv.AppendInt(p.line, int64(p.id), 10)
	p.line = append(p.line, `,"method":"tools/call","params":{"name":"echo","arguments":{"n":`...)
	p.line = strconv.AppendInt(p.line, int64(n), 10)
	p.line = append(p.line, `,"payload":"`...)
	p.line = append(p.line, p.payload...)
	p.line = append(p.line, '"')
	if p.times > 1 {
		p.line = append(p.line, `,"times":`...)
		p.line = strconv.AppendInt(p.line, int64(p.times), 10)
	}
	p.line = append(p.line, "}}}\n"...)
	return p.line
}

// read reads that many lines.
func (p *client) read(lines int) error {
	for lines > 0 {
		n, err := p.out.Read(p.buf)
		if err != nil {
			return fmt.Errorf("%s ended: %w", p.name, err)
		}
		lines -= bytes.Count(p.buf[:n], []byte("\n"))
	}
	return nil
}

// calls makes n calls with a number of them in flight, each written on its own, and returns how long they took.
func (p *client) calls(n, inFlight int) (time.Duration, error) {
	began := time.Now()
	if inFlight == 1 {
		for range n {
			if _, err := p.in.Write(p.next()); err != nil {
				return 0, err
			}
			if err := p.read(1); err != nil {
				return 0, err
			}
		}
		return time.Since(began), nil
	}
	places := make(chan struct{}, inFlight)
	failed := make(chan error, 1)
	go func() {
		for range n {
			places <- struct{}{}
			if _, err := p.in.Write(p.next()); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for done := 0; done < n; {
		got, err := p.out.Read(p.buf)
		if err != nil {
			return 0, fmt.Errorf("%s ended: %w", p.name, err)
		}
		for range bytes.Count(p.buf[:got], []byte("\n")) {
			<-places
			done++
		}
	}
	return time.Since(began), <-failed
}
