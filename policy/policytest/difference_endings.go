package policytest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// ending is what an attempt comes to, after which decisions are compared.
type ending struct {
	name   string
	answer schema.TestAnswer
	like   string // the ending of its kind that nobody names: what becomes otherwise after that too is not told again; "" = none
}

// The endings that others may be like.
const (
	afterSuccess   = "success"
	afterTransient = "error -32000"
	afterError     = "another error"
	afterToolError = "a tool error"
)

// usualEndings are those that every comparison looks at. The first is that of a call that goes well.
var usualEndings = []ending{
	{afterSuccess, schema.TestAnswer{Kind: "ok", Effect: true}, ""},
	{"a timeout", schema.TestAnswer{Kind: "timeout"}, ""},
	{"the end of the server", schema.TestAnswer{Kind: "exit"}, ""},
	{"a malformed answer", schema.TestAnswer{Kind: "malformed"}, ""},
	{"error -32603", errorAnswer(-32603, "internal error"), ""},
	{afterTransient, errorAnswer(-32000, "busy"), ""},
	{"error -32000 with retryAfter", schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":-32000,"message":"busy","data":{"retryAfter":2}}`)}, ""},
	{afterToolError, schema.TestAnswer{Kind: "tool_error"}, ""},
}

// maxNamedEndings bounds how many endings are made of what the rules name: a file can name any number.
const maxNamedEndings = 500

// endingsFor are the usual endings and those that the rules of either policy name: an error of each code and of the codes beside
// it, errors and results of each text, and errors with such data.
func endingsFor(old, now *policy.Policy) []ending {
	named := append(old.Constants(), now.Constants()...)
	other := unnamedCode(named)
	endings := append(slices.Clone(usualEndings), ending{afterError, errorAnswer(other, "an error"), ""})
	seen := map[string]bool{}
	for _, e := range endings {
		seen[e.name] = true
	}
	add := func(e ending) {
		key := e.name + string(e.answer.Value) // a name is shortened
		if !seen[e.name] && !seen[key] && len(endings) < len(usualEndings)+maxNamedEndings {
			seen[key] = true
			endings = append(endings, e)
		}
	}
	for _, c := range named {
		texts := c.Texts
		for _, pattern := range c.Patterns {
			texts = append(texts, matching(pattern)...)
		}
		if c.Error {
			for _, n := range c.Numbers {
				for _, code := range []int64{n, n - 1, n + 1} {
					if code == 0 || code-n > 1 || n-code > 1 { // no code, or beyond the greatest
						continue
					}
					add(ending{fmt.Sprintf("error %d", code), errorAnswer(code, "an error"), likeCode(code)})
				}
			}
			for _, text := range texts {
				value := json.RawMessage(quoted(text))
				add(ending{afterToolError + " " + inQuotes(text), schema.TestAnswer{Kind: "tool_error", Value: value}, afterToolError})
				for _, code := range append([]int64{-32000}, c.Numbers...) {
					if code != 0 {
						name := fmt.Sprintf("error %d", code)
						add(ending{name + " " + inQuotes(text), errorAnswer(code, text), name})
					}
				}
			}
		}
		for _, e := range dataEndings(c, texts, other) {
			add(e)
		}
		if c.Result {
			for _, text := range texts {
				value := json.RawMessage(`{"content":[{"type":"text","text":` + string(quoted(text)) + `}]}`)
				add(ending{"the result " + inQuotes(text), schema.TestAnswer{Kind: "result", Value: value, Effect: true}, afterSuccess})
			}
		}
	}
	return endings
}

// dataEndings are errors whose data has, where a rule looks, what it names.
func dataEndings(c policy.Constants, texts []string, other int64) (list []ending) {
	type value struct {
		shown string
		json  []byte
	}
	var values []value
	for _, n := range c.Numbers {
		digits := strconv.FormatInt(n, 10)
		values = append(values, value{digits, []byte(digits)})
	}
	for _, text := range texts {
		values = append(values, value{inQuotes(text), quoted(text)})
	}
	for _, path := range c.Data {
		for _, v := range values {
			data := v.json
			for _, name := range slices.Backward(path) {
				data = slices.Concat([]byte("{"), quoted(name), []byte(":"), data, []byte("}"))
			}
			for _, code := range append([]int64{other, -32000}, c.Numbers...) {
				if code == 0 {
					continue
				}
				name := fmt.Sprintf("error %d", code)
				if code == other {
					name = afterError
				}
				list = append(list, ending{
					name: name + " with data." + strings.Join(path, ".") + " " + v.shown, like: name,
					answer: schema.TestAnswer{Kind: "error", Value: slices.Concat([]byte(`{"code":`+strconv.FormatInt(code, 10)+`,"message":"an error","data":`), data, []byte("}"))},
				})
			}
		}
	}
	return list
}

func errorAnswer(code int64, message string) schema.TestAnswer {
	return schema.TestAnswer{Kind: "error", Value: json.RawMessage(`{"code":` + strconv.FormatInt(code, 10) + `,"message":` + string(quoted(message)) + `}`)}
}

// unnamedCode is a code of an error of the server's own that no rule names, nor one beside it.
func unnamedCode(named []policy.Constants) int64 {
	for code := int64(1); ; code++ {
		if !slices.ContainsFunc(named, func(c policy.Constants) bool {
			return slices.ContainsFunc(c.Numbers, func(n int64) bool { return n >= code-1 && n <= code+1 })
		}) {
			return code
		}
	}
}

// likeCode is the ending of all errors that are judged as those of a code usually are.
func likeCode(code int64) string {
	if code == -32603 || code >= -32003 && code <= -32000 {
		return afterTransient
	}
	return afterError
}

// inQuotes is a text of a rule for showing.
func inQuotes(text string) string { return strconv.Quote(clip(text, 40)) }

// matching returns texts that a regular expression matches, one for each of its alternatives.
func matching(pattern string) (samples []string) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	for choice := range min(alternatives(re), maxSamples) {
		var b strings.Builder
		writeMatch(&b, re, choice)
		if s := b.String(); s != "" && len(s) <= maxSampleLength && !slices.Contains(samples, s) {
			samples = append(samples, s)
		}
	}
	return samples
}

