package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// newMan writes the manual. The pages are written here and not by cobra's own generator, which would bring
// two Markdown libraries with it.
func newMan(u *ui) *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "write the manual pages",
		Long: `Writes the manual page of mcp-retry and one of each command to DIR, or prints
the one of mcp-retry.`,
		Example: `  mcp-retry man | man -l -
  mcp-retry man /usr/local/share/man/man1`,
		Args: func(cmd *cobra.Command, args []string) error { return noArguments(cmd, args[min(1, len(args)):]) },
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				_, err := u.stdout.Write(manPage(root))
				return err
			}
			for _, c := range append([]*cobra.Command{root}, root.Commands()...) {
				if c != root && !c.IsAvailableCommand() {
					continue
				}
				file := filepath.Join(args[0], manName(c)+".1")
				if err := os.WriteFile(file, manPage(c), 0o644); err != nil {
					var broken *os.PathError
					errors.As(err, &broken)
					f := usagef("cannot write %q: %v", file, broken.Err)
					if errors.Is(err, fs.ErrNotExist) {
						f.hint("make the directory first: mkdir -p %q", args[0])
					}
					return f
				}
			}
			return nil
		},
	}
}

// manName is the name of a command's page.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage is the manual page of a command, in the man macros of troff. It has no date, so that it is always the same.
func manPage(c *cobra.Command) []byte {
	c.InitDefaultHelpFlag()
	var page bytes.Buffer
	fmt.Fprintf(&page, ".TH \"%s\" 1 \"\" \"mcp-retry %s\" \"User commands\"\n", strings.ToUpper(manName(c)), troff(version()))
	fmt.Fprintf(&page, ".SH NAME\n%s \\- %s\n", troff(manName(c)), troff(c.Short))
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.nf\n%s\n.fi\n", troff(c.UseLine()))
	page.WriteString(".SH DESCRIPTION\n")
	manText(&page, c.Long)
	if c.HasAvailableSubCommands() {
		page.WriteString(".SH COMMANDS\n")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&page, ".TP\n.B %s\n%s\n", troff(sub.Name()), troff(sub.Short))
			}
		}
	}
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		page.WriteString(".SH OPTIONS\n.nf\n")
		manLines(&page, flags)
		page.WriteString(".fi\n")
	}
	page.WriteString(".SH EXAMPLES\n.nf\n")
	manLines(&page, c.Example)
	page.WriteString(".fi\n")
	if c.HasParent() {
		page.WriteString(".SH SEE ALSO\n.BR mcp-retry (1)\n")
	} else {
		page.WriteString(".SH EXIT STATUS\n0 fine; 1 findings, failed, down; 2 wrong usage or unreadable input; 128+n ended by signal n.\n")
	}
	return page.Bytes()
}

// manText writes paragraphs.
func manText(page *bytes.Buffer, text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			page.WriteString(".PP\n")
		}
		manLines(page, paragraph)
	}
}

func manLines(page *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		page.WriteString(troff(strings.TrimRight(line, "\n")) + "\n")
	}
}

// otherLetters are those that troff takes for bytes of Latin-1.
var otherLetters = regexp.MustCompile(`[^\x00-\x7F]`)

// troff is a text that troff prints as it is.
func troff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	text = otherLetters.ReplaceAllStringFunc(text, func(letter string) string { return fmt.Sprintf(`\[u%04X]`, []rune(letter)[0]) })
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text // at the beginning of a line these would be a request
	}
	return text
}
