package proxy

import (
	"errors"
	"slices"
	"strings"
)

// fault says in one line where a value does not match: "at '/rows/*/name': …", with * for an item or property that the library does
// not name. err is what the library says: every subschema on the way wraps the one within it.
func (p *parts) fault(err error) string {
	if err == nil {
		return ""
	}
	place, at := "", ""
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		within := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(err.Error(), cause.Error()), ": "), "validating ")
		if within == "root" {
			within = ""
		}
		place += p.step(at, within)
		at, err = within, cause
	}
	what, _, _ := strings.Cut(err.Error(), "\n") // the alternatives follow
	what, _, _ = strings.Cut(what, " of [<anonymous schema>")
	if s := p.at[at]; s != nil && s.Not != nil && p.of[s.Not] == nil {
		what = "nothing is allowed here"
	}
	return oneLine("at '" + place + "': " + libraryWords.Replace(what))
}

// step returns what is added to the place in a value on the way from one subschema to the next, each given by its JSON Pointer.
func (p *parts) step(from, to string) string {
	rest, inside := strings.CutPrefix(to, from+"/")
	if a := p.at[from]; !inside || a == nil || slices.Contains(p.of[a].refs, p.at[to]) {
		return ""
	}
	keyword, name, named := strings.Cut(rest, "/")
	switch keyword {
	case "properties", "prefixItems":
		return "/" + name
	case "items":
		if named {
			return "/" + name
		}
		return "/*"
	case "patternProperties", "additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems":
		return "/*"
	}
	return ""
}

var libraryWords = strings.NewReplacer("<anonymous schema>", "a subschema", "<invalid reflect.Value>", "null", "<nil>", "null")
