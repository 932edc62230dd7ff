package schema

import (
	"fmt"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
)

// This file puts a constraint of the schema in words. The words come from the constraint itself, so they cannot disagree with it.

// phrases are for the definitions that are patterns.
var phrases = map[string]string{
	"#Text":         "text that is not blank",
	"#CEL":          "an expression in CEL",
	"#Glob":         "the name of a tool or a glob, without blanks",
	"#ServerName":   "a name of at most 128 characters, without blanks at its ends",
	"#Separator":    "1 to 8 letters, digits, underscores, dots or dashes",
	"#RuleName":     "a name of at most 128 characters, without blanks at its ends",
	"#EnvName":      "the name of a variable, without blanks or =",
	"#KeyPlace":     "_meta.NAME or arguments.NAME",
	"#Invalidation": "the name of a tool or a glob, or a map with tool and args",
	"#Answer":       `an outcome such as ok, timeout or "exit x2", or a map of one`,
	"#Span":         `a duration or a range such as "<=500ms" or "1s..2s"`,
}

// expects says what may stand in a place: `a whole number from 0 to 10`.
func (s *shape) expects() string {
	var said []string
	for _, alt := range flatten(s.value) {
		if alt.words == "" {
			continue
		}
		said = append(said, alt.words)
	}
	return orList(said)
}

// orList joins alternatives, each once.
func orList(said []string) string {
	var out []string
	seen := map[string]bool{}
	for _, w := range said {
		if !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	if len(out) < 2 {
		return strings.Join(out, "")
	}
	return strings.Join(out[:len(out)-1], ", ") + " or " + out[len(out)-1]
}

// words returns the words that a place takes, or nil if it takes none.
func (s *shape) words() []string {
	if !s.wordsKnown {
		s.wordsKnown = true
		for _, alt := range flatten(s.value) {
			if alt.word != "" {
				s.wordList = append(s.wordList, alt.word)
			}
		}
	}
	return s.wordList
}

// alternative is one of the things that a place takes.
type alternative struct {
	words string // for a message
	word  string // if it is one fixed text
}

// flatten returns the alternatives of a constraint, those of the definitions that it names included.
func flatten(v cue.Value) []alternative {
	def := definition(v)
	switch {
	case phrases[def] != "":
		return []alternative{{words: phrases[def]}}
	case roles[def]&asDuration != 0:
		return []alternative{{words: "a duration" + boundsOf(v).in(durationWords)}}
	case roles[def]&asBytes != 0:
		return []alternative{{words: "a size" + boundsOf(v).in(bytesWords)}}
	case def == "#Duration" || def == "#Bytes":
		return nil
	}
	v = cue.Dereference(v)
	if op, args := v.Expr(); op == cue.OrOp {
		var out []alternative
		for _, a := range args {
			out = append(out, flatten(a)...)
		}
		return out
	}
	if s, err := v.String(); err == nil && v.IsConcrete() {
		return []alternative{{words: strconv.Quote(s), word: s}}
	}
	if b, err := v.Bool(); err == nil && v.IsConcrete() {
		return []alternative{{words: strconv.FormatBool(b)}}
	}
	switch v.IncompleteKind() {
	case cue.StructKind:
		return []alternative{{words: "a map"}}
	case cue.ListKind:
		return []alternative{{words: "a list"}}
	case cue.BoolKind:
		return []alternative{{words: "true"}, {words: "false"}}
	case cue.NullKind:
		return []alternative{{words: "null"}}
	case cue.IntKind:
		return []alternative{{words: "a whole number" + boundsOf(v).in(plainNumber)}}
	case cue.NumberKind, cue.FloatKind:
		return []alternative{{words: "a number" + boundsOf(v).in(plainNumber)}}
	}
	return []alternative{{words: "text"}}
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// bounds are the least and the greatest number that a constraint takes.
type bounds struct {
	min, max       float64
	hasMin, hasMax bool
	above          bool // the least itself is not taken
}

// in prints the bounds with numbers printed by f.
func (b bounds) in(f func(float64) string) string {
	switch {
	case b.hasMin && b.hasMax && b.above:
		return fmt.Sprintf(" above %s, up to %s", f(b.min), f(b.max))
	case b.hasMin && b.hasMax:
		return fmt.Sprintf(" from %s to %s", f(b.min), f(b.max))
	case b.hasMin && b.above:
		return " above " + f(b.min)
	case b.hasMin:
		return fmt.Sprintf(" of at least %s", f(b.min))
	case b.hasMax:
		return fmt.Sprintf(" of at most %s", f(b.max))
	}
	return ""
}

// boundsOf reads the bounds of a constraint on numbers.
func boundsOf(v cue.Value) (b bounds) {
	v = cue.Dereference(v)
	op, args := v.Expr()
	switch op {
	case cue.AndOp:
		for _, a := range args {
			b = b.and(boundsOf(a))
		}
	case cue.OrOp:
		for _, a := range args {
			if a.IncompleteKind()&cue.NumberKind != 0 {
				return boundsOf(a)
			}
		}
	case cue.GreaterThanEqualOp, cue.GreaterThanOp, cue.LessThanEqualOp, cue.LessThanOp:
		f, err := args[0].Float64()
		if err != nil {
			return b
		}
		if op == cue.GreaterThanEqualOp || op == cue.GreaterThanOp {
			return bounds{min: f, hasMin: true, above: op == cue.GreaterThanOp}
		}
		return bounds{max: f, hasMax: true}
	default:
		if fmt.Sprint(v) == "uint" { // what CUE makes of int & >=0
			return bounds{hasMin: true}
		}
	}
	return b
}

func (b bounds) and(o bounds) bounds {
	if o.hasMin {
		b.min, b.hasMin, b.above = o.min, true, o.above
	}
	if o.hasMax {
		b.max, b.hasMax = o.max, true
	}
	return b
}
