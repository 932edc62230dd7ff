package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/flaky"
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

// demoConfig is the config of the demo; it is shown on the screen, and it is what runs.
//
//go:embed demo.yaml
var demoConfig []byte

// demoTime is far more than the demo takes, whatever goes wrong.
const demoTime = 30 * time.Second

func newDemo(u *ui) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "show what it does, with a flaky server of its own",
		Long: `Starts a flaky MCP server twice, lets a small client make the same calls to
both, to one directly and to the other through mcp-retry, and shows what came
of it: a retry, a payment that is not made twice, a cached read, and a circuit
breaker that opens and closes. It takes some seconds and needs nothing: no
network, no config, no other program.`,
		Example: `  mcp-retry demo`,
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := untilSignal()
			defer stop()
			if _, err := u.demo(ctx); err != nil {
				if ctx.Err() != nil {
					return signalled(ctx)
				}
				if errors.Is(err, syscall.EPIPE) {
					return &failure{status: 128 + int(syscall.SIGPIPE)} // whoever read it has seen enough
				}
				return fmt.Errorf("running the demo: %w", err)
			}
			return nil
		},
	}
}

// demo plays all scenes on both sides at the same time, prints each when both have played it, and returns what it printed.
func (u *ui) demo(ctx context.Context) ([]playedScene, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoTime, fmt.Errorf("it is not done after %s", demoTime))
	defer cancel()
	folder, err := os.MkdirTemp("", "mcp-retry-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	without, err := startWithout(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer without.stop()
	with, err := startWith(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer with.stop()

	began := time.Now()
	screen := &screen{out: u.stdout, color: colors(u.stdout)}
	screen.head()
	left, right := without.playAll(ctx), with.playAll(ctx)
	var played []playedScene
	for _, scene := range demoScenes {
		p := playedScene{scene: scene, without: <-left, with: <-right}
		for _, facts := range []facts{p.without, p.with} {
			if facts.err != nil {
				return nil, facts.err
			}
		}
		if screen.scene(p); screen.err != nil {
			return nil, screen.err
		}
		played = append(played, p)
	}
	screen.foot(time.Since(began))
	return played, screen.err
}

// demoServer is the entry of the demo's config, with ourselves as its command.
func demoServer(ledger string) (*schema.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config, findings := schema.Load("demo.yaml", demoConfig, nil)
	if findings.HasErrors() {
		return nil, fmt.Errorf("%s", findings[0])
	}
	server := config.Servers[0]
	server.Command, server.Args = self, []string{flakyCommand}
	server.Env = map[string]string{flaky.EnvVar: demoScript(ledger).String()}
	return server, nil
}

// demoPolicy compiles the rules of the demo's server.
func demoPolicy(server *schema.Server) (*policy.Policy, error) {
	compiled, findings := policy.Compile(server)
	if compiled == nil {
		return nil, fmt.Errorf("%s", findings[0])
	}
	return compiled, nil
}

// shownConfig is the part of the config that is shown: the settings of the server.
func shownConfig() []string {
	_, settings, _ := strings.Cut(string(demoConfig), "command: flaky-server\n")
	return strings.Split(strings.TrimRight(settings, "\n"), "\n")
}
