package main

import (
	"bytes"
	"io"
)

// reportPretty is for people: each finding with its line of the file and a caret under what is meant.
func reportPretty(w io.Writer, files []checkedFile, style reportStyle) error {
	var out bytes.Buffer
	for _, file := range files {
		file.findings.Render(&out, file.text, style.color)
	}
	if out.Len() == 0 {
		return nil
	}
	_, err := w.Write(out.Bytes())
	return err
}
