package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newWrap(u *ui) *cobra.Command {
	var config, server, name string
	var options schema.WrapOptions
	var log logFlags
	cmd := &cobra.Command{
		Use:   "wrap [flags] -- COMMAND [ARG...]",
		Short: "stand between a client and a server, without a config file",
		Long: `Starts COMMAND as the server and passes messages between it and the client on
stdin and stdout, with sensible defaults: a call is given 30 s, and what fails
in a way that a repetition may mend is tried twice more, if that is safe. The
words after -- are the command's own, exactly; no shell reads them.

With --config it starts a server of a config file, as run does; --timeout and
--retries then win over everything that the file says.`,
		Example: `  mcp-retry wrap -- npx -y @modelcontextprotocol/server-github
  mcp-retry wrap --timeout 60s --retries 5 -- python server.py
  mcp-retry wrap --config mcp-shield.yaml --server github --retries 0

  in the config of a client:
  "github": {
    "command": "mcp-retry",
    "args": ["wrap", "--", "npx", "-y", "@modelcontextprotocol/server-github"]
  }`,
		RunE: func(cmd *cobra.Command, argv []string) error {
			if _, _, err := log.read(); err != nil {
				return err
			}
			if config == "" && server != "" {
				return usagef("--server names a server in a config file").hint("add --config FILE, or use --name to name the command's server")
			}
			if config == "" {
				p, err := wrapped(name, argv, options)
				if err != nil {
					return err
				}
				return u.serve([]prepared{p}, origin{}, &log)
			}
			if len(argv) > 0 {
				return usagef("both a config file and a command").hint("give --config and --server, or a command after --")
			}
			if name != "" {
				return usagef("--name is for a command").hint("with --config, --server picks the server")
			}
			servers, from, err := u.open(config, server, options, pickOne)
			if err != nil {
				return err
			}
			return u.serve(servers, from, &log)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the command's own flags are its own, with or without --
	flags.Var(durationFlag{&options.Timeout}, "timeout", "how long one attempt may take without an answer or progress: 60s, 500ms, or seconds (default 30s)")
	flags.Var(retriesFlag{&options.Retries}, "retries", "how often a call is tried again after the first attempt, 0 to 10 (default 2)")
	flags.StringVar(&name, "name", "", "`NAME` of the server in logs and errors (default: the command's)")
	flags.StringVarP(&config, "config", "c", "", "config `FILE`, in place of a command")
	flags.StringVarP(&server, "server", "s", "", "`NAME` of the server in the config file")
	log.add(cmd)
	return cmd
}

// wrapped is the server that a command line describes.
func wrapped(name string, argv []string, options schema.WrapOptions) (prepared, error) {
	if len(argv) == 0 || argv[0] == "" {
		return prepared{}, usagef("no command to wrap").hint("it goes after --: mcp-retry wrap -- npx -y SERVER")
	}
	if name == "" {
		name = filepath.Base(argv[0])
		switch ext := filepath.Ext(name); strings.ToLower(ext) {
		case ".exe", ".cmd", ".bat":
			name = strings.TrimSuffix(name, ext)
		}
	}
	defer withoutGC()()
	server := schema.Wrap(name, argv, options).Servers[0]
	compiled, findings := policy.Compile(server)
	if compiled == nil {
		return prepared{}, usagef("%s", findings[0].Message)
	}
	return prepared{server, compiled}, nil
}

// override puts what the command line says before all rules of the server.
func override(server *schema.Server, flags schema.WrapOptions) {
	state := func(flag string, decision schema.Decision, value any) {
		rule := schema.Rule{Name: flag, Origin: flag, Decides: []schema.Setting{{Decision: decision, Literal: value}}}
		server.Rules = slices.Insert(server.Rules, 0, rule)
	}
	if flags.Timeout != nil {
		state("--timeout", schema.CallTimeout, *flags.Timeout)
	}
	if flags.Retries != nil {
		state("--retries", schema.MaxRetries, int64(*flags.Retries))
	}
}
