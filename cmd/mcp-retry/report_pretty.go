package main

import "io"

// reportPretty is for people: each finding with its line of the file and a caret under what is meant.
func reportPretty(w io.Writer, files []checkedFile, style reportStyle) error {
	for _, file := range files {
		file.findings.Render(w, file.text, style.color)
	}
	return nil
}
