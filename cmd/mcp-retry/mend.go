package main

import (
	"slices"

	"github.com/bentabol/mcp-retry/schema"
)

// maxMendRounds bounds how often a file is mended: a key with its name corrected may hold the next mistake.
const maxMendRounds = 8

// mend corrects a file as far as it can mean but one thing, and says what it changed; with dryRun it prints the difference and
// leaves the file alone. It returns the file as it stands then.
func (u *ui) mend(file string, l *loaded, dryRun bool) (*loaded, error) {
	before := l
	var changes schema.Findings
	for range maxMendRounds {
		text, corrected := l.findings.Mend(l.text)
		if len(corrected) == 0 {
			break
		}
		next := loadText(file, text)
		if next.config == nil || stillThere(corrected, next.findings) {
			break // it did not help, so leave it
		}
		l = next
		changes = append(changes, corrected...)
	}
	if len(changes) == 0 {
		return l, nil
	}
	if dryRun {
		writeDiff(u.stdout, file, before.shown(), l.shown())
		return before, nil
	}
	if err := swapFile(file, before.text, l.text); err != nil {
		return nil, cannotWrite(file, err)
	}
	changes.Sort()
	for _, f := range changes {
		u.warnf("fixed %s: %s: it is now %s (%s)", f.Pos, f.Message, f.Fix.Text, f.Code())
	}
	return l, nil
}

// stillThere reports whether a finding is among those about the text in which it was corrected.
func stillThere(corrected, now schema.Findings) bool {
	return slices.ContainsFunc(corrected, func(c schema.Finding) bool {
		return slices.ContainsFunc(now, func(f schema.Finding) bool {
			return f.ID == c.ID && f.Message == c.Message && f.Pos.Line == c.Pos.Line
		})
	})
}
