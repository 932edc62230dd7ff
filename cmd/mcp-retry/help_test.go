package main

import (
	"io"
	"strings"
	"testing"
)

func TestEveryCommandIsDescribedWithExamples(t *testing.T) {
	root := newRoot(&ui{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard}, nil)
	for _, cmd := range root.Commands() {
		if cmd.Name() == flakyCommand {
			continue
		}
		if cmd.Short == "" || cmd.Long == "" || !strings.Contains(cmd.Example, "mcp-retry "+cmd.Name()) {
			t.Errorf("%s lacks a description or an example", cmd.Name())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len([]rune(strings.TrimRight(line, "\n"))) > 92 {
				t.Errorf("%s: a line is too long for a terminal: %q", cmd.Name(), line)
			}
		}
	}
}
