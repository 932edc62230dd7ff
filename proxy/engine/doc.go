// Package engine decides what happens to every message between one client and one server.
//
//	FromClient, FromServer, ServerUp, ServerDown, TakenBack, Tick …
//	                      │
//	         Step(now, event) ─► actions: ToClient, ToServer, TakeBack, StartServer, StopServer, Log, Finish
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
// Each guard stands where its refusal spoils least. What is hopeless is not begun, so the deadline comes first; a refusal of the
// breaker costs nothing, so it is next. The rest is taken once the server is up, for it would be lost in the wait: a rate token,
// which every attempt spends, so that what was counted is what the server gets; and last a place, which nobody should hold who
// cannot use it yet. A server is up when it has answered initialize: its start is no part of call_timeout, but of total_timeout.
//
// A kept or cached result costs the server nothing, so it spends no rate token and still answers while the breaker is
// open. Retry is outside the breaker: each attempt counts, and an open breaker ends the loop.
//
// # What waits unwritten
//
// A server that does not read makes frames wait in the host. An attempt that has run out of time there is taken back before it is
// judged: if not one byte was written, its delivery is not_sent, and it will never run. So is what the client cancels, and what
// another attempt has answered.
//
// # Two sessions in one
//
// Towards the server the engine numbers all requests itself, so that retries, restarts and clients that repeat ids cannot
// mix up answers; towards the client it numbers the server's questions. Only the id token, the progress token and the
// requestId of a cancellation are replaced in a frame; every other byte passes as it came. When the server process dies,
// the engine has it restarted on the next need, replays the handshake invisibly, and goes on.
package engine
