package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// reportCompact is a line for each finding, as grep and compilers write and editors jump to.
func reportCompact(w io.Writer, files []checkedFile, _ reportStyle) error {
	for _, file := range files {
		for _, f := range file.findings {
			if _, err := fmt.Fprintf(w, "%s: %s: %s [%s %s]\n", oneLiner(f.Pos.String()), f.Level, oneLiner(advice(f)), f.Code(), f.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// oneLiner replaces what would break a line or act on a terminal.
func oneLiner(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '\uFFFD'
	}, s)
}
