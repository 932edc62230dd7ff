package metrics

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// BenchmarkCall is what counting adds to a call that succeeds at once.
func BenchmarkCall(b *testing.B) {
	meter := New("v1").Meter("a")
	tool := engine.ToolName{Name: "search_repositories", Listed: true}
	b.ReportAllocs()
	for b.Loop() {
		meter.Bytes(engine.FromTheClient, 200)
		meter.CallBegan(tool)
		meter.Sent(tool, "")
		meter.Bytes(engine.ToTheServer, 200)
		meter.Bytes(engine.FromTheServer, 400)
		meter.Bytes(engine.ToTheClient, 400)
		meter.CallEnded(tool, engine.CallEnd{Status: "success", Took: 20 * time.Millisecond})
	}
}