// Bounds of what is made to match an expression.
const (
	maxSamples      = 16
	maxSampleLength = 4096
)

// alternatives is how many there are where an expression has most.
func alternatives(re *syntax.Regexp) int {
	most := 1
	if re.Op == syntax.OpAlternate {
		most = len(re.Sub)
	}
	for _, sub := range re.Sub {
		most = max(most, alternatives(sub))
	}
	return most
}

// writeMatch writes a text that an expression matches: nothing of what may be left out, and of alternatives the one chosen, or
// the last.
func writeMatch(b *strings.Builder, re *syntax.Regexp, choice int) {
	if b.Len() > maxSampleLength {
		return
	}
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			text = strings.ToLower(text)
		}
		b.WriteString(text)
	case syntax.OpCharClass:
		if len(re.Rune) > 0 {
			b.WriteRune(visibleOf(re.Rune))
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpCapture, syntax.OpPlus:
		writeMatch(b, re.Sub[0], choice)
	case syntax.OpAlternate:
		writeMatch(b, re.Sub[min(choice, len(re.Sub)-1)], choice)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			writeMatch(b, sub, choice)
		}
	case syntax.OpRepeat:
		for range re.Min {
			writeMatch(b, re.Sub[0], choice)
		}
	}
}

// visibleOf is a character of a class, given as ranges: a letter, a digit or at least one that can be seen, if there is one.
func visibleOf(ranges []rune) rune {
	for _, wanted := range [][2]rune{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'!', '~'}, {' ', math.MaxInt32}} {
		for i := 0; i+1 < len(ranges); i += 2 {
			if c := max(ranges[i], wanted[0]); c <= min(ranges[i+1], wanted[1]) {
				return c
			}
		}
	}
	return ranges[0]
}
