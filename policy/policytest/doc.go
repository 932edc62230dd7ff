// Package policytest runs policy tests: files that say what calls come to under a config, if the server behaves so and so.
//
//	*.test.yaml ─ Find, Loader.Load ─► Suite ─ Run ─► Report ─┬ WritePretty, WriteJSON, WriteJUnit, WriteTAP, WriteGitHub
//	(schema.LoadTest)  config, policy, tools                  └ Coverage: rules, decisions and outcomes that were reached
//
// It holds no rule of its own. Every call goes through the engine and the policy that mcp-retry run uses; this package
// supplies the other two ends, a client and a server that answers attempt by attempt as the file's script says, and the
// clock, which is virtual: it jumps to the next thing that happens, so a wait of five minutes takes no time. Equal files give
// equal runs, waits and all, because the randomness is seeded.
//
// The same world serves those who ask other questions of a policy: [Explore] tries every sequence of outcomes, [Explain] says why
// a call is treated as it is, [Compare] what two configs treat differently, [Replay] what recorded traffic would come to.
//
// A row of a test begins with a fresh mcp-retry whose client has made the handshake and listed the tools. State carries over
// from step to step.
package policytest
