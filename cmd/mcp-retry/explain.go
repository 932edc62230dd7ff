package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
	"github.com/spf13/cobra"
)

func newExplain(u *ui) *cobra.Command {
	var config, server string
	var rules bool
	cmd := &cobra.Command{
		Use:   "explain [RULE | --rules | --config FILE [--server NAME]]",
		Short: "say what a finding means, or show a config as the rules that it amounts to",
		Long: `With a RULE, which is the number or the name of a finding of validate, says why
it is one and how to mend it, with an example. --rules lists them.

Else prints the config in its normal form: for each server how it is started,
and all rules that decide about its calls, in the order in which they are asked.
For each decision the first rule that states it and applies decides. Rules of
the file come first, the numeric defaults and the built-in policy last.
Values of env are not shown.

Without --config the file is ./mcp-retry.yaml (or .yml, .json, .cue).`,
		Example: `  mcp-retry explain MR014
  mcp-retry explain unknown-key
  mcp-retry explain --config mcp-retry.yaml --server github`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return noArguments(cmd, args[1:])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && (rules || config != "" || server != ""):
				return usagef("rule %q is explained without flags", args[0]).hint("leave them out")
			case len(args) > 0:
				return u.explainRule(args[0])
			case rules:
				return u.listRules()
			}
			return u.explainConfig(config, server)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "config `FILE`")
	cmd.Flags().StringVarP(&server, "server", "s", "", "`NAME` of the only server to show")
	cmd.Flags().BoolVar(&rules, "rules", false, "list the rules of findings")
	return cmd
}

// explainConfig prints a config in normal form.
func (u *ui) explainConfig(config, server string) error {
	l, err := u.openConfig(config)
	if err != nil {
		return err
	}
	shown := l.config.Servers
	if server != "" {
		one, err := pickServer(l.config, server)
		if err != nil {
			return err
		}
		shown = []*schema.Server{one}
	}
	return schema.WriteNormal(u.stdout, &schema.Config{File: l.config.File, Servers: shown})
}

// explainRule prints what is known of a kind of finding.
func (u *ui) explainRule(name string) error {
	e, ok := schema.Lookup(name)
	if !ok {
		err := usagef("there is no rule %q", name)
		if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".cue") {
			return err.hint("to see a config as rules: mcp-retry explain --config %s", name)
		}
		if near := schema.Nearest(name); near != "" {
			return err.hint("did you mean %s?", near)
		}
		return err.hint("mcp-retry explain --rules lists them")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s (%s)\n%s\n\n", e.Code(), e.ID, e.Level, e.Title)
	writeWrapped(&out, e.Why)
	out.WriteByte('\n')
	writeWrapped(&out, e.Fix)
	if e.Bad != "" {
		out.WriteString("\nnot so:\n\n")
		writeIndented(&out, e.Bad)
		out.WriteString("\nbut so:\n\n")
		writeIndented(&out, e.Good)
	}
	if e.Level != schema.Error {
		out.WriteString("\nif it is right as it is, say why, on its line or above it:\n\n")
		fmt.Fprintf(&out, "    # mcp-retry ignore: %s REASON\n", e.Code())
	}
	_, err := io.WriteString(u.stdout, out.String())
	return err
}

// listRules prints a line for each kind of finding.
func (u *ui) listRules() error {
	for _, e := range schema.Catalog() {
		if _, err := fmt.Fprintf(u.stdout, "%s  %-7s  %-23s  %s\n", e.Code(), e.Level, e.ID, e.Title); err != nil {
			return err
		}
	}
	return nil
}

// textWidth is how wide a text for people is set.
const textWidth = 80

// writeWrapped sets a paragraph.
func writeWrapped(w io.Writer, text string) {
	width := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case width+1+n > textWidth:
			fmt.Fprintln(w)
			width = 0
		default:
			fmt.Fprint(w, " ")
			width++
		}
		fmt.Fprint(w, word)
		width += n
	}
	fmt.Fprintln(w)
}

// writeIndented sets an example.
func writeIndented(w io.Writer, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\n"))
	}
}
