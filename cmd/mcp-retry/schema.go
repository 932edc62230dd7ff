package main

import (
	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newSchema(u *ui) *cobra.Command {
	var asJSON, asCUE, ofTests, ofShield bool
	cmd := &cobra.Command{
		Use:   "schema [--json|--cue] [--test|--shield]",
		Short: "print the schema of config files",
		Long: `Prints what a config file may hold: as JSON Schema (the default), with which
editors complete and check the file while it is typed, or in CUE, which is the
reference manual: every key with its meaning, bounds and default.

--test prints that of files of policy tests instead, --shield that of config
files in mcp-shield's spelling, which run takes as they are; each in either form.`,
		Example: `  mcp-retry schema > mcp-retry.schema.json

  then, as the first line of mcp-retry.yaml:
  # yaml-language-server: $schema=./mcp-retry.schema.json

  mcp-retry schema --cue | less`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON && asCUE {
				return usagef("--json and --cue are two ways to print one schema").hint("leave one of them out")
			}
			if ofTests && ofShield {
				return usagef("--test and --shield name two schemas").hint("leave one of them out")
			}
			text := schema.JSONSchema
			switch {
			case ofTests && asCUE:
				text = schema.TestCUE
			case ofTests:
				text = schema.TestJSONSchema
			case ofShield && asCUE:
				text = schema.ShieldCUE
			case ofShield:
				text = schema.ShieldJSONSchema
			case asCUE:
				text = schema.CUE
			}
			_, err := u.stdout.Write(text())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON Schema, the default")
	cmd.Flags().BoolVar(&asCUE, "cue", false, "in CUE")
	cmd.Flags().BoolVar(&ofTests, "test", false, "of files of policy tests, in place of configs; goes with --json and --cue")
	cmd.Flags().BoolVar(&ofShield, "shield", false, "of config files in mcp-shield's spelling; goes with --json and --cue")
	return cmd
}
