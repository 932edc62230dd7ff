package main

import (
	"bytes"
	"io"
	"os"

	"github.com/bentabol/mcp-retry/policy/policytest"
)

// update writes what came into the test files as what is expected, and prints the difference. What cannot be mended so is a
// failure.
func (u *ui) update(r *policytest.Report, status int) error {
	for i := range r.Files {
		f := &r.Files[i]
		text, kept := f.Update()
		file := f.Suite.File.File
		if !bytes.Equal(text, f.Suite.Text) {
			if err := replaceFile(file, text); err != nil {
				return usagef("cannot write %q: %v", file, err)
			}
			writeDiff(u.stdout, file, f.Suite.Text, text)
		}
		for _, failure := range kept {
			u.warnf("not updated: %v", failure)
			status = max(status, exitFailed)
		}
	}
	if status != exitFine {
		return &failure{status: status}
	}
	return nil
}

// writeFile creates a file, or overwrites it.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close() // the first error says it
		return err
	}
	return f.Close()
}
