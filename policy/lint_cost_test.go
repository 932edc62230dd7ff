package policy

import "testing"

func TestLintFindsCostlyExpressions(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"three loops", `
    policy:
      - name: a
        when: args.l.all(a, args.l.all(b, args.l.all(c, c == a + b)))
        max_retries: 1`, `6:15+55 warning[cel-cost] when may cost too much: millions of units with lists of 100 items and texts of 10000 characters, and the limit is 100000 (an expression that exceeds the limit fails; loop over less, or do not nest loops)`},
		{"silent: words of the expression, looked for in a text", `
    policy:
      - name: a
        when: '["ECONNRESET", "EPIPE"].exists(m, error.message.contains(m))'
        retry_delay: 1
      - name: b
        when: '["no", "yes"].exists(m, args.l.exists(x, x == m))'
        max_retries: 1`, ""},
		{"silent: one loop and a pattern", `
    policy:
      - name: a
        when: args.l.all(a, a > 1) && args.s.matches("^[a-z]+$")
        max_retries: 1`, ""},
	})
}
