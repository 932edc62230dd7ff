package schema

import "strings"

// wordPart is a piece of a word of a command line.
type wordPart struct {
	text    string
	at      int  // its offset in the command line
	literal bool // from single quotes or after a backslash: nothing in it is expanded
}

// wordSplitter cuts a command line as a shell does: blanks part words; in single quotes everything is itself; in double quotes a
// backslash frees $ ` " \ and elsewhere every character. ${…} stays whole, whatever its default holds. Nothing else of a shell
// is known: no globs, pipes, or ~.
type wordSplitter struct {
	s       string
	i       int
	quote   byte // that is open at the end; 0 = none
	quoteAt int
}

// next returns the parts of the next word; false = there is none.
func (w *wordSplitter) next() (parts []wordPart, ok bool) {
	for w.i < len(w.s) && isBlank(w.s[w.i]) {
		w.i++
	}
	if w.i >= len(w.s) {
		return nil, false
	}
	for w.i < len(w.s) && (w.quote != 0 || !isBlank(w.s[w.i])) {
		c := w.s[w.i]
		switch {
		case w.quote == 0 && (c == '\'' || c == '"'):
			w.quote, w.quoteAt = c, w.i
			w.i++
		case w.quote != 0 && c == w.quote:
			w.quote = 0
			w.i++
		case w.quote == '\'':
			parts = append(parts, wordPart{text: w.s[w.i : w.i+1], at: w.i, literal: true})
			w.i++
		case c == '\\' && w.i+1 < len(w.s) && (w.quote == 0 || strings.IndexByte("$`\"\\", w.s[w.i+1]) >= 0):
			parts = append(parts, wordPart{text: w.s[w.i+1 : w.i+2], at: w.i + 1, literal: true})
			w.i += 2
		case strings.HasPrefix(w.s[w.i:], "$${"):
			parts = append(parts, wordPart{text: "$${", at: w.i})
			w.i += 3
		case strings.HasPrefix(w.s[w.i:], "${"):
			end := closing(w.s, w.i+2)
			if end < 0 {
				end = len(w.s) - 1
			}
			parts = append(parts, wordPart{text: w.s[w.i : end+1], at: w.i})
			w.i = end + 1
		default:
			parts = append(parts, wordPart{text: w.s[w.i : w.i+1], at: w.i, literal: true})
			w.i++
		}
	}
	return parts, true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
