package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

func TestCompileReportsFaultsAtTheirPlace(t *testing.T) {
	for _, tc := range []struct {
		name string
		rule schema.Rule
		want string // position+length id: message (hint)
	}{
		// What is not known yet.
		{"error before the call", newRule("r", "", schema.CallTimeout, code(`error.kind == "timeout" ? 1 : 2`)),
			"f:1:1+5 cel-phase: `error` is not known before the call; here you have tool, args, meta, client, server, now (call_timeout is decided before the call)"},
		{"result in a key", newRule("r", "", schema.IdempotencyKey, code(`[args.id, result.id]`)),
			"f:1:11+6 cel-phase: `result` is not known before the call; here you have tool, args, meta, client, server, now (idempotency_key is decided before the call)"},
		{"attempt in a cache TTL", newRule("r", "", schema.CacheTTL, code(`attempt > 1 ? 0 : 30`)),
			"f:1:1+7 cel-phase: `attempt` is not known after a success; here you have tool, args, meta, client, server, now, elapsed, result (cache_ttl is decided after a success)"},
		{"a when for two phases", newRule("r", `tool.readOnly && error.transient`, schema.MaxRetries, int64(5), schema.Retry, true),
			"f:1:18+5 cel-phase: `error` is not known before the call; here you have tool, args, meta, client, server, now (split the rule: max_retries is decided before the call, retry later)"},
		{"a when for one phase", newRule("r", `result.ok`, schema.StaleIfError, time.Minute),
			"f:1:1+6 cel-phase: `result` is not known after the last failure; here you have tool, args, meta, client, server, now, error (stale_if_error is decided after the last failure)"},
		{"behind characters of several bytes", newRule("r", "", schema.Deny, code(`"é😀" + error.text`)),
			"f:1:8+5 cel-phase: `error` is not known before the call; here you have tool, args, meta, client, server, now (deny is decided before the call)"},
		{"in the second line", newRule("r", "", schema.Deny, code("args.a +\n  error.text")),
			"f:2:3+5 cel-phase: `error` is not known before the call; here you have tool, args, meta, client, server, now (deny is decided before the call)"},

		// Names.
		{"misspelt variable", newRule("r", `eror.transient`, schema.Retry, true),
			`f:1:1+4 cel-name: there is no variable "eror" (did you mean "error"?)`},
		{"unknown variable", newRule("r", `1 < upstream`, schema.MaxRetries, int64(1)),
			`f:1:5+8 cel-name: there is no variable "upstream" (here you have tool, args, meta, client, server, now)`},
		{"name from elsewhere", newRule("r", `arguments.x == 1`, schema.MaxRetries, int64(1)),
			`f:1:1+9 cel-name: there is no variable "arguments" (did you mean "args"?)`},
		{"misspelt function", newRule("r", `args.path.startWith("/")`, schema.MaxRetries, int64(1)),
			`f:1:11+9 cel-name: there is no function "startWith" (did you mean "startsWith"?)`},
		{"misspelt function of ours", newRule("r", "", schema.IdempotencyKey, code(`hsh(args)`)),
			`f:1:1+3 cel-name: there is no function "hsh" (did you mean "hash"?)`},
		{"misspelt field of tool", newRule("r", `tool.nmae == "x"`, schema.MaxRetries, int64(1)),
			`f:1:6+4 cel-field: tool has no field "nmae" (did you mean "name"?)`},
		{"unknown field of error", newRule("r", `1 == 1 && error.status == 500`, schema.Retry, true),
			`f:1:17+6 cel-field: error has no field "status" (error has kind, code, message, data, text, delivery, transient, retry_after)`},
		{"misspelt field of client", newRule("r", `client.versoin != ""`, schema.MaxRetries, int64(1)),
			`f:1:8+7 cel-field: client has no field "versoin" (did you mean "version"?)`},
		{"misspelt field of server", newRule("r", `server.nam != ""`, schema.MaxRetries, int64(1)),
			`f:1:8+3 cel-field: server has no field "nam" (did you mean "name"?)`},

		// Macros, which are functions that there are not to CEL if they are called otherwise.
		{"macro without a condition", newRule("r", `args.list.exists(x)`, schema.MaxRetries, int64(1)),
			`f:1:11+6 cel-type: exists does not take these arguments (it is called as LIST.exists(x, CONDITION))`},
		{"macro with a condition too many", newRule("r", `args.list.all(x, x > 1, x > 2, y)`, schema.MaxRetries, int64(1)),
			`f:1:11+3 cel-type: all does not take these arguments (it is called as LIST.all(x, CONDITION))`},
		{"has of a variable", newRule("r", `has(args)`, schema.MaxRetries, int64(1)),
			`f:1:5+4 cel-syntax: has() asks for a field (write has(args.NAME), or MAP[?KEY].hasValue() for a key)`},

		// Syntax.
		{"cut off", newRule("r", `tool.name ==`, schema.MaxRetries, int64(1)), `f:1:13+1 cel-syntax: the expression ends too early`},
		{"empty", newRule("r", "", schema.MaxRetries, code("")), `f:1:1+1 cel-syntax: the expression ends too early`},
		{"open string", newRule("r", `tool.name == "a`, schema.MaxRetries, int64(1)), `f:1:14+1 cel-syntax: a string that begins here has no end`},
		{"one equals sign", newRule("r", `tool.name = "a"`, schema.MaxRetries, int64(1)), `f:1:11+1 cel-syntax: unexpected "=" (equality is ==)`},
		{"word of the language", newRule("r", `args.in == 1`, schema.MaxRetries, int64(1)), `f:1:6+2 cel-syntax: "in" is a word of the language and cannot follow a dot (write ["in"] for .in)`},
		{"stray word", newRule("r", `tool.readOnly and true`, schema.MaxRetries, int64(1)), `f:1:15+3 cel-syntax: unexpected "and" (use &&)`},

		// Types.
		{"string for a bool", newRule("r", "", schema.Retry, code(`"yes"`)), `f:1:1+5 cel-type: retry: expected bool, got string`},
		{"string for a when", newRule("r", `tool.name`, schema.Retry, true), `f:1:1+9 cel-type: when: expected bool, got string`},
		{"string for a duration", newRule("r", "", schema.CacheTTL, code(`tool.readOnly ? "30s" : "1s"`)),
			`f:1:1+28 cel-type: cache_ttl: expected duration, got string (write duration("30s") or a number of seconds)`},
		{"bool for a reason", newRule("r", "", schema.Deny, code(`tool.destructive`)),
			`f:1:1+16 cel-type: deny: expected string, got bool (write the string for each case: condition ? "…" : "")`},
		{"bool for a key", newRule("r", "", schema.IdempotencyKey, code(`has(args.id)`)),
			`f:1:1+12 cel-type: idempotency_key: expected string, list or map, got bool`},
		{"optional for a scope", newRule("r", "", schema.BreakerScope, code(`args.?region`)),
			`f:1:1+12 cel-type: breaker_scope: expected string, got optional_type(dyn) (say what holds without a value: .orValue(…))`},
		{"string plus int", newRule("r", "", schema.RateLimitKey, code(`tool.name + 1`)),
			`f:1:11+1 cel-type: + does not take string and int (convert the other side with string(…))`},
		{"in a map, by number", newRule("r", `1 in args`, schema.MaxRetries, int64(1)), `f:1:3+2 cel-type: in does not take int and map(string, dyn)`},
		{"two types", newRule("r", "", schema.IdempotencyKey, code(`tool.readOnly ? null : "k"`)),
			`f:1:15+1 cel-type: both sides of : must have the same type, got null and string (wrap one of them in dyn(…))`},
		{"free call of a method", newRule("r", "", schema.RateLimitKey, code(`lowerAscii(tool.name)`)),
			`f:1:1+10 cel-type: lowerAscii does not take (string) (it is called as string.lowerAscii())`},
		{"condition that is none", newRule("r", `tool.name && true`, schema.Retry, true),
			`f:1:6+4 cel-type: expected bool, got string`},

		// Values known at once.
		{"duration that is none", newRule("r", "", schema.CacheTTL, code(`duration("5x")`)),
			`f:1:10+4 cel-constant: this is no duration (write "500ms", "20s", "1m30s" or "2h")`},
		{"pattern that is none", newRule("r", `tool.name.matches("(")`, schema.Retry, true),
			"f:1:19+3 cel-constant: this regular expression cannot be used: missing closing ): `(` (the syntax is RE2: no look-around, no back-references)"},
		{"always fails", newRule("r", "", schema.MaxRetries, code(`1 / 0`)), `f:1:3+1 cel-constant: always fails: division by zero`},
		{"no such word", newRule("r", "", schema.Effects, code(`"reads"`)),
			`f:1:1+7 bad-value: effects: expected one of none, idempotent, unsafe, unannotated, got "reads"`},
		{"literal word", newRule("r", "", schema.OnConflict, "fail"),
			`f:1:1+0 bad-value: on_conflict: expected one of replay, reject, got "fail"`},
		{"a path to nowhere", newRule("r", "", schema.ForwardKey, "headers.key"),
			`f:1:1+0 bad-value: forward_key: expected _meta.NAME or arguments.NAME, got "headers.key"`},
		{"a parameter under a when", newRule("r", `tool.readOnly`, schema.BaseDelay, time.Second),
			`f:1:1+0 bad-value: retry.base_delay cannot stand under a when: it is a parameter, not a decision (move it to a rule without when, or to tools)`},
		{"a decision that is none", newRule("r", "", schema.Decision("retires"), int64(1)),
			`f:1:1+0 unknown-key: there is no decision "retires"`},
		{"faulty arguments of an invalidation", newRule("r", "", schema.Invalidates, []schema.Invalidation{{Tool: "a", Args: expr(`"x"`)}}),
			`f:1:1+3 cel-type: args: expected map, got string`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, findings := Compile(newServer(tc.rule))
			if p != nil {
				t.Error("a policy came out in spite of the fault")
			}
			if got := strings.TrimSpace(text(findings)); got != tc.want {
				t.Errorf("got\n\t%s\nwant\n\t%s", got, tc.want)
			}
		})
	}
}

