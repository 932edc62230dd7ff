package main

import (
	"os"

	"github.com/bentabol/mcp-retry/proxy/flaky"
	"github.com/spf13/cobra"
)

// flakyCommand is the name of the hidden command that makes us the server of the demo.
const flakyCommand = "__flaky"

func newFlaky(u *ui) *cobra.Command {
	return &cobra.Command{
		Use:     flakyCommand + " [SCRIPT]",
		Short:   "be a scripted MCP server that misbehaves",
		Long:    `Serves MCP on stdin and stdout as a script says, which is a file or the value of ` + flaky.EnvVar + `.`,
		Example: `  mcp-retry ` + flakyCommand + ` script.json`,
		Hidden:  true,

		DisableFlagParsing: true, // further words are for nobody; they show that they arrive
		RunE: func(_ *cobra.Command, args []string) error {
			source := os.Getenv(flaky.EnvVar)
			if source == "" && len(args) > 0 {
				source = args[0]
			}
			if source == "" {
				return usagef("no script").hint("name a file, or set %s", flaky.EnvVar)
			}
			if status := flaky.Main(source, u.stdin, unwrapped(u.stdout), u.stderr); status != exitFine {
				return &failure{status: status}
			}
			return nil
		},
	}
}
