package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"

	"github.com/bentabol/mcp-retry/schema"
)

// issue is a fault of an expression before it is placed in a file.
type issue struct {
	level         schema.Level // Error by default
	id            string
	offset        int // in bytes
	length        int // in characters; 0 = of the token at offset
	message, hint string
}

var (
	undeclared   = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	noOverload   = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '([^']*)'`)
	noField      = regexp.MustCompile(`^undefined field '([^']*)'`)
	unexpected   = regexp.MustCompile(`(?s)^Syntax error: (?:mismatched input|extraneous input|no viable alternative at input|token recognition error at:) '(.*?)'(?: expecting .*)?$`)
	missing      = regexp.MustCompile(`(?s)^Syntax error: missing '.*' at '(.*?)'$`)
	reserved     = regexp.MustCompile(`^(?:Syntax error: )?reserved identifier: (.*)$`)
	wrongKind    = regexp.MustCompile(`^expected type '([^']*)' but found '([^']*)'`)
	invalidConst = regexp.MustCompile(`^invalid (duration|timestamp) argument`)
)

// explain turns what CEL says about a text into what a person can act on.
func explain(env *cel.Env, text string, known varSet, problems *cel.Issues) []issue {
	var issues []issue
	syntax := false
	wrong := wrongMacros(text, problems.Errors())
	for _, p := range problems.Errors() {
		offset := locate(text, p.Location)
		if undeclared.MatchString(p.Message) && slices.ContainsFunc(wrong, func(span [2]int) bool { return span[0] < offset && offset < span[1] }) {
			continue
		}
		if strings.HasPrefix(p.Message, "Syntax error") {
			if syntax {
				continue // what follows the first is its echo
			}
			syntax = true
		}
		found := explainOne(env, text, known, offset, p.Message)
		if found.length == 0 {
			found.length = tokenLen(text, found.offset)
		}
		if !slices.Contains(issues, found) {
			issues = append(issues, found)
		}
	}
	return issues
}

func explainOne(env *cel.Env, text string, known varSet, offset int, message string) issue {
	if m := undeclared.FindStringSubmatch(message); m != nil {
		return explainName(env, text, known, offset, strings.TrimPrefix(m[1], "."))
	}
	if m := noField.FindStringSubmatch(message); m != nil {
		return explainField(text, offset, m[1])
	}
	if m := noOverload.FindStringSubmatch(message); m != nil {
		return explainOverload(env, text, offset, m[1], m[2])
	}
	if m := wrongKind.FindStringSubmatch(message); m != nil {
		return issue{id: "cel-type", offset: nameAt(text, offset), message: fmt.Sprintf("expected %s, got %s", m[1], m[2])}
	}
	if m := unexpected.FindStringSubmatch(message); m != nil {
		return explainSyntax(text, offset, strings.TrimSpace(m[1]))
	}
	if m := missing.FindStringSubmatch(message); m != nil {
		return explainSyntax(text, offset, strings.TrimSpace(m[1]))
	}
	if m := reserved.FindStringSubmatch(message); m != nil {
		return issue{id: "cel-syntax", offset: offset, message: fmt.Sprintf("%q is a word of the language, which cannot be a name", m[1])}
	}
	if m := invalidConst.FindStringSubmatch(message); m != nil {
		return explainConstant(text, offset, m[1])
	}
	if strings.HasPrefix(message, "invalid argument to has()") {
		return issue{id: "cel-syntax", offset: offset, message: "has() asks for a field", hint: "write has(args.NAME), or MAP[?KEY].hasValue() for a key"}
	}
	message = strings.TrimPrefix(message, "Syntax error: ")
	if message != "" {
		message = strings.ToLower(message[:1]) + message[1:]
	}
	return issue{id: "cel-syntax", offset: offset, message: message}
}

