package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// explainSyntax says what is wrong at a token that CEL did not expect; "<EOF>" is the end.
func explainSyntax(text string, offset int, token string) issue {
	if at, ok := badEscape(text); ok {
		escaped, _ := utf8.DecodeRuneInString(text[at+1:]) // half a letter of bad UTF-8 must not get into a message
		return issue{id: "cel-syntax", offset: at, length: 2, message: fmt.Sprintf("there is no escape \\%c in a string", escaped),
			hint: `write \\ for a backslash, or put an r before the string`}
	}
	if found, ok := unpaired(text); ok {
		return found
	}
	if token == "<EOF>" || token == "" {
		return issue{id: "cel-syntax", offset: len(strings.TrimRight(text, " \t\r\n")), length: 1, message: "the expression ends too early"}
	}
	found := issue{id: "cel-syntax", offset: offset, message: fmt.Sprintf("unexpected %q", short(token))}
	if token[0] == '"' || token[0] == '\'' {
		found.length = utf8.RuneCountInString(token)
	}
	before := strings.TrimRight(text[:offset], " \t\r\n")
	word := strings.TrimPrefix(token, ".")
	switch {
	case word != "" && isNameByte(word[0]) && offset > 0 && text[offset-1] == '.':
		found.message = fmt.Sprintf("%q is a word of the language and cannot follow a dot", word)
		found.hint = fmt.Sprintf("write [%q] for .%s", word, word)
	case token == "=":
		found.hint = "equality is =="
	case otherOperators[token] != "":
		found.hint = "use " + otherOperators[token]
	case before == "not" || strings.HasSuffix(before, " not") || strings.HasSuffix(before, "(not"):
		found.offset, found.message, found.hint = len(before)-len("not"), `unexpected "not"`, "use !"
	case offset > 0 && (text[offset-1] == '\'' || text[offset-1] == '"'):
		found.hint = fmt.Sprintf(`the string before it ends at its second quote: write \%c for one inside it`, text[offset-1])
	}
	return found
}

var otherOperators = map[string]string{"&": "&&", "|": "||", "and": "&&", "or": "||", "not": "!"}

// closing are the brackets that close others.
var closing = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// unpaired finds a bracket without its other half, or a string without its end.
func unpaired(text string) (issue, bool) {
	var open []int
	fault := func(at int, format string, args ...any) (issue, bool) {
		return issue{id: "cel-syntax", offset: at, length: 1, message: fmt.Sprintf(format, args...)}, true
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			end, ok := closedString(text, i)
			if !ok {
				return fault(i, "a string that begins here has no end")
			}
			i = end - 1
		case '/':
			if strings.HasPrefix(text[i:], "//") {
				for i < len(text) && text[i] != '\n' {
					i++
				}
			}
		case '(', '[', '{':
			open = append(open, i)
		case ')', ']', '}':
			if len(open) == 0 {
				return fault(i, "there is no bracket that this %q closes", string(c))
			}
			last := open[len(open)-1]
			if closing[text[last]] != c {
				return fault(i, "unexpected %q: the bracket that it would close is a %q", string(c), text[last:last+1])
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		last := open[len(open)-1]
		return fault(last, "a bracket that opens here is not closed: %q is missing", string(closing[text[last]]))
	}
	return issue{}, false
}

// closedString is the end of the string whose first quote stands at i, and whether it has one.
func closedString(text string, i int) (end int, ok bool) {
	raw := i > 0 && (text[i-1] == 'r' || text[i-1] == 'R')
	end = stringEnd(text, i, raw)
	long := strings.HasPrefix(text[i:], strings.Repeat(text[i:i+1], 3))
	switch quotes := text[i : i+1]; {
	case long:
		ok = end >= i+6 && strings.HasSuffix(text[:end], strings.Repeat(quotes, 3))
	default:
		ok = end >= i+2 && strings.HasSuffix(text[:end], quotes) && !strings.ContainsRune(text[i:end], '\n')
	}
	if end == len(text) && ok && !raw { // its last quote may be escaped
		slashes := len(text[i:end-1]) - len(strings.TrimRight(text[i:end-1], `\`))
		ok = slashes%2 == 0
	}
	return end, ok
}

// badEscape finds a backslash in a string that begins no escape of CEL.
func badEscape(text string) (at int, found bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end := stringEnd(text, i, i > 0 && (text[i-1] == 'r' || text[i-1] == 'R'))
		if i == 0 || !strings.ContainsRune("rR", rune(text[i-1])) {
			for k := i + 1; k+1 < end; k++ {
				if text[k] != '\\' {
					continue
				}
				if !strings.ContainsRune("abfnrtv\\\"'`?xXuU01234567", rune(text[k+1])) {
					return k, true
				}
				k++
			}
		}
		i = max(i, end-1)
	}
	return 0, false
}
