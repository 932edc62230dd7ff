package main

import (
	"encoding/json"
	"io"
)

// jsonFinding is a finding in the JSON report. Lines and columns count from 1, columns and lengths in characters.
type jsonFinding struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Length  int      `json:"length"`
	Level   string   `json:"level"`
	Rule    string   `json:"rule"` // MR001
	ID      string   `json:"id"`   // unknown-key
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Fix     *jsonFix `json:"fix,omitempty"`
}

// jsonFix is a correction that cannot be wrong: the characters from column on are replaced by text.
type jsonFix struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Length int    `json:"length"`
	Text   string `json:"text"`
}

// reportJSON is one object, for programs of the user's.
func reportJSON(w io.Writer, files []checkedFile, _ reportStyle) error {
	var report struct {
		Files    []string      `json:"files"`
		Errors   int           `json:"errors"`
		Warnings int           `json:"warnings"`
		Notes    int           `json:"notes"`
		Findings []jsonFinding `json:"findings"`
	}
	report.Files, report.Findings = []string{}, []jsonFinding{}
	report.Errors, report.Warnings, report.Notes = count(files)
	for _, file := range files {
		report.Files = append(report.Files, file.name)
		for _, f := range file.findings {
			found := jsonFinding{
				File: file.name, Line: f.Pos.Line, Column: f.Pos.Col, Length: max(f.Pos.Len, 1),
				Level: f.Level.String(), Rule: f.Code(), ID: f.ID, Message: f.Message, Hint: f.Hint,
			}
			if at := f.Fix.Pos; at.Line > 0 {
				found.Fix = &jsonFix{Line: at.Line, Column: at.Col, Length: max(at.Len, 1), Text: f.Fix.Text}
			}
			report.Findings = append(report.Findings, found)
		}
	}
	return writeJSON(w, report)
}

// writeJSON writes a value as people can read it.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
