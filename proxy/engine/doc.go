// Package engine decides what happens to every message between one client and one server.
//
//	FromClient, FromServer, ServerUp, ServerDown, Tick …
//	                      │
//	         Step(now, event) ─► actions: ToClient, ToServer, StartServer, StopServer, Log, Finish
//	                      │
//	         NextWake() ─► when to call Step with a Tick, should nothing else happen
//
// It is sans-IO: no goroutine, no clock, no lock, no I/O, no global, and its randomness is seeded. All time and all input
// come in as arguments, all effects go out as values, so the proxy, the policy tests, replay and the simulator run the
// very same code, and a history is reproduced by its events alone.
//
// # The life of a call
//
// A tools/call goes through three functions, each a ladder of early returns that reads from top to bottom:
//
//	admit    cancelled? denied? → key → join an identical call in flight, or replay a kept result → cache → attempt
//	attempt  deadline left? → breaker → server up? → rate token → place at the server → write with a fresh id, set the attempt's timer
//	settle   classify → tell the breaker → retry? → wait; else keep, cache, invalidate, and reply exactly once
//
// A kept or cached result costs the server nothing, so it spends no rate token and still answers while the breaker is
// open. Retry is outside the breaker: each attempt counts, and an open breaker ends the loop.
//
// # Two sessions in one
//
// Towards the server the engine numbers all requests itself, so that retries, restarts and clients that repeat ids cannot
// mix up answers; towards the client it numbers the server's questions. Only the id token, the progress token and the
// requestId of a cancellation are replaced in a frame; every other byte passes as it came. When the server process dies,
// the engine has it restarted on the next need, replays the handshake invisibly, and goes on.
package engine
