package policy

import (
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

// What CEL says of tokens and the end of the file is no help to somebody who forgot a bracket.
func TestCompileSaysWhichBracketOrStringIsOpen(t *testing.T) {
	for source, want := range map[string]string{
		`size(args`:                     `f:1:5+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`tool.readOnly && (`:            `f:1:18+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`args.x in ["a", "b"`:           `f:1:11+1 cel-syntax: a bracket that opens here is not closed: "]" is missing`,
		"tool.readOnly &&\n  (args.x":   `f:2:3+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`tool.readOnly) && args.x`:      `f:1:14+1 cel-syntax: there is no bracket that this ")" closes`,
		`args.x in ["a", "b")`:          `f:1:20+1 cel-syntax: unexpected ")": the bracket that it would close is a "["`,
		`tool.name == ")" && (args.x`:   `f:1:21+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`tool.name == r"\(" && (args.x`: `f:1:23+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`args.x == '''a'b''' && (1`:     `f:1:24+1 cel-syntax: a bracket that opens here is not closed: ")" is missing`,
		`tool.name == "a`:               `f:1:14+1 cel-syntax: a string that begins here has no end`,
		`tool.name == "a\"`:             `f:1:14+1 cel-syntax: a string that begins here has no end`,
		`args.x.matches("\d+")`:         `f:1:17+2 cel-syntax: there is no escape \d in a string (write \\ for a backslash, or put an r before the string)`,
		"tool.readOnly ||\n":            `f:1:17+1 cel-syntax: the expression ends too early`,
		`not tool.readOnly`:             `f:1:1+3 cel-syntax: unexpected "not" (use !)`,
		`"it"s" == args.x`:              `f:1:6+1 cel-syntax: a string that begins here has no end`,
		`"a" "b" == args.x`:             `f:1:5+3 cel-syntax: unexpected "\"b\""`,
		`for == 1`:                      `f:1:1+3 cel-syntax: "for" is a word of the language, which cannot be a name`,
	} {
		_, findings := Compile(newServer(newRule("r", code(source), schema.MaxRetries, int64(1))))
		if got := strings.TrimSpace(text(findings)); got != want {
			t.Errorf("%s: got\n\t%s\nwant\n\t%s", source, got, want)
		}
	}
}

// A fault of types hides no word that is never there, and no pattern that is none.
func TestCompileReportsWordsBesideFaultsOfTypes(t *testing.T) {
	_, findings := Compile(newServer(newRule("r", `error.kind == "timout" && error.text + 1 == 2 && args.x.matches("(")`, schema.Retry, true)))
	want := "f:1:15+8 cel-never: error.kind is never \"timout\" (did you mean \"timeout\"?)\n" +
		"f:1:38+1 cel-type: + does not take string and int (convert the other side with string(…))\n" +
		"f:1:65+3 cel-constant: this regular expression cannot be used: missing closing ): `(` (the syntax is RE2: no look-around, no back-references)"
	if got := strings.TrimSpace(text(findings)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A constant in an expression has the bounds of the literal that could stand in its place.
func TestCompileBoundsDurationsInExpressions(t *testing.T) {
	for _, tc := range []struct {
		decision schema.Decision
		text     string
		want     string
	}{
		{schema.RetryDelay, `duration("2h")`, `f:1:1+14 bad-value: retry_delay: it is at most 1h, not 2h`},
		{schema.RetryDelay, `duration("-1s")`, `f:1:1+15 bad-value: retry_delay: a duration cannot be negative`},
		{schema.CallTimeout, `duration("48h")`, `f:1:1+15 bad-value: call_timeout: it is at most 24h, not 48h`},
		{schema.CallTimeout, `duration("0s")`, `f:1:1+14 bad-value: call_timeout: a timeout must be more than 0`},
		{schema.CacheTTL, `duration("1000h")`, `f:1:1+17 bad-value: cache_ttl: it is at most 720h, not 1000h`},
		{schema.CacheTTL, `duration("0s")`, ``},
		{schema.RetryDelay, `duration("1h")`, ``},
	} {
		_, findings := Compile(newServer(newRule("r", "", tc.decision, code(tc.text))))
		if got := strings.TrimSpace(text(findings)); got != tc.want {
			t.Errorf("%s: %s: got\n\t%s\nwant\n\t%s", tc.decision, tc.text, got, tc.want)
		}
	}
}
