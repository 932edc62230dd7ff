package engine_test

import (
	"strings"
	"testing"
)

// FuzzFrames: whatever a client and a server say, and whatever becomes of the server meanwhile, each request of the client is
// answered once, under its own id, and in time; each frame that is no message is refused; what goes out is JSON-RPC; and the session
// comes to its end. A script has a line for each thing that happens:
//
//	> FRAME   the client says it; #1 in it is the id of the server's latest question, #2 that of the one before …
//	< FRAME   the server says it; #1 in it is the id of the latest request that it got …
//	>> FRAME  the same, of a frame that is over the limit: its ends are known
//	<< FRAME
//	+ 1500    so many milliseconds pass
//	x 2       the server's process ends, and has not read the last two calls
//	!         its start fails
//	z         it reads no more, or again
//	a         it answers initialize and tools/list by itself, or no longer
//	r         the config is loaded again, with another command
//	.         the client will send no more
//	~         we are told to end
func FuzzFrames(f *testing.F) {
	for i, script := range scripts {
		for era := range eras {
			f.Add(uint8(9*i+4*era), uint8(era), script) // each under another config
		}
	}
	f.Fuzz(func(t *testing.T, setup, era uint8, script string) {
		if len(script) > 10_000 {
			return
		}
		w := newScripted(t, setups[int(setup)%len(setups)], era)
		for line := range strings.SplitSeq(script, "\n") {
			w.play(line)
		}
		w.conclude()
	})
}

// scripts are what the fuzzer begins with.
var scripts = []string{
	`> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"n":1}}}
> {"jsonrpc":"2.0","id":"1","method":"tools/call","params":{"arguments":{"n":1},"name":"read"}}
< {"jsonrpc":"2.0","id":#1,"result":{"content":[{"type":"text","text":"a"}]}}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"n":1}}}
< {"jsonrpc":"2.0","id":#1,"result":{"content":[]},"error":{"code":1,"message":"x"}}`,

	`> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"_idempotency_key":"k"},"_meta":{"progressToken":"p"}}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":#1,"progress":1}}
< {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}
> {"jsonrpc":"2.0","id":#1,"result":{}}
x
+ 900
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{},"_meta":{"idempotencyKey":"k"}}}`,

	`> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"idem"}}
< {"jsonrpc":"2.0","id":#1,"error":{"code":-32603,"message":"busy","data":{"retryAfterMs":20}}}
+ 600
< {"jsonrpc":"2.0","id":#1,"error":{"code":-32023,"message":"busy"}}
+ 5000
< [{"jsonrpc":"2.0","id":#2,"result":{"isError":true,"content":[{"type":"text","text":"no"}]}}, 1]
+ 5000
< {"jsonrpc":"2.0","id":#1,"result":null}
z
> {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"plain","task":{}}}
+ 60000
z`,

	`> [{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}},{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"u"}},{},7]
< {"jsonrpc":"2.0","id":#1,"result":{"contents":[]}}
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
+ 5000
< {"jsonrpc":"2.0","id":#2,"error":{"code":-32602,"message":"no"}}
> [{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}},[],{"jsonrpc":"2.0","method":"x"}]`,

	`> {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"u","_meta":{"progressToken":4}}}
> {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{}}
< {"jsonrpc":"2.0","id":#2,"result":{}}
< {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":#1}}}
< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
r
+ 100
< {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":#1}}
.`,

	`>> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"x":"…"}}}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"x":"…"}}}
<< {"jsonrpc":"2.0","id":#1,"result":{"content":"…"}}
<< {"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"x":"…"}}
< {"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}
>> {"jsonrpc":"2.0","id":#1,"result":{"x":"…"}}`,

	"a\nx\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ghost\"}}\n+ 400\n!\n+ 3000\n" +
		"< {\"jsonrpc\":\"2.0\",\"id\":#1,\"result\":{\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}}}\n+ 100\n< Content-Length: 12\n~",

	"> {\n> []\n> {\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\xff\"}}\n" +
		"> {\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"ping\"}\n> {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n" +
		"> {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}\n< [INFO] \xfe\n< {\"jsonrpc\":\"2.0\",\"id\":#1,\"result\":\"\xfe\"}",
}
