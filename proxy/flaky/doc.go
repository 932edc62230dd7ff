// Package flaky is an MCP server that misbehaves on request: the far end of the tests and of the demo.
//
//	Script ─ Serve ─► a server on stdin and stdout, which plays its script
//	                    │
//	                    └─► ledger: an append-only file of all that happened, shared by every life of the server
//
// It speaks the legacy revisions of the protocol (2024-11-05 to 2025-11-25) over newline-delimited JSON: initialize, ping,
// tools, resources, prompts, completion, logging and subscriptions, each answered sensibly unless the [Script] says
// otherwise. Any request can be told what it comes to, attempt by attempt:
//
//	flaky.Script{
//		Ledger: ledger,
//		Tools: []flaky.Tool{{
//			Name:        "pay",
//			Annotations: &flaky.Annotations{Destructive: new(true)},
//			Plan: flaky.Plan{Outcomes: []flaky.Outcome{
//				{Error: &flaky.Error{Code: -32000, Message: "busy"}}, // the first attempt is refused
//				{Effect: new(true), Hang: true},                      // the second pays, and its answer is lost
//			}},                                                       // from the third on all is well
//		}},
//	}
//
// and the same as JSON, where an outcome may also be one word ("ok", "hang", "exit", "kill"):
//
//	{"ledger": "ledger.jsonl",
//	 "tools": [{"name": "pay",
//	            "annotations": {"destructiveHint": true},
//	            "outcomes": [{"error": {"code": -32000, "message": "busy"}}, {"effect": true, "hang": true}]}]}
//
// [Outcome] lists what one request can come to, [Faults] what is wrong with the server as a whole: its framing, its ids,
// its manners at the end.
//
// # As a process
//
// A script travels in the environment variable named by [EnvVar], as JSON or as the path of a JSON file. A test binary
// becomes the server through its TestMain:
//
//	func TestMain(m *testing.M) {
//		if code, ok := flaky.MainFromEnv(); ok {
//			os.Exit(code)
//		}
//		os.Exit(m.Run())
//	}
//
// so that a test starts a server with its own executable and the script in its environment:
//
//	command: os.Executable()    env: {flaky.EnvVar: script.String()}
//
// # Counting
//
// How often a tool really did its work is what a proxy that retries must be judged by, and the only witness is the server.
// Its ledger is a file of JSON lines, one [Entry] each, that every life of the server appends to; the numbers of requests
// and executions are read back from it, so that a plan goes on where the previous life stopped. Tests read it with
// [ReadLedger]:
//
//	ledger.Attempts("pay") == 3 && ledger.Executions("pay") == 2
//
// A server ends itself after two minutes ([Faults.Lifetime]), so that a broken test leaves nothing behind.
package flaky
