package policy

import "testing"

func TestLintFindsDurationsAboveTheirBound(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"a wait for a rate limit", `
    rate_limit: {calls: 60, per: 60, max_wait: 300}
    total_timeout: 200`, `4:5+10 warning[above-bound] a max_wait of 5m is cut to the total_timeout of 3m20s (lower max_wait, or raise total_timeout)`},
		{"what an expression may come to", `
    policy:
      - when: tool.effects == "none"
        cache_ttl: 'tool.readOnly ? duration("1000h") : duration("1h")'
      - retry_delay: 'error.transient ? duration("2h") : duration("1s")'`, `
6:37+17 warning[above-bound] cache_ttl: it is at most 720h, not 1000h
7:41+14 warning[above-bound] retry_delay: it is at most 1h, not 2h`},
		{"silent: within bounds", `
    rate_limit: {calls: 60, per: 60, max_wait: 5}
    policy:
      - retry_delay: 'error.transient ? duration("1h") : duration("0s")'`, ""},
	})
}
