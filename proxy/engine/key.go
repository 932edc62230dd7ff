package engine

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// digest names an operation or a cached result. It is SHA-256 over length-prefixed parts, so two different lists of parts
// cannot collide however their texts are chosen.
type digest [sha256.Size]byte

// largeArguments is the size in bytes from which arguments are hashed as they stand: to bring 50 MiB into canonical form
// would hold up everybody else. Such calls are identical only if their bytes are.
const largeArguments = 256 << 10

// keyOf makes the key of a call of a tool from what kind of key it is and the JSON value that identifies the call.
func (e *Engine) keyOf(kind, tool string, value []byte) digest {
	b := append(e.keyBuf[:0], "mcp-retry/1"...)
	b = appendPart(b, e.server.Name)
	b = appendPart(b, kind)
	b = appendPart(b, tool)
	if len(value) <= largeArguments {
		if text, err := jsonrpc.AppendCanonical(b, value); err == nil {
			e.keyBuf = text[:0]
			return sha256.Sum256(text)
		}
	}
	e.keyBuf = b[:0]
	h := sha256.New()
	h.Write(append(b, "raw "...))
	h.Write(value)
	var d digest
	h.Sum(d[:0])
	return d
}

// keyOfOperation names a keyed operation among those that are kept.
func (e *Engine) keyOfOperation(op *operation) digest {
	if op.keyed == implicit && op.key == (digest{}) {
		op.key = e.keyOf("args", op.tool.Name, op.arguments())
	}
	return op.key
}

func appendPart(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
