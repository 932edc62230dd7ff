package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/bentabol/mcp-retry/proxy"
)

// client is a small MCP client of the legacy revisions: enough to knock at a server and to show one at work.
type client struct {
	out io.WriteCloser

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply // by the id of the request
	closed  chan struct{}      // closed when nothing more comes
}

// reply is the answer to a request: one of both is set.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

// rpcError is a JSON-RPC error.
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    struct {
		Source       string `json:"source"` // "mcp-retry" if the error is ours
		Kind         string `json:"kind"`
		RetryAfterMs int64  `json:"retryAfterMs"`
	} `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// errClosed means that the other side went away.
var errClosed = errors.New("the connection was closed")

// newClient speaks to a server whose stdin is out and whose stdout is in.
func newClient(out io.WriteCloser, in io.Reader) *client {
	c := &client{out: out, waiting: make(map[int]chan reply), closed: make(chan struct{})}
	go c.read(in)
	return c
}

// read hands each answer to whoever waits for it; everything else is passed over.
func (c *client) read(in io.Reader) {
	defer close(c.closed)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     *int   `json:"id"`
			Method string `json:"method"`
			reply
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method != "" {
			continue
		}
		c.mu.Lock()
		waiting := c.waiting[*m.ID]
		delete(c.waiting, *m.ID)
		c.mu.Unlock()
		if waiting != nil {
			waiting <- m.reply
		}
	}
}

// request sends a request and waits for its answer, which may be an error of the server's. If ctx ends first, the request is
// cancelled and the error is that of ctx.
func (c *client) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answer := make(chan reply, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = answer
	c.mu.Unlock()
	if err := c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, errClosed
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return nil, r.Error
		}
		return r.Result, nil
	case <-c.closed:
		return nil, errClosed
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
		if method != "initialize" { // the one request that must not be cancelled
			c.notify("notifications/cancelled", map[string]any{"requestId": id, "reason": "no answer"})
		}
		return nil, context.Cause(ctx)
	}
}

// notify sends a notification. That nobody reads it shows with the next request.
func (c *client) notify(method string, params any) {
	_ = c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (c *client) send(message any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return err
	}
	_, err := c.out.Write(line.Bytes())
	return err
}

// clientProtocol is the revision that the client asks for.
const clientProtocol = "2025-11-25"

// initialize opens a session and returns the server's introduction.
func (c *client) initialize(ctx context.Context, name string) (json.RawMessage, error) {
	result, err := c.request(ctx, "initialize", map[string]any{
		"protocolVersion": clientProtocol,
		"capabilities":    struct{}{},
		"clientInfo":      clientInfo(name),
	})
	if err == nil {
		c.notify("notifications/initialized", struct{}{})
	}
	return result, err
}

func clientInfo(name string) map[string]string {
	return map[string]string{"name": name, "version": version()}
}

// through starts a session of a proxy in this process and returns a client of it. The session ends when ctx does, or once
// the client's output is closed; done is closed then, and the server is gone.
func through(ctx context.Context, p *proxy.Proxy) (c *client, done <-chan struct{}) {
	fromClient, toProxy := io.Pipe()
	fromProxy, toClient := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Serve(ctx, fromClient, toClient) // how it ended shows in what the client got
		fromClient.Close()
		toClient.Close()
	}()
	return newClient(toProxy, fromProxy), ended
}
