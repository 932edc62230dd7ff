package policy

import "testing"

func TestLintAddsUpTimes(t *testing.T) {
	runLintCases(t, nil, false, []lintCase{
		{"few attempts fit", `
    call_timeout: 20
    total_timeout: 60
    retry: {max_retries: 5}`, `
5:5+13 warning[worst-case-time] 6 attempts of 20s and waits of 18.6s between them take 2m18.6s, more than total_timeout (1m): only 2 of them fit (raise total_timeout to 2m19s, or lower call_timeout or max_retries)
6:13+11 note[breaker-in-one-call] one call makes up to 6 attempts, and 5 failures open the breaker: the last is never made, and other calls are shut out (raise failure_threshold above 6, or lower max_retries)`},
		{"no second attempt fits", `
    call_timeout: 30
    total_timeout: 45
    retry: {max_retries: 1}`, `5:5+13 warning[worst-case-time] 2 attempts of 30s and waits of 600ms between them take 1m0.6s, more than total_timeout (45s): after one that times out there is no time for another (raise total_timeout to 1m1s, or lower call_timeout or max_retries)`},
		{"some do not fit", `
    call_timeout: 20
    total_timeout: 55`, `5:5+13 note[worst-case-time] 4 attempts of 20s and waits of 4.2s between them take 1m24.2s, more than total_timeout (55s) (raise total_timeout to 1m25s, or lower call_timeout or max_retries)`},
		{"of one tool", `
    total_timeout: 60
    call_timeout: 5
    tools:
      slow_*: {call_timeout: 50}`, `4:5+13 warning[worst-case-time] 4 attempts of "slow_*" of 50s and waits of 4.2s between them take 3m24.2s, more than total_timeout (1m): after one that times out there is no time for another (raise total_timeout to 3m25s, or lower call_timeout or max_retries)`},
		{"longer than clients wait", `
    call_timeout: 20
    tools:
      slow: {call_timeout: 50, retry: {max_retries: 1}}
      build: {call_timeout: 300, retry: {max_retries: 0}}`, `4:5+12 note[outlasts-client] a call may take 1m24.2s, in 4 attempts of 20s, and most clients give up after 1m (state total_timeout: 55, or lower call_timeout or max_retries)
6:14+12 note[outlasts-client] a call of "slow" may take 1m40.6s, in 2 attempts of 50s, and most clients give up after 1m (lower call_timeout, or have the client wait longer)
7:15+12 note[outlasts-client] a call of "build" may take 5m, in 1 attempt of 5m, and most clients give up after 1m (lower call_timeout, or have the client wait longer)`},
		{"longer than clients wait, by retries alone", `
    retry: {max_retries: 2}
    tools:
      other: {cache_ttl: 5}`, `4:13+11 note[outlasts-client] a call may take 1m31.8s, in 3 attempts of 30s, and most clients give up after 1m (lower call_timeout, or have the client wait longer)`},
		{"silent: not longer than clients wait, not sent again, stated, or it depends", `
    call_timeout: 10
    tools:
      a: {call_timeout: 50, effects: unsafe}
      b: {call_timeout: 50, total_timeout: 240}
      c: {call_timeout: 300, retry: {max_retries: 0}}
    policy:
      - when: tool.name == "c" && args.quick == true
        call_timeout: 5`, ""},
		{"silent: all fit, there are no retries, or it depends", `
    call_timeout: 10
    total_timeout: 60
    tools:
      a: {call_timeout: 40, retry: {max_retries: 0}}
      b: {call_timeout: 50, effects: unsafe}
      c: {call_timeout: 40}
    policy:
      - when: tool.name == "c" && args.quick == true
        max_retries: 0`, ""},
		{"the breaker opens within a call", `
    retry: {max_retries: 5}
    circuit_breaker: {failure_threshold: 3}
    call_timeout: 5`, `5:23+17 warning[breaker-in-one-call] one call makes up to 6 attempts, and 3 failures open the breaker: the last 3 are never made, and other calls are shut out (raise failure_threshold above 6, or lower max_retries)`},
		{"the last attempt is lost", `
    circuit_breaker: {failure_threshold: 3}`, `4:23+17 note[breaker-in-one-call] one call makes up to 4 attempts, and 3 failures open the breaker: the last is never made, and other calls are shut out (raise failure_threshold above 4, or lower max_retries)`},
		{"silent: the breaker stays closed", `
    retry: {max_retries: 4}
    call_timeout: 5
    circuit_breaker: {failure_threshold: 5}`, ""},
		{"stale for days", `
    policy:
      - stale_if_error: 48h`, `5:9+14 warning[stale-too-long] an answer that is 48h past its time may stand in for an error, and nobody sees that it is old (24h or less)`},
		{"stale for days, sometimes", `
    policy:
      - stale_if_error: 'error.transient ? duration("72h") : duration("1h")'`, `5:44+15 warning[stale-too-long] an answer that is 72h past its time may stand in for an error, and nobody sees that it is old (24h or less)`},
		{"silent: stale for a day", `
    policy:
      - stale_if_error: 24h`, ""},
	})
}