func TestCompileWarnsOfWordsThatNeverMatch(t *testing.T) {
	p, findings := Compile(newServer(
		newRule("a", `error.kind == "timout" || "anwered" != error.delivery`, schema.Retry, true),
		newRule("b", `tool.effects in ["none", "read-only"] && tool.name == "timout"`, schema.Retry, true),
		newRule("c", `error.kind == "" && ["x"].exists(k, k == "timout")`, schema.BreakerFailure, true),
	))
	want := `f:1:15+8 cel-never: error.kind is never "timout" (did you mean "timeout"?)
f:1:26+11 cel-never: tool.effects is never "read-only" (it is one of none, idempotent, unsafe, unannotated)
f:1:27+9 cel-never: error.delivery is never "anwered" (did you mean "answered"?)`
	if got := strings.TrimSpace(text(findings)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, found := range findings {
		if found.Level != schema.Warning {
			t.Errorf("%s is no warning", found.Message)
		}
	}
	if p == nil {
		t.Error("warnings refused the policy")
	}
}

func TestCompileReportsAllFaultsAtOnce(t *testing.T) {
	_, findings := Compile(newServer(
		newRule("a", `foo`, schema.Retry, code(`"yes"`), schema.CacheTTL, code(`1 +`)),
		newRule("b", "", schema.MaxRetries, code(`error.code + bar`)),
	))
	want := `f:1:1+3 cel-name: there is no variable "foo" (here you have tool, args, meta, client, server, now, elapsed)
f:1:1+5 cel-type: retry: expected bool, got string
f:1:1+5 cel-phase: ` + "`error`" + ` is not known before the call; here you have tool, args, meta, client, server, now (max_retries is decided before the call)
f:1:4+1 cel-syntax: the expression ends too early
f:1:14+3 cel-name: there is no variable "bar" (here you have tool, args, meta, client, server, now)`
	if got := strings.TrimSpace(text(findings)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCompileTellsOfAVariableThatComesTooLateBesideAnotherFault(t *testing.T) {
	for _, tc := range []struct {
		rule schema.Rule
		want string
	}{
		{newRule("r", `error.transient && tool.nmae == "x"`, schema.MaxRetries, int64(1)),
			"f:1:1+5 cel-phase: `error` is not known before the call; here you have tool, args, meta, client, server, now (max_retries is decided before the call)\n" +
				`f:1:25+4 cel-field: tool has no field "nmae" (did you mean "name"?)`},
		{newRule("r", "", schema.Retry, code(`tool.name + 1 == "x" && result.ok`)),
			`f:1:11+1 cel-type: + does not take string and int (convert the other side with string(…))` + "\n" +
				"f:1:25+6 cel-phase: `result` is not known after a failed attempt; here you have tool, args, meta, client, server, now, error, attempt, elapsed (retry is decided after a failed attempt)"},
		{newRule("r", "", schema.Retry, code(`args.list.exists(result, result.nmae + tool.readOnly)`)),
			`f:1:38+1 cel-type: + does not take dyn and bool`},
	} {
		_, findings := Compile(newServer(tc.rule))
		if got := strings.TrimSpace(text(findings)); got != tc.want {
			t.Errorf("got\n%s\nwant\n%s", got, tc.want)
		}
	}
}

func TestCompileTakesEveryVariableInItsPhase(t *testing.T) {
	for _, phase := range Phases {
		for _, v := range phase.Variables() {
			uses := []string{"dyn(" + v.Name + ") != null"}
			for _, f := range v.Fields {
				uses = append(uses, "dyn("+v.Name+"."+f.Name+") != 1.5")
			}
			for _, use := range uses {
				for _, d := range phase.Decisions() {
					if q := questions[questionOf(d)]; !q.constant {
						if p, findings := Compile(newServer(newRule("r", code(use), d, sample(q.form)))); p == nil {
							t.Errorf("%s for %s %s:\n%s", use, d, phase, text(findings))
						}
						break
					}
				}
			}
		}
	}
}

// sample is a literal of the form.
func sample(f form) any {
	switch f {
	case formWord:
		return EffectsNone
	case formBool:
		return true
	}
	return time.Second
}

func TestCompileBoundsExpressions(t *testing.T) {
	for name, text := range map[string]string{
		"deep brackets": strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"deep lists":    strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
		"long chain":    strings.Repeat("1 + ", 6000) + "1",
		"long text":     `"` + strings.Repeat("a", 1<<20) + `"`,
		"big pattern":   `tool.name.matches("((a{100}){100}){100}")`,
		"many fields":   "args" + strings.Repeat(".a", 5000),
		"nested loops":  strings.Repeat("args.a.all(x, ", 200) + "true" + strings.Repeat(")", 200),
	} {
		t.Run(name, func(t *testing.T) {
			if p, _ := Compile(newServer(newRule("r", code(text), schema.Retry, true))); p != nil {
				t.Error("it compiled")
			}
		})
	}
}
