package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Entry is what there is to know of one kind of finding: what explain prints, and what reports for machines say of it.
type Entry struct {
	Number  int    // of the rule: 14 is MR014
	ID      string // the same in words, as in [Finding]
	Level   Level  // the usual one
	Title   string // one line
	Why     string // one paragraph: what goes wrong
	Fix     string // what to do
	Bad     string // a config, or settings of a server, in which it is found; "" = no config has it for certain
	Good    string // the same, mended
	Depends Depends
}

// Depends says what else than the file decides whether there is such a finding. An ignore comment for one that cannot be found
// this time is not called unused.
type Depends uint8

const (
	OnFile     Depends = iota // nothing else
	OnTools                   // the server's tools, where they are known
	OnComputer                // the environment, or which programs there are
)

// Code is the number as it is written: MR014.
func (e Entry) Code() string { return fmt.Sprintf("MR%03d", e.Number) }

// Catalog returns all kinds of findings, those of package policy included, by number.
func Catalog() []Entry {
	all := slices.Concat(shapeEntries, celEntries, wisdomEntries, toolEntries, commentEntries)
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// Lookup finds an entry by its number or ID: MR014, mr14, unknown-key.
func Lookup(name string) (Entry, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	number := -1
	if digits, ok := strings.CutPrefix(name, "mr"); ok {
		if n, err := parseNumber(strings.TrimLeft(digits, "0")); err == nil {
			if i, isInt := n.(int64); isInt {
				number = int(i)
			}
		}
	}
	for _, list := range [][]Entry{shapeEntries, celEntries, wisdomEntries, toolEntries, commentEntries} {
		for _, e := range list {
			if e.Number == number || e.ID == name {
				return e, true
			}
		}
	}
	return Entry{}, false
}

// Nearest is the number or ID that a word was most likely meant to be, or "".
func Nearest(name string) string { return nearest(name, ruleNames()) }

func ruleNames() []string {
	var names []string
	for _, e := range Catalog() {
		names = append(names, e.ID, e.Code())
	}
	return names
}

// Code is the number of the rule that a finding is of, MR014; "" if the catalogue lacks it.
func (f Finding) Code() string {
	if e, ok := Lookup(f.ID); ok {
		return e.Code()
	}
	return ""
}
