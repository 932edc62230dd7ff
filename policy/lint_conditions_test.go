package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bentabol/mcp-retry/schema"
)

// constancies are what a rule with the condition has been found to be.
func constancies(t *testing.T, when, decision string) string {
	t.Helper()
	var out []string
	for _, f := range lint(t, fmt.Sprintf("    policy:\n      - when: |-\n          %s\n        %s", when, decision), nil) {
		if f.ID == LintAlways || f.ID == LintNever {
			part := "all"
			if strings.HasPrefix(f.Message, "this part") {
				part = fmt.Sprintf("%d+%d", f.Pos.Col-11, f.Pos.Len)
			}
			out = append(out, strings.TrimPrefix(f.ID, "condition-")+" "+part)
		}
	}
	return strings.Join(out, ", ")
}

// What the parts of a condition ask of one value may leave nothing, or everything.
func TestLintFindsConditionsThatContradictThemselves(t *testing.T) {
	for _, tc := range []struct{ when, want string }{
		{`tool.name == "x" && tool.name == "y"`, "never all"},
		{`tool.name == "x" && tool.name != "x"`, "never all"},
		{`tool.name == "x" || tool.name != "x"`, "always all"},
		{`tool.name == "x" || !(tool.name == "x")`, "always all"},
		{`tool.name != "x" || tool.name != "y"`, "always all"},
		{`tool.name in ["a", "b"] && tool.name == "c"`, "never all"},
		{`tool.name in ["a", "b"] && tool.name == "b"`, ""},
		{`tool.name in []`, "never all"},
		{`tool.name.startsWith("get_") && tool.name == "list"`, "never all"},
		{`glob(tool.name, "get_*") && tool.name.startsWith("set")`, "never all"},
		{`glob(tool.name, "get_*") && glob(tool.name, "*_x")`, ""},
		{`glob(tool.name, "g?t*") && tool.name == "list"`, "never all"},
		{`tool.name.startsWith("aa") && tool.name.endsWith("aa") && !glob(tool.name, "aa*aa")`, ""},
		{`tool.name.matches("^a") && tool.name == "b"`, "never all"},
		{`tool.name.matches("^a") && tool.name.startsWith("b")`, ""},
		{`tool.name.contains("get") || !tool.name.startsWith("get_")`, "always all"},
		{`tool.annotated && !tool.annotated`, "never all"},
		{`client.name == "a" && client.name == "b"`, "never all"},
		{`has(args.x) || !has(args.x)`, "always all"},
		{`has(args.x) && !has(args.x)`, "never all"},
		{`args.x == 1 && args.x == 2`, "never all"},
		{`args.x == 1 || args.x != 1`, ""}, // it fails if x is missing
		{`args.x > 3 && args.x < 2`, "never all"},
		{`args.x > 2 && args.x < 3`, ""}, // 2.5
		{`args.x == 1 && args.x == "1"`, "never all"},
		{`args.x && !args.x`, "never all"},
		{`args.x == true && args.x == "yes"`, "never all"},
		{`size(args) >= 0`, "always all"},
		{`size(args) > 2 && size(args) < 3`, "never all"},
		{`tool.readOnly && (tool.name == "x" && tool.name == "y" || args.z == 1)`, "never 18+36"},
		{`tool.name == "x" ? args.y == 1 : tool.name == "z"`, ""},
		{`true`, "always all"},
		{`false`, "never all"},
	} {
		t.Run(tc.when, func(t *testing.T) {
			if got := constancies(t, tc.when, "call_timeout: 10"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLintKnowsTheBoundsOfWhatCounts(t *testing.T) {
	for _, tc := range []struct{ when, want string }{
		{`attempt < 1`, "never all"},
		{`attempt >= 1`, "always all"},
		{`0 < attempt`, "always all"},
		{`attempt == 0`, "never all"},
		{`attempt < 2`, ""},
		{`attempt > 3 && attempt < 2`, "never all"},
		{`attempt > 1 && attempt < 3`, ""},
		{`attempt > 1 || attempt < 2`, "always all"},
		{`error.transient && attempt > 0`, "always 19+11"},
		{`elapsed < duration("0s")`, "never all"},
		{`elapsed > duration("5s") && elapsed < duration("3s")`, "never all"},
		{`error.retry_after >= duration("0s")`, "always all"},
		{`error.text == "a" && error.text == "b"`, "never all"},
	} {
		t.Run(tc.when, func(t *testing.T) {
			if got := constancies(t, tc.when, "retry: false"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A plain true says nothing wrong, so it is but a note, and one alone.
func TestLintNotesAConditionThatIsPlainTrue(t *testing.T) {
	got := linted(lint(t, `
    policy:
      - name: a
        when: "true"
        call_timeout: 10`, nil), false)
	if want := `6:16+4 note[condition-always] rule "a" holds for every call (leave the when out)`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// However breaker_failure asks whether the result is an error, it counts every wrong argument of a model.
func TestLintFindsBreakersThatCountAnswersInAnySpelling(t *testing.T) {
	for _, tc := range []struct {
		text  string
		found bool
	}{
		{`result.isError`, true},
		{`result["isError"]`, true},
		{`result.isError == true`, true},
		{`has(result.isError) && result.isError`, true},
		{`"isError" in result && result.isError`, true},
		{`result != null && result.isError`, true},
		{`result.?isError.orValue(false)`, true},
		{`result[?"isError"].orValue(false)`, true},
		{`error.transient || has(result.isError) && result.isError`, true},
		{`error.kind == "tool"`, true},
		{`error.kind in ["tool", "timeout"]`, true},
		{`error.transient`, false},
		{`!has(result.isError)`, false},
		{`result.isError && text(result).contains("rate limit")`, false},
		{`result.isError && error.text.contains("rate limit")`, false},
		{`result.isError && result.content[0].text.contains("rate limit")`, false},
		{`error.kind == "tool" && !error.text.contains("not found")`, false},
	} {
		t.Run(tc.text, func(t *testing.T) {
			found := 0
			for _, f := range lint(t, fmt.Sprintf("    policy:\n      - breaker_failure: |-\n          %s", tc.text), nil) {
				if f.ID == LintBreakerAnswers {
					found++
					if f.Level != schema.Warning || f.Pos.Line != 6 {
						t.Errorf("at %s, %s", f.Pos, f.Level)
					}
				}
			}
			if (found == 1) != tc.found || found > 1 {
				t.Errorf("found %d times, want %t", found, tc.found)
			}
		})
	}
}
