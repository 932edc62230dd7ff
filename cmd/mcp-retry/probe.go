package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
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

// probe starts a server behind a proxy of its own, which knows how to start and end one, and knocks. It may take a little longer
// than its time, and no more: a check has an end, whatever holds a probe up.
func probe(ctx context.Context, p prepared, l limit, inDetail bool) health {
	heard := &hearsay{}
	probed := make(chan health, 1)
	go func() { probed <- knockTwice(ctx, p, l, inDetail, heard) }()
	late := time.NewTimer(time.Until(l.deadline.Add(probeGrace)))
	defer late.Stop()
	select {
	case h := <-probed:
		return h
	case <-late.C:
	}
	h := health{Name: p.server.Name, Status: statusDown, Detail: noResponse(l.timeout).Error()}
	if refused := heard.refused.Load(); refused != nil {
		h.Detail = detail(refused)
	}
	if log := heard.log.Load(); log != nil {
		h.mention(log.noise())
	}
	return h
}

// hearsay is what can be told of a probe that has not come to its end.
type hearsay struct {
	log     atomic.Pointer[probeLog]
	refused atomic.Pointer[rpcError] // what the server answered to initialize, if that was an error
}

// knockTwice knocks at a server, and if it refuses the handshake of the legacy revisions, once more in the modern way: it may
// speak only that. What can be heard of it meanwhile is in heard.
func knockTwice(ctx context.Context, p prepared, l limit, inDetail bool, heard *hearsay) health {
	h := health{Name: p.server.Name, Status: statusDown}
	ctx, cancel := context.WithDeadlineCause(ctx, l.deadline, noResponse(l.timeout))
	defer cancel()
	err := h.knock(ctx, p, legacyKnock, inDetail, heard)
	var refused *rpcError
	if errors.As(err, &refused) {
		heard.refused.Store(refused)
		if modern := h.knock(ctx, p, modernKnock, inDetail, heard); modern == nil {
			err = nil
		}
	}
	if err != nil {
		h.Detail = detail(err)
	} else {
		h.Status, h.Detail = statusUp, "ok"
	}
	h.mention(h.noise)
	return h
}

// mention adds what the server has printed where only messages belong.
func (h *health) mention(noise string) {
	if noise != "" {
		h.Detail += fmt.Sprintf(`; stdout is for messages, and it printed "%s"`, shorten(noise)) // whose control characters the log has escaped
	}
}

// noResponse is why a server is down that did not answer in time.
func noResponse(timeout time.Duration) error {
	if timeout%(100*time.Millisecond) != 0 && timeout < 10*time.Second { // a tenth of a second is too coarse for it
		return fmt.Errorf("no response within %s", timeout)
	}
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

// oneLine is a text of a server's, or of anybody's, on one line of a terminal: it cannot act on that, nor hide in it.
func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return utf8.RuneError
	}, strings.Join(strings.Fields(text), " "))
}

// knocker opens a session in the way of an era, and fills in what the server says of itself.
type knocker func(ctx context.Context, c *client, h *health) (more *lister, err error)

// lister asks for the tools in the way of an era; nil = the server has none.
type lister struct{ meta any }

// knock starts the server, opens a session and ends it. The error says why there was none: an [*rpcError] is the server's own.
func (h *health) knock(ctx context.Context, p prepared, open knocker, inDetail bool, heard *hearsay) error {
	server := *p.server
	server.StartupTimeout = 2 * longestTimeout // ctx is what counts here
	log := &probeLog{}
	heard.log.Store(log)
	kill := make(chan struct{})
	between, err := proxy.New(proxy.Options{Server: &server, Policy: p.policy, Stderr: log, Kill: kill, Version: version()})
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
		waitFor(ctx, done, kill)
		h.noise = log.noise()
		return nil
	}
	end()
	waitFor(ctx, done, kill)
	h.noise = log.noise()
	var refused *rpcError
	if errors.As(err, &refused) && refused.Data.Source == "mcp-retry" || errors.Is(err, errClosed) {
		return log.lastWords(refused)
	}
	return err
}

// Times after that of a probe is up.
const (
	endGrace   = 800 * time.Millisecond // for the server to end, which is killed then
	probeGrace = 950 * time.Millisecond // for the probe to end
)

// waitFor waits for the end of a session, and once ctx has ended not for long: a check must not depend on the manners of a
// server, nor leave it behind.
func waitFor(ctx context.Context, done <-chan struct{}, kill chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
		late := endGrace
		if deadline, ok := ctx.Deadline(); ok {
			late = min(late, time.Until(deadline.Add(endGrace)))
		}
		select {
		case <-done:
			return
		case <-time.After(late):
		}
		close(kill)
		select {
		case <-done:
		case <-time.After(probeGrace - endGrace):
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

// Bounds of a list of tools that is read: a server may hand out cursors for ever.
const (
	maxToolPages = 1000
	maxToolBytes = 64 << 20
)

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
	for n, room := 0, maxToolBytes; n < maxToolPages && room > 0; n++ {
		result, err := c.request(ctx, "tools/list", params)
		if err != nil {
			return nil, false
		}
		room -= len(result)
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
