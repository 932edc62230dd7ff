// Package proxy runs a session: it stands between one MCP client and one MCP server, or several, and does what the engine says.
//
//	client ─ source ─► jsonrpc.Reader ─┐                         ┌─► outbox ─► client
//	                                   ├─► lock, Step, perform ──┤
//	server ─ source ─► jsonrpc.Reader ─┘   (session)             └─► outbox ─► server's stdin
//	                   timer, child supervisor, ctx ─► the same        │
//	                                                                   └─► logger ─► stderr
//
// All decisions are made in package engine, which has neither clock nor I/O. This package supplies both: it reads frames,
// starts and ends the server process, keeps one timer, and carries out the engine's actions. It knows nothing of MCP.
//
// # As a library
//
// This is a whole program, which puts itself between its client and a server as mcp-retry run does:
//
//	func main() {
//		options, err := proxy.Open("mcp-retry.yaml", "github")
//		if err != nil {
//			log.Fatal(err)
//		}
//		options.Stderr = os.Stderr
//		p, err := proxy.New(options)
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := p.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Any reader and writer will do in place of the standard ones: a program that is itself the client uses two pipes. [Parse]
// takes a config from the program's text, and a command without a config is
//
//	proxy.Options{Server: schema.Wrap("github", []string{"npx", "-y", "…"}, schema.WrapOptions{}).Servers[0]}
//
// # The log
//
// Options.Stderr gets one record a line: JSON, or with [LogPretty] the same for people. Events and fields are stable: new ones
// may come, none changes its meaning. Every record has time (RFC 3339), level (debug, info, warn, error), msg (the event) and,
// where it concerns one, server. Fields that are zero are left out. Of a tool and a scope 256 bytes are shown, of a detail 4 KiB.
//
//	event                         level          fields beside server
//	proxy_start                   info           detail: the version
//	server_start                  info           attempt: which life of the process it is
//	server_exit                   warn, info     attempt, duration_ms: how long it lived; detail: how it ended. info at the end of the session
//	server_useless                error          detail: why it is ended and not waited for
//	server_hung                   error          detail: why it is ended: it is up, and answers nothing
//	server_stderr                 info           text: a line that the server wrote to its stderr
//	tool_call_start               debug          tool, request_id
//	tool_call_end                 info, warn     tool, request_id, duration_ms, status, attempt: number of the last one; cache, dedup, rule;
//	                                             of a call without success: kind, code, delivery, ended_by
//	attempt_end                   debug          tool, request_id, attempt, duration_ms, status, kind, code, delivery, detail
//	circuit_breaker_state_change  warn, info     tool: whose attempt it was; scope, from, to. warn if it opens
//	cel_error                     warn           tool, request_id, rule, kind: the decision; detail: what the expression failed with
//	invalid_result                warn           tool, request_id, detail: what is wrong with the result
//	unchecked_result              warn           tool, request_id, detail: why it could not be validated; it passes
//	config_reload                 info to error  detail. error if the file is refused: a record for each finding; warn if it is gone
//	bad_frame                     warn           detail: what was no message, or had to be repaired
//	message_too_large             warn           detail
//	noise                         warn           detail: what the server wrote to stdout beside its messages
//	stray_answer                  debug          detail: an answer to a request that is not open
//	log_dropped                   warn           detail: how many records were lost because stderr is not read, or lines of a server's stderr left
//	                                             out because it writes without end
//	recording_ended               error          detail: why what passes is not recorded any more
//	name_cut                      warn           tool, detail: what its composed name is, which would have been too long
//	server_missing                warn, debug    detail: why a composed server is hidden for now
//	server_left_out               warn, debug    code, detail: a list that a composed server did not give
//	server_back                   info           a composed server is there, again or for the first time
//	server_added                  info           a changed config has a server more
//	server_removed                info           a changed config has it no more: what is in flight there finishes, and it ends
//	resource_shared               warn           detail: a resource that a composed server before this one has too
//
// status is success, tool_error (the tool's own error), error, timeout, refused (by breaker, limits or idempotency: nothing was
// sent), denied or cancelled. request_id is the client's id. delivery is not_sent, rejected, unknown or answered; cache is hit,
// miss, stored or stale; dedup is joined, replayed or kept.
//
// Where several servers are behind one endpoint, a board of package compose stands between the client and one engine per
// server. The session has one outbox towards the client and a process per server; all else is the same.
//
// # Who does what
//
// There is no goroutine between reading a frame and writing it on. Whoever has an event (the reader of either side, the
// timer, the supervisor of the server process) takes the session's one lock, calls Step, carries out the actions and
// releases the lock. What is written is gathered in an outbox and goes out in one system call when the reader has used up
// what it had read, so a burst of frames costs one write and a lone frame is never held back.
//
// Nothing blocks under the lock. A write that does not fit into the pipe stays in the outbox, and a goroutine that lives
// only as long as there is something left drains it. A side that does not take its output stops the reading that feeds it.
//
// The server runs in a process group of its own; its stderr is read at all times and goes into the log. See child.go for
// how it is started and ended.
package proxy
