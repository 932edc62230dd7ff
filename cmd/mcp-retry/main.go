// Command mcp-retry stands between an MCP client and an MCP server and makes calls survive.
package main

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run carries out a command line and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out := &output{Writer: stdout}
	u := &ui{stdin: stdin, stdout: out, stderr: stderr}
	root := newRoot(u, args)
	root.SetArgs(args)
	err := root.Execute()
	if isHook(args) { // wrong usage, for all else has been said: a host takes up what a hook says only if it succeeds
		(&ui{stderr: stdout}).finish(err)
		return exitFine
	}
	return u.finish(out.lost(err))
}

func newRoot(u *ui, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "mcp-retry COMMAND",
		Short: "make calls to MCP servers survive",
		Long: `mcp-retry stands between any MCP client and any MCP server and makes calls
survive: retry, idempotency, caching, circuit breaking, timeouts, rate limits.
A config file says what happens to which call.`,
		Example: `  mcp-retry demo                                   see it at work, without any set-up
  mcp-retry init && mcp-retry install              put it before the servers that you have
  mcp-retry wrap -- npx -y @modelcontextprotocol/server-everything
  mcp-retry run --config mcp-retry.yaml            the same with a config file
  mcp-retry validate mcp-retry.yaml                what is wrong with it?
  mcp-retry check --config mcp-retry.yaml          are its servers up?`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(u.stderr) // a client that was told to start us without a command reads stdout
			_ = cmd.Help()       // as good as it gets: stderr is all there is
			return &failure{status: exitUsage}
		},
		Version:                    version(),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetIn(u.stdin)
	root.SetOut(unfailing{u.stdout})
	root.SetErr(u.stderr)
	root.SetVersionTemplate("mcp-retry {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpTemplate(helpTemplate)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd == root && !strings.HasPrefix(args[0], "-") {
			return unknownCommand(root, args[0]) // its flags are as unknown as itself
		}
		return wrongFlag(err).hint("%s --help lists the flags", cmd.CommandPath())
	})
	root.PersistentFlags().BoolP("help", "h", false, "show this text")
	root.Flags().Bool("version", false, "show the version")
	root.AddCommand(
		newRun(u), newWrap(u), newCheck(u), newValidate(u), explainsCalls(u, newExplain(u)), newSnapshot(u), newSchema(u), newConvert(u), newDemo(u), newVersion(u),
		newInit(u), newInstall(u), newUninstall(u), newDoctor(u), newCompletion(u),
		newTest(u), newDiff(u), newReplay(u),
		newMan(u), newFlaky(u),
	)
	completeFlags(root)
	for _, cmd := range append(root.Commands(), root) {
		cmd.DisableFlagsInUseLine = true
	}
	return root
}

// wrongFlag is an error about a flag. What the parser of numbers says of a value is put in words.
func wrongFlag(err error) *failure {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return usagef("%v", err)
	}
	want := "want a whole number"
	switch {
	case errors.Is(number.Err, strconv.ErrRange):
		want = "the number is too large"
	case number.Func == "ParseFloat":
		want = "want a number"
	case number.Func == "ParseBool":
		want = "want true or false"
	}
	return usagef("%s", strings.Replace(err.Error(), number.Error(), want, 1))
}

func unknownCommand(root *cobra.Command, name string) error {
	err := usagef("there is no command %q", name)
	for _, near := range root.SuggestionsFor(name) {
		err.hint("did you mean mcp-retry %s?", near)
	}
	if len(err.hints) == 0 {
		err.hint("mcp-retry --help lists them")
	}
	return err
}

// noArguments refuses words that are no flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef("unexpected argument %q", args[0]).hint("%s --help shows how it is used", cmd.CommandPath())
}
