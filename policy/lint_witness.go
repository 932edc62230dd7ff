package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/operators"
)

// witness is a value that a subject may have, or stands for all values that its atoms cannot tell apart.
type witness struct {
	kind   witnessKind
	text   string
	number float64
	yes    bool

	// Of a text that is made of parts, with something that no atom names between them.
	prefix, suffix string
	infixes        []string
}

type witnessKind uint8

const (
	isMissing witnessKind = iota // reading it fails
	isForeign                    // of a type that no atom compares with
	isText
	isParts
	isNumber
	isBool
)

// answer is what the atom says of a witness.
func (a *atom) answer(w *witness) truth {
	if w.kind == isMissing {
		return mayErr
	}
	is := func(yes bool) truth {
		if yes {
			return mayHold
		}
		return mayFail
	}
	switch a.op {
	case opTruth:
		if w.kind != isBool {
			return mayErr
		}
		return is(w.yes)
	case operators.Equals, operators.In:
		return is(a.names(w))
	case operators.NotEquals:
		return is(!a.names(w))
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if w.kind != isNumber {
			return mayErr
		}
		n := a.numbers[0]
		switch a.op {
		case operators.Less:
			return is(w.number < n)
		case operators.LessEquals:
			return is(w.number <= n)
		case operators.Greater:
			return is(w.number > n)
		}
		return is(w.number >= n)
	}
	switch w.kind {
	case isText:
		return is(a.fits(w.text))
	case isParts:
		return a.fitsParts(w)
	}
	return mayErr
}

// names reports whether one of the atom's constants is the witness.
func (a *atom) names(w *witness) bool {
	switch w.kind {
	case isText:
		return slices.Contains(a.texts, w.text)
	case isNumber:
		return slices.Contains(a.numbers, w.number)
	case isBool:
		return slices.Contains(a.bools, w.yes)
	}
	return false
}

func (a *atom) fits(text string) bool {
	part := a.texts[0]
	switch a.op {
	case opPrefix:
		return strings.HasPrefix(text, part)
	case opSuffix:
		return strings.HasSuffix(text, part)
	case opInfix:
		return strings.Contains(text, part)
	case opGlob:
		return Match(part, text)
	}
	return a.pattern.MatchString(text)
}

func (a *atom) fitsParts(w *witness) truth {
	part, fits := a.texts[0], false
	switch a.op {
	case opPrefix:
		fits = strings.HasPrefix(w.prefix, part)
	case opSuffix:
		fits = strings.HasSuffix(w.suffix, part)
	case opInfix:
		fits = strings.Contains(w.prefix, part) || strings.Contains(w.suffix, part) ||
			slices.ContainsFunc(w.infixes, func(s string) bool { return strings.Contains(s, part) })
	default:
		return mayHold | mayFail // texts of these parts differ in that
	}
	if fits {
		return mayHold
	}
	return mayFail
}

// maxInfixes bounds the parts of which every subset is tried.
const maxInfixes = 3

// witnesses are values of a subject for every combination of answers that its atoms can have; nil = there are too many.
//
// Of texts these are the constants, and texts of a prefix, some middles and a suffix that atoms ask for. That is enough: of any
// other text take the longest prefix, the longest suffix and all middles that it has; that text of parts has no others.
func witnesses(atoms []*atom) []witness {
	var out []witness
	add := func(w witness) { out = append(out, w) }
	first := atoms[0]
	safe := first.safe
	var texts, prefixes, suffixes, infixes []string
	var numbers []float64
	for _, a := range atoms {
		numbers = append(numbers, a.numbers...)
		switch a.op {
		case opPrefix:
			prefixes = append(prefixes, a.texts...)
		case opSuffix:
			suffixes = append(suffixes, a.texts...)
		case opInfix:
			infixes = append(infixes, a.texts...)
		case opGlob, opRegexp:
		default:
			texts = append(texts, a.texts...)
		}
	}
	kind := first.kind
	if !safe {
		add(witness{kind: isMissing})
	}
	if kind == boolKind || kind == anyKind {
		add(witness{kind: isBool, yes: true})
		add(witness{kind: isBool})
	}
	if kind == textKind || kind == anyKind {
		infixes = sortedNames(infixes)
		if len(infixes) > maxInfixes {
			return nil
		}
		for _, text := range sortedNames(texts) {
			add(witness{kind: isText, text: text})
		}
		for _, prefix := range sortedNames(append(prefixes, "")) {
			for _, suffix := range sortedNames(append(suffixes, "")) {
				for chosen := range 1 << len(infixes) {
					w := witness{kind: isParts, prefix: prefix, suffix: suffix}
					for i, part := range infixes {
						if chosen&(1<<i) != 0 {
							w.infixes = append(w.infixes, part)
						}
					}
					add(w)
				}
			}
		}
	}
	if kind == intKind || kind == realKind || kind == anyKind {
		for _, n := range around(numbers, kind == intKind) {
			if n >= lowest(first.subject) {
				add(witness{kind: isNumber, number: n})
			}
		}
	}
	if kind == anyKind {
		add(witness{kind: isForeign})
	}
	return out
}

// around are the numbers and what lies beside and between them.
func around(numbers []float64, whole bool) []float64 {
	if len(numbers) == 0 {
		return []float64{most}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	out := []float64{numbers[0] - 1}
	for i, n := range numbers {
		if out = append(out, n); whole {
			out = append(out, n-1, n+1)
		} else if i > 0 {
			out = append(out, (numbers[i-1]+n)/2)
		}
	}
	return append(out, numbers[len(numbers)-1]+1)
}

// lowest is the least value of a number that counts or measures something.
func lowest(subject string) float64 {
	switch {
	case subject == "attempt":
		return 1
	case subject == "elapsed", subject == "error.retry_after", strings.HasPrefix(subject, "size("), strings.HasSuffix(subject, ".size()"):
		return 0
	}
	return -2 * most
}
