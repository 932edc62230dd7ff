package schema

import (
	"slices"
	"testing"
)

func TestACommandLineIsSplitAsAShellWould(t *testing.T) {
	for line, want := range map[string][]string{
		`npx @scope/server /home/user`:    {"npx", "@scope/server", "/home/user"},
		"  a\t b\n c ":                    {"a", "b", "c"},
		`a 'two words' "a \"b\"" c\ d ''`: {"a", "two words", `a "b"`, "c d", ""},
		`a'b'"c"d`:                        {"abcd"},
		`'it'\''s' "it's"`:                {"it's", "it's"},
		`"a\nb" a\nb 'a\nb'`:              {`a\nb`, "anb", `a\nb`},
		`"\$\\" \`:                        {`$\`, `\`},
		`a;b | c > d & $(e) * ~`:          {"a;b", "|", "c", ">", "d", "&", "$(e)", "*", "~"},
		`${SET} "${SET} x" '${SET}'`:      {"yes", "yes x", "${SET}"},
		`a${UNSET:-x y}b`:                 {"ax yb"},
		`"${UNSET:-it's "ok"}"`:           {`it's "ok"`},
		`$${SET} \${SET}`:                 {"${SET}", "${SET}"},
		`é "ü ö"`:                         {"é", "ü ö"},
		``:                                nil,
	} {
		var r report
		x := expander{env: testEnv, report: &r}
		if got := x.split(&node{text: line}); !slices.Equal(got, want) || len(r.findings) > 0 {
			t.Errorf("%s\n got %q\nwant %q %v", line, got, want, r.findings)
		}
	}
	for _, line := range []string{`a 'b`, `"`, `a "b\"`} {
		var r report
		x := expander{env: testEnv, report: &r}
		if x.split(&node{text: line}); len(r.findings) != 1 {
			t.Errorf("%s: %v", line, r.findings)
		}
	}
}

func TestNearest(t *testing.T) {
	keys := []string{"max_retries", "base_delay", "max_delay", "jitter", "backoff", "per", "env"}
	for word, want := range map[string]string{
		"max_retires": "max_retries", "maxRetries": "max_retries", "MAX-DELAY": "max_delay", "jiter": "jitter", "jittre": "jitter",
		"backof": "backoff", "pre": "per", "enviroment": "", "x": "", "": "", "completely_different": "",
	} {
		if got := nearest(word, keys); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
