// Package metrics counts what engines do and tells it over HTTP: to Prometheus, to whoever asks after the health of the
// servers, and to a person who looks for a fault.
//
//	/metrics      for Prometheus: its text format, OpenMetrics, or protobuf with native histograms, as the request accepts
//	/healthz      how the servers are, as JSON
//	/debug/state  what the engines hold at this moment, as JSON
//
// # Metrics
//
// All names begin with mcp_retry_. A server is named as in the config, a tool as the server names it.
//
//	calls_total{server,tool,status}            calls that have ended; status as in the log: success, tool_error, error,
//	                                           timeout, refused, denied, cancelled
//	refused_total{server,tool,by}              those with status refused: breaker, rate_limit, max_concurrency, idempotency
//	call_duration_seconds{server,tool}         from admission to the answer: histogram, classic and native
//	calls_in_flight{server}                    calls that wait for an answer
//	attempts_total{server,tool}                sends of a call to the server
//	attempt_failures_total{server,tool,kind}   those that failed: timeout, exit, spawn, transport, rpc, tool, malformed, overloaded
//	retries_total{server,tool,reason}          attempts after the first, by the kind of failure before them
//	cache_total{server,tool,result}            hit, miss, stored, stale (stood in for a failure), invalidated
//	dedup_total{server,tool,kind}              joined (an identical call was in flight), replayed (a kept result)
//	breaker_state{server,scope}                0 closed, 1 half-open, 2 open
//	breakers{server,state}                     how many breakers there are in each state
//	breaker_transitions_total{server,scope,to} changes of state
//	rate_limited_total{server,tool}            attempts refused for want of a rate token
//	rate_limit_waits_total{server,tool}        attempts that waited for one
//	rate_limit_wait_seconds_total{server,tool} how long
//	cel_errors_total{server,decision}          expressions that failed; the decision fell to its careful side
//	server_restarts_total{server}              starts of the server's process after the first
//	server_up{server}                          1 if its process runs and has answered
//	message_bytes_total{server,direction}      from_client, to_server, from_server, to_client
//	config_reloads_total{result}               changes of the config file while running: ok or refused
//	build_info{version}                        1
//
// Beside them stand the usual metrics of a Go program, go_… and process_….
//
// Nothing that a client or a server makes up can fill the page: a tool that the server has not listed is shown by name only
// as long as there are few of them, a listed one up to a greater bound, and the rest is tool="other". Scopes are bounded
// alike.
//
// A server that a changed config has removed leaves the health, and its gauges go with it; counts stay.
package metrics
