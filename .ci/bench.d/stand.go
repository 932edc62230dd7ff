package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
)

// relay is the least that can stand between a client and a server: it copies bytes both ways.
func relay() {
	self, err := os.Executable()
	if err != nil {
		os.Exit(1)
	}
	cmd := exec.Command(self, "answer")
	in, err := cmd.StdinPipe()
	if err != nil {
		os.Exit(1)
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		os.Exit(1)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyBytes(os.Stdout, out)
	}()
	copyBytes(in, os.Stdin)
	in.Close()
	<-done
	cmd.Wait()
}

// copyBytes hides what the ends can do besides reading and writing, lest the copying is left to the kernel: nothing that looks at
// what it passes on could do that.
func copyBytes(to io.Writer, from io.Reader) {
	io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
}

// answerAll is the server: it answers each request with a result that holds the same payload, as many times as the call
// says, each in a write of its own.
func answerAll() {
	in := make([]byte, 64<<10)
	var out []byte
	have, searched := 0, 0
	for {
		if have == len(in) {
			in = append(in, make([]byte, len(in))...)
		}
		n, err := os.Stdin.Read(in[have:])
		if err != nil {
			return
		}
		have += n
		rest := in[:have]
		for {
			at := bytes.IndexByte(rest[searched:], '\n')
			if at < 0 {
				searched = len(rest)
				break
			}
			line := rest[:searched+at]
			rest, searched = rest[len(line)+1:], 0
			if out = appendAnswer(out[:0], line); len(out) > 0 {
				if _, err := os.Stdout.Write(out); err != nil {
					return
				}
			}
		}
		have = copy(in, rest)
	}
}

func appendAnswer(out, line []byte) []byte {
	id := between(line[:min(len(line), 60)], `"id":`, ',')
	if id == nil {
		id = between(line[max(0, len(line)-60):], `"id":`, '}')
	}
	if id == nil {
		return out
	}
	out = append(out, `{"jsonrpc":"2.0","id":`...)
	out = append(out, id...)
	switch {
	case bytes.Contains(line[:min(len(line), 200)], []byte(`"tools/list"`)):
		return append(out, `,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}`+"\n"...)
	case bytes.Contains(line[:min(len(line), 200)], []byte(`"initialize"`)):
		return append(out, `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}`+"\n"...)
	}
	out = append(out, `,"result":{"content":[{"type":"text","text":"`...)
	times := 1
	if stated := between(line[max(0, len(line)-60):], `"times":`, '}'); stated != nil {
		times, _ = strconv.Atoi(string(stated))
	}
	payload := between(line, `"payload":"`, '"')
	for range times {
		out = append(out, payload...)
	}
	return append(out, `"}]}}`+"\n"...)
}

// between is what follows a mark, up to a byte; nil if the mark is not there.
func between(line []byte, mark string, end byte) []byte {
	_, after, ok := bytes.Cut(line, []byte(mark))
	if !ok {
		return nil
	}
	at := bytes.IndexByte(after, end)
	if at < 0 {
		return nil
	}
	return after[:at]
}
