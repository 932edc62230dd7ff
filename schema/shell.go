package schema

import (
	"fmt"
	"strings"
)

// noShell warns of what a shell would make something of in a command in one string, and we do not: it would reach the program as
// it is, or be gone, without a word.
func (b *builder) noShell(c *node) {
	if c.bad {
		return
	}
	eachShellPart(c.text, func(at, length int, hint string) {
		message := fmt.Sprintf("no shell runs this command: %q reaches the program as it is", shorten(c.text[at:at+length]))
		if c.text[at] == '\\' {
			message = "a backslash in the command is gone before the program starts: it only frees the character behind it"
		}
		b.report.warnAt(c.place(at, length), "no-shell", hint, "%s", message)
	})
}

// needsShell reports whether a command in one string was meant for a shell.
func needsShell(command string) (needed bool) {
	eachShellPart(command, func(at, _ int, _ string) { needed = needed || command[at] != '\\' })
	return needed
}

// eachShellPart calls f for each word of a command line of which a shell would make something, with where that is and what to write.
func eachShellPart(command string, f func(at, length int, hint string)) {
	w := wordSplitter{s: command}
	for first := true; ; first = false {
		for w.i < len(w.s) && isBlank(w.s[w.i]) {
			w.i++
		}
		start := w.i
		if _, ok := w.next(); !ok {
			return
		}
		if at, length, hint := shellPart(w.s[start:w.i], first); at >= 0 {
			f(start+at, length, hint)
		}
	}
}

// shellPart finds what a shell would not take as it is in a word of a command line: where it is, and what to write. at is -1 if
// there is nothing.
func shellPart(word string, first bool) (at, length int, hint string) {
	quote := byte(0)
	isURL := strings.Contains(word, "://")
	for i := 0; i < len(word); i++ {
		c, rest := word[i], word[i+1:]
		switch {
		case quote == '\'':
			if c == quote {
				quote = 0
			}
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == '\\' && rest != "":
			if quote == 0 && strings.IndexByte(" \t\n\"'\\$`|&;<>()*?[]{}~#!", rest[0]) < 0 {
				return i, 1, `write it twice, or put the word in single quotes`
			}
			i++
		case strings.HasPrefix(word[i:], "$${"):
			i += 2
		case strings.HasPrefix(word[i:], "${"):
			if end := closing(word, i+2); end >= 0 {
				i = end
			}
		case c == '$' && varWord().MatchString(rest):
			name := varWord().FindString(rest)
			return i, 1 + len(name), "write ${" + name + "}, or put it in single quotes"
		case c == '`' || c == '$' && strings.HasPrefix(rest, "("):
			return i, len(word) - i, "put what it prints there, or start a shell: sh -c '…'"
		case quote != 0:
		case i == 0 && c == '~' && (rest == "" || rest[0] == '/'):
			return i, 1, "write ${HOME}"
		case strings.IndexByte("|&;<>", c) >= 0 && (i == 0 || !isURL):
			return i, len(word) - i, "put it in single quotes if it is meant so, or start a shell: sh -c '…'"
		case first && c == '=' && varName().MatchString(word[:i]):
			return 0, len(word), "set the variable under env"
		}
	}
	return -1, 0, ""
}
