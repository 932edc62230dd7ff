// Package compose puts several servers behind one endpoint: a switchboard between one MCP client and one engine per server.
//
//	client ─ frame ─► Board ─ the server's own words ─► engine of alpha ⇄ alpha
//	                    │                          └──► engine of beta  ⇄ beta
//	client ◄─ frame ────┴─◄─ renamed, renumbered, merged ◄─ what the engines have for the client
//
// It is sans-IO as the engines are, which it drives: [Board.Step] takes in an event of the client, of a server or of time, and
// returns what the engines want done, each action with the server that it concerns. Every server keeps an engine of its own,
// and so its policy, breakers, limits, cache and process; an engine sees the names that its server has given, and cannot tell
// that it is one of several.
//
// # Names
//
// A tool or prompt of a server is SERVER__NAME at the client, its description and schemas as they came. Letters of a server's
// name that clients refuse in tool names become underscores. A name longer than 64 bytes is cut and ends in a hash of all of
// it; a client that has kept such a name from another session need not list anything first, for the server is asked what it may
// be. Resources keep their URIs. Of those that are equal only the first server's is listed, and it is logged; who reads one gets
// it from the first server in the file that does not say it does not know it.
//
// # Who is asked
//
//	tools/call, prompts/get             the server in the name
//	completion/complete                 the server of the prompt or resource that is referred to
//	resources/read, subscribe …         the server whose list or template has the URI; else one after the other, until one knows it
//	initialize, server/discover         all; capabilities are merged, and the lowest protocol version holds
//	tools/list, prompts/list …          all that declare it; their pages become one
//	logging/setLevel                    all that declare it
//	subscriptions/listen                all, under the id that the client gave
//	ping                                nobody: it is answered here
//	anything else                       one after the other, until one knows it
//
// The requests of a batch go each where it belongs, and are answered in one frame.
//
// An answer to one server passes as it is, for engines answer under the client's own ids. Where all are asked, each is asked
// under an id of ours. What servers ask the client is numbered anew, since each engine numbers for itself.
//
// # Servers that are not there
//
// A server that cannot be initialized or listed is missing: it hides what is its own and nothing else. It is tried again when a
// call names it and, with back-off, from time to time; once it is there, the client is told that the lists have changed. It is told
// so, too, when a server drops out that was there: its process cannot be started any more, or is not to be. One whose process has
// only ended is started again when it is needed, and one whose breaker is open has its tools still: neither leaves the lists.
// Initialize waits for each server up to its startup_timeout, but no longer than 45 s once another is there, and a list 15 s:
// whoever is slower comes later in the same way.
//
// # Another config
//
// [Board.Rearrange] adds and removes servers while the session runs, and changes their order and the separator.
package compose
