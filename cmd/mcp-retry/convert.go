package main

import (
	"slices"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newConvert(u *ui) *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "print a config of mcp-shield in the spelling of mcp-retry",
		Long: `Prints a config in mcp-shield's spelling in our own, with the same rules: keys
are renamed, a command in one string becomes command and args, and what
mcp-shield takes for granted (two retries, the first after a second) is stated.
Comments and order stay. A file in our spelling is printed as it is.

mcp-shield's files need not be converted: run and wrap load them as they are.
What they cannot say, as caching or rules, needs our spelling.

Without FILE or --config the file is ./mcp-shield.yaml.

Exit status: 0 if it is printed, 1 if something in it cannot be rewritten where it
stands (such as an alias), 2 if the file cannot be used.`,
		Example: `  mcp-retry convert mcp-shield.yaml > mcp-retry.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return noArguments(cmd, args[1:])
			}
			if len(args) == 1 && config != "" {
				return usagef("both --config %q and %q name the file", config, args[0]).hint("leave out one")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				config = args[0]
			}
			if config == "" {
				config = "mcp-shield.yaml"
			}
			return u.convert(config)
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "the config `FILE`")
	return cmd
}

func (u *ui) convert(path string) error {
	text, err := schema.ReadFile(path)
	if err != nil {
		return cannotRead(path, err)
	}
	converted, findings := schema.Convert(path, text)
	if converted == nil {
		l := loadText(path, text)
		findings.Render(u.stderr, l.shown(), colors(u.stderr))
		if slices.ContainsFunc(l.findings, func(f schema.Finding) bool { return f.Level == schema.Error && f.ID != unsetVariable }) {
			return &failure{status: exitUsage}
		}
		return &failure{status: exitFailed} // it can be used, and run will
	}
	_, err = u.stdout.Write(converted)
	return err
}
