package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/bentabol/mcp-retry/policy/policytest"
	"github.com/spf13/cobra"
)

func newDiff(u *ui) *cobra.Command {
	var tools, format string
	cmd := &cobra.Command{
		Use:   "diff OLD NEW --tools FILE [--format FORMAT]",
		Short: "say which tools two config files treat differently",
		Long: `Asks both configs what they decide about a call of each tool, before it and
after each kind of end of its first attempt, and prints which decisions differ,
and which settings of a server: for the comment of a pull request. Nothing is
started; the tools come from a file that mcp-retry snapshot wrote. Errors come
with the codes, texts and data that the rules name. Arguments are made up from
the tools' schemas, so a rule for certain arguments may go unnoticed, as may one
for later attempts or for certain results. That a value of env is another is
said, and not what it is.

Exit status: 0 whether there is a difference or not, 2 if a file cannot be used.`,
		Example: `  mcp-retry snapshot -o tools.json
  git show main:mcp-retry.yaml > old.yaml
  mcp-retry diff old.yaml mcp-retry.yaml --tools tools.json --format markdown`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("diff takes two config files, not %d", len(args)).hint("mcp-retry diff OLD NEW --tools FILE")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, *policytest.Difference) error{
				"text": diffText, "markdown": diffMarkdown, "json": diffJSON,
			}[format]
			switch {
			case !ok:
				return usagef("there is no format %q", format).hint("there is text, markdown, json")
			case tools == "":
				return usagef("the tools are not known").hint("mcp-retry snapshot -o tools.json writes them down; then --tools tools.json")
			}
			s, err := readSnapshot(tools)
			if err != nil {
				return err
			}
			old, err := u.side(args[0])
			if err != nil {
				return err
			}
			now, err := u.side(args[1])
			if err != nil {
				return err
			}
			return write(u.stdout, policytest.Compare(old, now, func(server string) []json.RawMessage { return s.Servers[server].Tools }))
		},
	}
	cmd.Flags().StringVar(&tools, "tools", "", "`FILE` with the servers' tools, written by mcp-retry snapshot")
	cmd.Flags().StringVar(&format, "format", "text", "`FORMAT`: text, markdown, json")
	return cmd
}

// side loads a config and compiles its policies.
func (u *ui) side(file string) (policytest.Side, error) {
	l, err := u.openConfig(file)
	if err != nil {
		return policytest.Side{}, err
	}
	side := policytest.Side{Config: l.config}
	for _, server := range l.config.Servers {
		compiled, err := u.compile(l, server)
		if err != nil {
			return side, err
		}
		side.Policies = append(side.Policies, compiled)
	}
	return side, nil
}

func diffJSON(w io.Writer, d *policytest.Difference) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}

// diffSummary says in a line what the difference amounts to.
func diffSummary(d *policytest.Difference) string {
	if len(d.Tools)+len(d.Servers)+len(d.Settings) == 0 && len(d.Added)+len(d.Removed) == 0 {
		return fmt.Sprintf("no difference for %s", counted(d.Same, "tool"))
	}
	text := fmt.Sprintf("%s treated differently, %d as before", counted(len(d.Tools), "tool"), d.Same)
	if len(d.Servers) > 0 {
		text += "; settings of " + counted(len(d.Servers), "server")
	}
	if len(d.Added) > 0 {
		text += "; new servers: " + strings.Join(d.Added, ", ")
	}
	if len(d.Removed) > 0 {
		text += "; servers gone: " + strings.Join(d.Removed, ", ")
	}
	return text
}

// decidedBy is a value with the rule that states it.
func decidedBy(value, rule string) string {
	switch {
	case value == "" && rule == "":
		return "not stated"
	case rule == "":
		return value
	}
	return value + " (" + rule + ")"
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

// momentOf says when a change shows.
func momentOf(c *policytest.Change) string {
	if len(c.After) == 0 {
		return "before the call"
	}
	return "after " + strings.Join(c.After, ", ")
}

func diffText(w io.Writer, d *policytest.Difference) error {
	var out strings.Builder
	for _, c := range d.Settings {
		fmt.Fprintf(&out, "%-20s %s → %s\n", c.Setting, orNothing(c.Old), orNothing(c.New))
	}
	for _, s := range d.Servers {
		fmt.Fprintf(&out, "%s\n", s.Server)
		for _, c := range s.Settings {
			fmt.Fprintf(&out, "  %-18s %s → %s\n", c.Setting, orNothing(c.Old), orNothing(c.New))
		}
	}
	for _, t := range d.Tools {
		fmt.Fprintf(&out, "%s: %s\n", t.Server, t.Tool)
		for i := range t.Changes {
			c := &t.Changes[i]
			fmt.Fprintf(&out, "  %-18s %s → %s, %s\n", c.Decision, decidedBy(c.Old, c.OldRule), decidedBy(c.New, c.NewRule), momentOf(c))
		}
	}
	fmt.Fprintf(&out, "%s\n", diffSummary(d))
	_, err := io.WriteString(w, out.String())
	return err
}

func diffMarkdown(w io.Writer, d *policytest.Difference) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### mcp-retry: %s\n", diffSummary(d))
	if len(d.Tools) > 0 {
		out.WriteString("\n| tool | decision | when | old | new |\n|---|---|---|---|---|\n")
	}
	for _, t := range d.Tools {
		for i := range t.Changes {
			c := &t.Changes[i]
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", code(t.Server+": "+t.Tool), code(string(c.Decision)), plain(momentOf(c)),
				code(decidedBy(c.Old, c.OldRule)), code(decidedBy(c.New, c.NewRule)))
		}
	}
	if len(d.Servers)+len(d.Settings) > 0 {
		out.WriteString("\n| server | setting | old | new |\n|---|---|---|---|\n")
	}
	for _, c := range d.Settings {
		fmt.Fprintf(&out, "| all | %s | %s | %s |\n", code(c.Setting), code(orNothing(c.Old)), code(orNothing(c.New)))
	}
	for _, s := range d.Servers {
		for _, c := range s.Settings {
			fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", code(s.Server), code(c.Setting), code(orNothing(c.Old)), code(orNothing(c.New)))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// code is text in a cell of a table in Markdown, as it is.
func code(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`, "\n", " ").Replace(s) + "`"
}

// plain is text in a cell of a table in Markdown that is none of its marks.
func plain(s string) string { return plainCell.Replace(s) }

var plainCell = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;", "&", "&amp;", "@", "&#64;", "\n", " ")