// explainRest looks for what else is wrong with an expression that has the wrong types: words that a field never is, and
// patterns that are none.
func explainRest(env *cel.Env, text string) []issue {
	parsed, problems := env.Parse(text)
	if problems.Err() != nil {
		return nil
	}
	rest := analyse(parsed.NativeRep(), text)
	return append(rest.issues, rest.warnings...)
}

// usesOf lists the variables of a text that has the wrong types; none if it cannot even be parsed.
func usesOf(text string) (uses []use) {
	defer func() {
		if recover() != nil { // what compiling the text has told already
			uses = nil
		}
	}()
	env, err := environment()
	if err != nil {
		return nil
	}
	parsed, problems := env.Parse(text)
	if problems.Err() != nil {
		return nil
	}
	return analyse(parsed.NativeRep(), text).uses
}

// locate turns a line and a column in characters into an offset in bytes.
func locate(text string, at common.Location) int {
	offset := 0
	for line := 1; line < at.Line(); line++ {
		next := strings.IndexByte(text[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	return offset + byteOffset(text[offset:], at.Column())
}

func explainName(env *cel.Env, text string, known varSet, offset int, name string) issue {
	// For a call, CEL points at the bracket.
	last := name[strings.LastIndexByte(name, '.')+1:]
	if offset < len(text) && text[offset] == '(' {
		start := strings.LastIndex(text[:offset], last)
		if start >= 0 {
			offset = start
		}
		if form, ok := macros[last]; ok {
			return issue{id: "cel-type", offset: offset, message: fmt.Sprintf("%s does not take these arguments", last), hint: "it is called as " + form}
		}
		hint := suggest(last, functionNames(env))
		return issue{id: "cel-name", offset: offset, message: fmt.Sprintf("there is no function %q", name), hint: hint}
	}
	hint := suggest(name, append(known.names(), "true", "false", "null"))
	if other, ok := otherNames[name]; ok {
		hint = fmt.Sprintf("did you mean %q?", other)
	}
	if hint == "" {
		hint = "here you have " + known.String()
	}
	return issue{id: "cel-name", offset: offset, message: fmt.Sprintf("there is no variable %q", name), hint: hint}
}

// otherNames are what people call the variables who know them from elsewhere.
var otherNames = map[string]string{
	"arguments": "args", "params": "args", "input": "args", "_meta": "meta", "err": "error", "response": "result", "output": "result",
}

// macros are the functions that the parser replaces by loops and tests, with how each is called. With other arguments CEL takes them
// for functions that there are not.
var macros = map[string]string{
	"has": "has(MAP.FIELD)", "all": "LIST.all(x, CONDITION)", "exists": "LIST.exists(x, CONDITION)", "exists_one": "LIST.exists_one(x, CONDITION)",
	"map": "LIST.map(x, VALUE)", "filter": "LIST.filter(x, CONDITION)",
}

// wrongMacros are the arguments, from bracket to bracket, of the macros that are called with others than they take. Their variables
// would be there, were they called as they should be.
func wrongMacros(text string, problems []*cel.Error) (spans [][2]int) {
	for _, p := range problems {
		m := undeclared.FindStringSubmatch(p.Message)
		if m == nil || macros[m[1]] == "" {
			continue
		}
		if at := locate(text, p.Location); at < len(text) && text[at] == '(' {
			spans = append(spans, [2]int{at, bracketEnd(text, at)})
		}
	}
	return spans
}

// bracketEnd is where the bracket at from is closed, or the end of the text.
func bracketEnd(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '"', '\'':
			end, _ := closedString(text, i)
			i = end - 1
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// functionNames lists what can be called by name.
func functionNames(env *cel.Env) []string {
	names := slices.Collect(maps.Keys(macros))
	for name := range maps.Keys(env.Functions()) {
		if !strings.ContainsAny(name, "_@!?") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func explainField(text string, offset int, field string) issue {
	offset = nameAt(text, offset)
	owner, fields := ownerOf(text, offset)
	if owner == "" {
		return issue{id: "cel-field", offset: offset, message: fmt.Sprintf("there is no field %q", field)}
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	hint := suggest(field, names)
	if hint == "" {
		hint = owner + " has " + strings.Join(names, ", ")
	}
	return issue{id: "cel-field", offset: offset, message: fmt.Sprintf("%s has no field %q", owner, field), hint: hint}
}

// ownerOf finds the typed variable whose field starts at offset.
func ownerOf(text string, offset int) (string, []Field) {
	before := strings.TrimRight(text[:offset], " \n\t?")
	before = strings.TrimRight(strings.TrimSuffix(before, "."), " \n\t")
	for _, v := range variables {
		if v.Fields != nil && strings.HasSuffix(before, v.Name) {
			if rest := before[:len(before)-len(v.Name)]; rest == "" || !isNameByte(rest[len(rest)-1]) {
				return v.Name, v.Fields
			}
		}
	}
	return "", nil
}

func explainOverload(env *cel.Env, text string, offset int, function, operands string) issue {
	types := splitTypes(operands)
	found := issue{id: "cel-type", offset: offset}
	switch {
	case function == "_?_:_" && len(types) == 3 && types[0] != "bool" && types[0] != "dyn":
		found.message = fmt.Sprintf("the condition before ? must be a bool, got %s", types[0])
	case function == "_?_:_" && len(types) == 3:
		found.message = fmt.Sprintf("both sides of : must have the same type, got %s and %s", types[1], types[2])
		found.hint = "wrap one of them in dyn(…)"
	case function == "_[_]":
		found.message = fmt.Sprintf("%s cannot be indexed by %s", types[0], strings.Join(types[1:], ", "))
	case strings.ContainsAny(function, "_@!-"):
		operator := strings.Trim(strings.ReplaceAll(function, "@", ""), "_")
		found.message = fmt.Sprintf("%s does not take %s", operator, strings.Join(types, " and "))
		if slices.Contains(types, "string") && operator == "+" {
			found.hint = "convert the other side with string(…)"
		} else if operator == "&&" || operator == "||" || operator == "!" {
			found.hint = "conditions must be bool: compare with == or use has(…)"
		}
	default:
		if start := strings.LastIndex(text[:min(offset, len(text))], function[strings.LastIndexByte(function, '.')+1:]); start >= 0 {
			found.offset = start
		}
		found.message = fmt.Sprintf("%s does not take (%s)", function, strings.Join(types, ", "))
		if decl, ok := env.Functions()[function]; ok && len(decl.OverloadDecls()) > 0 {
			o := decl.OverloadDecls()[0]
			args := make([]string, 0, len(o.ArgTypes()))
			for _, t := range o.ArgTypes() {
				args = append(args, t.String())
			}
			if o.IsMemberFunction() && len(args) > 0 {
				found.hint = fmt.Sprintf("it is called as %s.%s(%s)", args[0], function, strings.Join(args[1:], ", "))
			} else {
				found.hint = fmt.Sprintf("it is called as %s(%s)", function, strings.Join(args, ", "))
			}
		}
	}
	return found
}

// splitTypes splits "(map(string, dyn), int)" at its outer commas. A receiver stands before its brackets: "string.(int)".
func splitTypes(s string) []string {
	if i := strings.Index(s, ".("); i >= 0 {
		s = s[:i] + ", " + strings.TrimSuffix(s[i+2:], ")")
	} else {
		s = strings.TrimSuffix(strings.TrimPrefix(s, "("), ")")
	}
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(s[start:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

func explainConstant(text string, offset int, function string) issue {
	found := issue{id: "cel-constant", offset: offset, length: utf8.RuneCountInString(text[offset:tokenEnd(text, offset)])}
	switch function {
	case "duration":
		found.message = "this is no duration"
		found.hint = `write "500ms", "20s", "1m30s" or "2h"`
	default:
		found.message = "this is no timestamp"
		found.hint = `write "2030-01-31T12:00:00Z"`
	}
	return found
}
