package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// durationPattern is the pattern of durations as text of which no part is longer than the bound. What the parts come to together a
// pattern cannot tell.
func durationPattern(b bounds) string {
	var parts []string
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}} {
		parts = append(parts, fmt.Sprintf(`0*(%s)(\.[0-9]+)?%s`, upTo(int(math.Round(b.max/unit.seconds))), unit.name))
	}
	return "^(" + strings.Join(parts, "|") + ")+$"
}

// zeroDuration is the pattern of durations that are 0.
const zeroDuration = `^(0+(\.0+)?(ms|s|m|h))+$`

// meantAsDuration is the pattern of what is taken for a duration where an expression could stand too; see likeDuration.
const meantAsDuration = `^\s*[-+]?\s*[0-9][0-9.,_]*\s*[A-Za-z]*\s*$|^\s*([0-9]+(\.[0-9]+)?\s*[A-Za-z]+\s*)+$`

// upTo is a pattern of the whole numbers from 0 to n, without leading zeros.
func upTo(n int) string {
	digits := strconv.Itoa(n)
	alternatives := []string{digits}
	if len(digits) > 1 {
		alternatives = append(alternatives, fmt.Sprintf("[0-9]{1,%d}", len(digits)-1))
	}
	for i := range digits {
		if digits[i] == '0' || i == 0 && digits[i] == '1' {
			continue // nothing is less, or it has fewer digits
		}
		least := '0'
		if i == 0 && len(digits) > 1 {
			least = '1'
		}
		below := fmt.Sprintf("%s[%c-%c]", digits[:i], least, digits[i]-1)
		if rest := len(digits) - i - 1; rest > 0 {
			below += fmt.Sprintf("[0-9]{%d}", rest)
		}
		alternatives = append(alternatives, below)
	}
	return strings.Join(alternatives, "|")
}

// boundText tells the schema of a text in a place of durations what the number beside it is bounded by.
func boundText(place *shape, text *shape, out *ordered) *ordered {
	if place.role&asDuration == 0 {
		return out
	}
	forbid := func(pattern string) {
		not := &ordered{}
		not.set("pattern", pattern)
		out.set("not", not)
	}
	switch text.def {
	case "#Duration":
		b := boundsOf(place.value)
		out.set("pattern", durationPattern(b))
		if b.above {
			forbid(zeroDuration)
		}
	case "#CEL":
		forbid(meantAsDuration)
	}
	return out
}
