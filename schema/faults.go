package schema

import (
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
)

// This file says what is wrong with a node, in one finding, and what to do about it.

const zeroHint = "write it without the leading zero"

func (c *checker) wrongKind(s *shape, n *node, p path) {
	c.report.mendable(n, c.meantKind(s, n), "bad-value", kindHint(s, n, p), "%s must be %s, not %s", p.subject(), s.expects(), found(n))
}

// meantKind is the correction of a number, or of a yes or no, that was written as text.
func (c *checker) meantKind(s *shape, n *node) Fix {
	if n.kind != text {
		return c.report.rewrite(n, certain(n, s.words()))
	}
	yes := yesNo[strings.ToLower(n.text)]
	switch is := plainKind(n.text); {
	case s.kinds&cue.BoolKind != 0 && is == boolean:
		return c.report.unquote(n, strings.ToLower(n.text))
	case s.kinds&cue.BoolKind != 0 && yes != "":
		return c.report.unquote(n, yes)
	case s.kinds&cue.NumberKind != 0 && is == number:
		return c.report.unquote(n, n.text)
	}
	return Fix{}
}

// kindHint says how to write what was meant by a value of the wrong kind.
func kindHint(s *shape, n *node, p path) string {
	scalar := n.kind != list && n.kind != object
	switch {
	case len(p) == 0:
		return startHint
	case p.last() == "retry" && s.kinds == cue.StructKind && (n.kind == boolean && !n.bool() || yesNo[strings.ToLower(n.text)] == "false"):
		return "write {max_retries: 0} for no retries"
	case s.role&asCEL != 0 && !scalar:
		return "a list or map in CEL is text: put it in single quotes"
	case n.kind == boolean:
		return wordHint(s, n)
	case n.kind == text && s.kinds&cue.BoolKind != 0 && yesNo[strings.ToLower(n.text)] != "":
		return "write " + yesNo[strings.ToLower(n.text)]
	case n.kind == text && s.kinds&(cue.NumberKind|cue.BoolKind) != 0 && plainKind(n.text) != text && !n.plain:
		return "write it without quotes"
	case n.kind == text && leadingZero().MatchString(n.text) && s.kinds&cue.NumberKind != 0:
		return zeroHint
	case s.kinds&cue.ListKind != 0 && n.kind == object:
		return `put "- " before each of its items`
	case s.kinds&cue.ListKind != 0 && p.last() == "args":
		return "write " + flowList(strings.Fields(n.text))
	case s.kinds&cue.ListKind != 0 && s.fill().elem.kinds&^(cue.StructKind|cue.ListKind) == 0:
		return `write its items below it, each with "- " before`
	case s.kinds&cue.ListKind != 0 && n.kind == number && s.fill().elem.kinds&cue.NumberKind != 0:
		return "write [" + n.text + "]"
	case s.kinds&cue.ListKind != 0:
		return "write " + flowList([]string{shorten(n.text)})
	case s.kinds&cue.StructKind != 0 && len(s.fill().names) > 0:
		return "keys known here: " + strings.Join(s.names, ", ")
	case s.kinds&cue.StructKind != 0:
		return "write NAME: VALUE on lines of their own"
	}
	return ""
}

