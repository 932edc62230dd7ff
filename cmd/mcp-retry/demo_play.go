package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bentabol/mcp-retry/proxy"
	"github.com/bentabol/mcp-retry/proxy/flaky"
)

const (
	demoPatience = 1400 * time.Millisecond // how long the demo's client waits for an answer
	outage       = 1200                    // milliseconds for which the backend is down
	afterwards   = 1300 * time.Millisecond // from the first call of the outage to the call after it, at least
)

// demoScript is the server of the demo: what each of its tools comes to, attempt by attempt.
func demoScript(ledger string) flaky.Script {
	reads := &flaky.Annotations{ReadOnly: new(true)}
	return flaky.Script{
		Name:   "shop",
		Ledger: ledger,
		Tools: []flaky.Tool{
			{Name: "get_forecast", Annotations: reads, Plan: flaky.Plan{
				Outcomes: []flaky.Outcome{{Hang: true}, {Error: &flaky.Error{Code: -32000, Message: "busy"}}},
			}},
			{Name: "charge_card", Annotations: &flaky.Annotations{ReadOnly: new(false), Destructive: new(true)}, Plan: flaky.Plan{
				Outcomes: []flaky.Outcome{{Sleep: 1800}},
			}},
			{Name: "get_rates", Annotations: reads, Plan: flaky.Always(flaky.Outcome{Sleep: 120})},
			{Name: "search", Annotations: reads, Plan: flaky.Plan{
				Outage: &flaky.Outage{For: outage, Outcome: flaky.Outcome{Sleep: 80, Error: &flaky.Error{Code: -32000, Message: "the backend is down"}}},
			}},
		},
		Faults: flaky.Faults{Lifetime: flaky.Millis(demoTime.Milliseconds())},
	}
}

// demoScene is one thing that goes wrong, and what the client does about it.
type demoScene struct {
	title string
	tool  string
	play  func(ctx context.Context, s *side) []called
}

// demoScenes are the scenes, in order.
var demoScenes = []demoScene{
	{
		title: "A read. The first time no answer comes, the second time the server is busy.",
		tool:  "get_forecast",
		play: func(ctx context.Context, s *side) []called {
			return []called{s.call(ctx, "get_forecast", map[string]any{"city": "Oslo"})}
		},
	},
	{
		title: "A payment. Its answer comes only after the client has lost patience and asked again.",
		tool:  "charge_card",
		play: func(ctx context.Context, s *side) []called {
			payment := map[string]any{"order": "A-1001", "amount": 25}
			first := s.call(ctx, "charge_card", payment)
			return []called{first, s.call(ctx, "charge_card", payment)}
		},
	},
	{
		title: "A slow read, three times.",
		tool:  "get_rates",
		play: func(ctx context.Context, s *side) (calls []called) {
			for range 3 {
				calls = append(calls, s.call(ctx, "get_rates", map[string]any{"base": "EUR"}))
			}
			return calls
		},
	},
	{
		title: fmt.Sprintf("A backend that is down for %.1fs. Six calls, and one more when it is well again.", float64(outage)/1000),
		tool:  "search",
		play: func(ctx context.Context, s *side) (calls []called) {
			well := time.Now().Add(afterwards)
			for n := range 6 {
				calls = append(calls, s.call(ctx, "search", map[string]any{"query": "lamp", "page": n}))
			}
			if told := time.Now().Add(calls[5].retryAfter + 100*time.Millisecond); told.After(well) {
				well = told
			}
			pause(ctx, time.Until(well))
			return append(calls, s.call(ctx, "search", map[string]any{"query": "lamp", "page": 6}))
		},
	},
}

// called is what the client saw of a call.
type called struct {
	took       time.Duration
	err        error         // nil = a result came
	refused    bool          // the proxy answered without asking the server
	retryAfter time.Duration // when the refusal says to come back
}

// lost reports whether no answer came.
func (c called) lost() bool { return errors.Is(c.err, errNoAnswer) }

var errNoAnswer = errors.New("no answer")

// facts is what a scene came to on one side.
type facts struct {
	calls      []called
	attempts   int         // calls that reached the server, by its ledger
	executions int         // how often it did the work, by its ledger
	log        []logRecord // of the proxy, about the scene; nil without one
	err        error       // why the scene could not be played
}

// side is a client with a server, and perhaps a proxy in between.
type side struct {
	client *client
	ledger string
	log    *records // of the proxy; nil without one
	stop   func()
}

// startWithout starts a server that the client speaks to directly.
func startWithout(ctx context.Context, folder string) (*side, error) {
	ledger := filepath.Join(folder, "without")
	server, err := demoServer(ledger)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, server.Command, server.Args...)
	cmd.Env = append(os.Environ(), flaky.EnvVar+"="+server.Env[flaky.EnvVar])
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		in.Close()
		_ = cmd.Wait() // it ends with its input
	}
	return &side{client: newClient(in, out), ledger: ledger, stop: stop}, nil
}

// startWith starts a proxy that the client speaks to, which starts the server.
func startWith(ctx context.Context, folder string) (*side, error) {
	ledger := filepath.Join(folder, "with")
	server, err := demoServer(ledger)
	if err != nil {
		return nil, err
	}
	compiled, err := demoPolicy(server)
	if err != nil {
		return nil, err
	}
	log := &records{}
	between, err := proxy.New(proxy.Options{
		Server: server, Policy: compiled, Stderr: log, LogLevel: slog.LevelDebug, Seed: 1, Version: version(),
	})
	if err != nil {
		return nil, err
	}
	c, done := through(ctx, between)
	stop := func() {
		c.out.Close()
		<-done
	}
	return &side{client: c, ledger: ledger, log: log, stop: stop}, nil
}

// playAll makes the handshake and plays the scenes one after the other.
func (s *side) playAll(ctx context.Context) <-chan facts {
	played := make(chan facts, len(demoScenes))
	go func() {
		if _, err := s.client.initialize(ctx, "mcp-retry demo"); err != nil {
			played <- facts{err: fmt.Errorf("initialize: %w", err)}
			return
		}
		if _, err := s.client.request(ctx, "tools/list", struct{}{}); err != nil {
			played <- facts{err: fmt.Errorf("tools/list: %w", err)}
			return
		}
		for _, scene := range demoScenes {
			played <- s.play(ctx, scene)
		}
	}()
	return played
}

// play plays one scene and gathers what is known of it.
func (s *side) play(ctx context.Context, scene demoScene) facts {
	f := facts{calls: scene.play(ctx, s)}
	if ctx.Err() != nil {
		f.err = context.Cause(ctx)
		return f
	}
	ledger, err := flaky.ReadLedger(s.ledger)
	if err != nil {
		f.err = err
		return f
	}
	f.attempts, f.executions = ledger.Attempts(scene.tool), ledger.Executions(scene.tool)
	if s.log != nil {
		f.log = s.log.about(ctx, scene.tool, len(f.calls))
	}
	return f
}

// call calls a tool, as an impatient client does.
func (s *side) call(ctx context.Context, tool string, arguments map[string]any) called {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, errNoAnswer)
	defer cancel()
	began := time.Now()
	_, err := s.client.request(ctx, "tools/call", map[string]any{"name": tool, "arguments": arguments})
	c := called{took: time.Since(began), err: err}
	var answered *rpcError
	if errors.As(err, &answered) && answered.Data.Source == "mcp-retry" {
		c.refused = answered.Data.Kind == "circuit_open"
		c.retryAfter = time.Duration(answered.Data.RetryAfterMs) * time.Millisecond
	}
	return c
}

// pause waits, and reports whether ctx allowed it.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
