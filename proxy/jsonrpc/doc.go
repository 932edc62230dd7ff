// Package jsonrpc reads and edits JSON-RPC 2.0 frames without ever re-encoding them.
//
//	bytes ─ Reader ─► frame (one line) ─ Parse ─► Message: kind and the spans of id, method, params, result, error
//	                                                 │
//	                                   Members, Splice: the id token is replaced, every other byte stays
//
// A frame is scanned once, strictly: what [Parse] accepts is valid JSON (RFC 8259) in valid UTF-8, its envelope keys are
// matched case-sensitively, and a repeated envelope key is refused, so that the proxy and the server behind it can never
// read one frame two ways. Everything is a [Span] of the frame: numbers, escapes, order, white space and unknown members
// reach the other side as they came.
//
// The package knows JSON-RPC and the newline framing of MCP's stdio transport; it does not know MCP.
package jsonrpc