var yesNo = map[string]string{"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}

func (c *checker) badValue(s *shape, n *node, p path) {
	hint := wordHint(s, n)
	if s.role&asDuration != 0 && n.kind == number {
		hint = durationHint
		b := boundsOf(s.value)
		f, _ := strconv.ParseFloat(n.text, 64)
		switch {
		case f > b.max && f/1000 <= b.max && b.hasMax:
			hint = `a number is seconds: milliseconds are written "` + n.text + `ms"`
		case f == 0 && b.above && p.last() != "per":
			hint = "leave the key out for the default"
		}
	}
	c.report.mendable(n, c.report.rewrite(n, certain(n, s.words())), "bad-value", hint, "%s must be %s, not %s", p.subject(), s.expects(), found(n))
}

// wordHint proposes one of the words that a place takes.
func wordHint(s *shape, n *node) string {
	words := s.words()
	if n.kind == boolean && slices.Contains(words, "off") {
		if n.bool() {
			return `did you mean "enforce"?`
		}
		return `did you mean "off"?`
	}
	if n.kind == text {
		if w := nearest(n.text, words); w != "" {
			return `did you mean "` + w + `"?`
		}
	}
	return ""
}

func (c *checker) noValue(s *shape, n *node, p path) {
	hint := "leave the key out if nothing is meant"
	switch {
	case s.kinds == cue.StringKind && s.role == 0 && s.def == "":
		hint = `write "" for an empty text`
	case s.kinds == cue.StructKind:
		hint = "write its keys on the next lines, indented further"
	case s.kinds == cue.ListKind:
		hint = "write [] for an empty list"
	}
	c.report.fault(n, "bad-value", hint, "%s has no value; it must be %s", p.subject(), s.expects())
}

// found is a value in a message.
func found(n *node) string {
	switch n.kind {
	case null:
		return "nothing"
	case text:
		return strconv.Quote(shorten(n.text))
	case number, boolean:
		return shorten(n.text)
	}
	return n.kind.String()
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// unknown complains of a key that the schema does not have here. It returns the one that it can only be a slip of, or "".
func (c *checker) unknown(s *shape, in, key *node, p path) (to string) {
	name := key.text
	if c.report.full() {
		key.bad = true
		return ""
	}
	if s.pattern != nil && len(s.names) == 0 { // a map by names of the user's
		c.report.fault(key, "bad-value", "", "%s must be %s", quoteKey(name), keyPhrase(p))
		return ""
	}
	hint := ""
	to = meant(in, key, s.names)
	switch real, at := c.elsewhere(name); {
	case commonNames[name] != "" && slices.Contains(s.names, commonNames[name]):
		hint = `did you mean "` + commonNames[name] + `"?`
	case real == name:
		hint, to = "it belongs under "+at, ""
	case nearest(name, s.names) != "":
		hint = `did you mean "` + nearest(name, s.names) + `"?`
	case at != "":
		hint = `"` + real + `" belongs under ` + at
	default:
		hint = "known here: " + strings.Join(s.names, ", ")
	}
	where := "at the top of the file"
	if len(p) > 0 {
		where = "in " + p.subject()
	}
	c.report.mendable(key, c.report.rewrite(key, to), "unknown-key", hint, "unknown key %q %s", shorten(name), where)
	return to
}

func quoteKey(s string) string { return "the key " + strconv.Quote(shorten(s)) }

func keyPhrase(p path) string {
	switch p.last() {
	case "servers":
		return phrases["#ServerName"]
	case "env":
		return phrases["#EnvName"]
	}
	return phrases["#Glob"]
}

// elsewhere finds a key of that name, give or take how its words are joined, and where in the schema it belongs.
func (c *checker) elsewhere(name string) (real, where string) {
	type place struct {
		s  *shape
		at path
	}
	next := []place{{c.dialect.root, nil}}
	for len(next) > 0 && len(next[0].at) < 6 {
		here := next[0]
		next = next[1:]
		here.s.fill()
		for _, n := range here.s.names {
			if len(here.at) > 0 && joined(n) == joined(name) {
				return n, strings.Join(here.at, ".")
			}
			if f := here.s.fields[n]; f.kinds&(cue.StructKind|cue.ListKind) != 0 && n != "defaults" {
				next = append(next, place{f, here.at.join(n)})
			}
		}
		if here.s.pattern != nil && here.s.pattern.kinds == cue.StructKind {
			next = append(next, place{here.s.pattern, here.at.join("NAME")})
		}
		if here.s.elem != nil && here.s.elem.kinds&cue.StructKind != 0 {
			next = append(next, place{here.s.elem, here.at})
		}
	}
	return "", ""
}
