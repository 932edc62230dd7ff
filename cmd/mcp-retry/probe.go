package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/proxy"
)

// Values of [health.Status].
const (
	statusUp   = "up"
	statusDown = "down"
)

// health is what a check of one server came to.
type health struct {
	Name      string   `json:"name"`
	Status    string   `json:"status"`
	LatencyMS *float64 `json:"latency_ms"` // from the start of the process to its answer; null if there was none
	Detail    string   `json:"detail"`     // "ok", or why it is down

	// What it says of itself; null if it does not.
	ServerInfo json.RawMessage `json:"server_info"`
	Protocol   *string         `json:"protocol_version"`
	Tools      *int            `json:"tools"` // how many it lists; only counted for JSON

	list  []json.RawMessage // the entries themselves
	noise string            // a line on its stdout that is no message, or ""
}

// probe starts a server behind a proxy of its own, which knows how to start and end one, and knocks. A server that refuses
// the handshake of the legacy revisions is asked once more in the modern way: it may speak only that.
func probe(ctx context.Context, p prepared, timeout time.Duration, inDetail bool) health {
	h := health{Name: p.server.Name, Status: statusDown}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, noResponse(timeout))
	defer cancel()
	err := h.knock(ctx, p, legacyKnock, inDetail)
	var refused *rpcError
	if errors.As(err, &refused) {
		if modern := h.knock(ctx, p, modernKnock, inDetail); modern == nil {
			err = nil
		}
	}
	if err != nil {
		h.Detail = detail(err)
	} else {
		h.Status, h.Detail = statusUp, "ok"
	}
	if h.noise != "" {
		h.Detail += fmt.Sprintf("; stdout is for messages, and it printed %q", shorten(h.noise))
	}
	return h
}

// noResponse is why a server is down that did not answer in time.
func noResponse(timeout time.Duration) error {
	return fmt.Errorf("no response within %.1fs", timeout.Seconds())
}

// detail is an error in the words of the table.
func detail(err error) string {
	var refused *rpcError
	if errors.As(err, &refused) {
		return fmt.Sprintf("initialize failed: %s", oneLine(refused.Error()))
	}
	return oneLine(err.Error())
}

// shorten cuts a text that is quoted.
func shorten(text string) string {
	const most = 60
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most]) + "…"
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// knocker opens a session in the way of an era, and fills in what the server says of itself.
type knocker func(ctx context.Context, c *client, h *health) (more *lister, err error)

// lister asks for the tools in the way of an era; nil = the server has none.
type lister struct{ meta any }

// knock starts the server, opens a session and ends it. The error says why there was none: an [*rpcError] is the server's own.
func (h *health) knock(ctx context.Context, p prepared, open knocker, inDetail bool) error {
	server := *p.server
	server.StartupTimeout = 2 * longestTimeout // ctx is what counts here
	log := &probeLog{}
	between, err := proxy.New(proxy.Options{Server: &server, Policy: p.policy, Stderr: log, Version: version()})
	if err != nil {
		return err
	}
	session, end := context.WithCancel(ctx)
	defer end()
	began := time.Now()
	c, done := through(session, between)
	list, err := open(ctx, c, h)
	if err == nil {
		latency := time.Since(began)
		ms := math.Round(float64(latency.Microseconds())/100) / 10
		h.LatencyMS = &ms
		if inDetail {
			if entries, ok := list.all(ctx, c); ok {
				h.list, h.Tools = entries, new(len(entries))
			}
		}
		c.out.Close()
		waitFor(ctx, done)
		h.noise = log.noise()
		return nil
	}
	end()
	waitFor(ctx, done)
	h.noise = log.noise()
	var refused *rpcError
	if errors.As(err, &refused) && refused.Data.Source == "mcp-retry" || errors.Is(err, errClosed) {
		return log.lastWords(refused)
	}
	return err
}

// Times after that of a probe is up.
const (
	endGrace   = 950 * time.Millisecond // for the server to end, which is killed before that
	probeGrace = 990 * time.Millisecond // for the probe to end
)

// waitFor waits for the end of a session, and once ctx has ended not for long: a check must not depend on the manners of a
// server.
func waitFor(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		late := endGrace
		if deadline, ok := ctx.Deadline(); ok {
			late = min(late, time.Until(deadline.Add(endGrace)))
		}
		select {
		case <-done:
		case <-time.After(late):
		}
	}
}

// legacyKnock opens a session by initialize.
func legacyKnock(ctx context.Context, c *client, h *health) (*lister, error) {
	result, err := c.initialize(ctx, "mcp-retry check")
	if err != nil {
		return nil, err
	}
	var said struct {
		Protocol     *string         `json:"protocolVersion"`
		ServerInfo   json.RawMessage `json:"serverInfo"`
		Capabilities struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"capabilities"`
	}
	if json.Unmarshal(result, &said) != nil {
		return nil, fmt.Errorf("the answer to initialize is malformed: %.60s", result)
	}
	if said.Protocol == nil || *said.Protocol == "" { // clients end the session over this
		return nil, errors.New("answered initialize without a protocolVersion")
	}
	h.Protocol, h.ServerInfo = said.Protocol, said.ServerInfo
	if said.Capabilities.Tools == nil {
		return nil, nil
	}
	return &lister{}, nil
}

// modernProtocol is the revision of the modern era that we know.
const modernProtocol = "2026-07-28"

// modernKnock asks by server/discover, which every server of the modern era answers (MCP 2026-07-28, basic, "Discovery").
func modernKnock(ctx context.Context, c *client, h *health) (*lister, error) {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    modernProtocol,
		"io.modelcontextprotocol/clientCapabilities": struct{}{},
		"io.modelcontextprotocol/clientInfo":         clientInfo("mcp-retry check"),
	}
	result, err := c.request(ctx, "server/discover", map[string]any{"_meta": meta})
	if err != nil {
		return nil, err
	}
	var said struct {
		Versions     []string `json:"supportedVersions"`
		Capabilities struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"capabilities"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(result, &said) != nil || len(said.Versions) == 0 {
		return nil, fmt.Errorf("the answer to server/discover is malformed: %.60s", result)
	}
	h.Protocol, h.ServerInfo = &said.Versions[0], said.Meta["io.modelcontextprotocol/serverInfo"]
	if said.Capabilities.Tools == nil {
		return nil, nil
	}
	return &lister{meta: meta}, nil
}

// maxToolPages bounds how many pages of tools are read: a server may hand out cursors for ever.
const maxToolPages = 1000

// all are the tools that the server lists, as they come; false = it does not say in time.
func (l *lister) all(ctx context.Context, c *client) (entries []json.RawMessage, ok bool) {
	entries = []json.RawMessage{}
	if l == nil {
		return entries, true
	}
	params := map[string]any{}
	if l.meta != nil {
		params["_meta"] = l.meta
	}
	for range maxToolPages {
		result, err := c.request(ctx, "tools/list", params)
		if err != nil {
			return nil, false
		}
		var page struct {
			Tools  []json.RawMessage `json:"tools"`
			Cursor *string           `json:"nextCursor"`
		}
		if json.Unmarshal(result, &page) != nil {
			return nil, false
		}
		entries = append(entries, page.Tools...)
		if page.Cursor == nil {
			return entries, true
		}
		params["cursor"] = *page.Cursor
	}
	return nil, false
}
