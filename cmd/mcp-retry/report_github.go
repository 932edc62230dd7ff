package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// reportGitHub is workflow commands, which GitHub Actions shows as annotations in the changed file ("Workflow commands for GitHub
// Actions", "Setting an error message").
func reportGitHub(w io.Writer, files []checkedFile, _ reportStyle) error {
	for _, file := range files {
		for _, f := range file.findings {
			command := map[schema.Level]string{schema.Error: "error", schema.Warning: "warning", schema.Note: "notice"}[f.Level]
			_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,endLine=%d,col=%d,endColumn=%d,title=%s::%s\n", command,
				githubProperty(filepath.ToSlash(file.name)), max(f.Pos.Line, 1), max(f.Pos.Line, 1), max(f.Pos.Col, 1), max(f.Pos.Col, 1)+max(f.Pos.Len, 1)-1,
				githubProperty(f.Code()+" "+f.ID), githubData(advice(f)))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// githubData escapes a message: what would end the command.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty escapes the value of a property: what would end it too.
func githubProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
