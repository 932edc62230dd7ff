package main

import (
	"github.com/bentabol/mcp-retry/proxy"
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newRun(u *ui) *cobra.Command {
	var config, server string
	var log logFlags
	cmd := &cobra.Command{
		Use:   "run [--config FILE] [--server NAME] [flags]",
		Short: "stand between a client and a server of a config file",
		Long: `Starts a server of the config file and passes messages between it and the
client on stdin and stdout. What happens to each tools/call is decided by the
config; everything else passes untouched. This is what an MCP client is told
to start in place of the server.

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).
Without --server it is the only server of the file, or all of them behind one
endpoint: a tool or prompt is then SERVER__NAME for the client.

A change of the file is in force from the next call on; a faulty one is refused
and logged, and the old config stays. A hang-up (kill -HUP) has the file read
at once.

The log goes to stderr. The command ends when the client closes stdin.`,
		Example: `  mcp-retry run --config /path/to/mcp-retry.yaml --server github

  in the config of a client:
  "github": {
    "command": "mcp-retry",
    "args": ["run", "--config", "/path/to/mcp-retry.yaml", "--server", "github"]
  }`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() >= 0 {
				return usagef("run takes no command to start").hint("did you mean mcp-retry wrap -- COMMAND?")
			}
			return noArguments(cmd, args)
		},
		RunE: func(*cobra.Command, []string) error {
			if _, _, err := log.read(); err != nil {
				return err
			}
			servers, from, err := u.open(config, server, schema.WrapOptions{}, pickServers)
			if err != nil {
				return err
			}
			return u.serve(servers, from, &log)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "config `FILE`")
	cmd.Flags().StringVarP(&server, "server", "s", "", "`NAME` of the server in it")
	log.add(cmd)
	return cmd
}

// An origin is the config file that a session is watched for.
type origin struct {
	file      string                        // "" = none
	separator string                        // as it says
	reread    func() (proxy.Options, error) // the server and its policy as they are by then
}

// open loads the config, picks servers by the name that the user gave, which may be "", and compiles their policies; flags of
// the command line come before all rules.
func (u *ui) open(config, name string, flags schema.WrapOptions, pick func(*schema.Config, string) ([]*schema.Server, error)) (
	[]prepared, origin, error,
) {
	defer withoutGC()()
	l, err := u.openConfig(config)
	if err != nil {
		return nil, origin{}, err
	}
	servers, err := pick(l.config, name)
	if err != nil {
		return nil, origin{}, err
	}
	for _, s := range servers {
		override(s, flags)
	}
	ready, err := u.prepare(l, servers...)
	if err != nil {
		return nil, origin{}, err
	}
	from := origin{file: l.config.File, separator: l.config.Separator}
	from.reread = func() (proxy.Options, error) {
		o, err := proxy.Open(from.file, name)
		if err == nil && o.Server != nil {
			o.Servers, o.Server = []proxy.Member{{Server: o.Server}}, nil
		}
		for i := range o.Servers {
			override(o.Servers[i].Server, flags)
			o.Servers[i].Policy = nil // it was compiled without the flags
		}
		return o, err
	}
	return ready, from, nil
}

// pickOne is [pickServer] where several may be picked.
func pickOne(c *schema.Config, name string) ([]*schema.Server, error) {
	s, err := pickServer(c, name)
	return []*schema.Server{s}, err
}

// pickServers is the server of that name, or all if there is no name.
func pickServers(c *schema.Config, name string) ([]*schema.Server, error) {
	if name == "" && len(c.Servers) > 1 {
		return c.Servers, nil
	}
	return pickOne(c, name)
}
