package flaky_test

import (
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// awaitEvent reads a ledger again and again until it holds an event: a file cannot be waited for.
func awaitEvent(t *testing.T, path, event string) flaky.Entry {
	t.Helper()
	for deadline := time.Now().Add(100 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if found := readLedger(t, path).Events(event); len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("the ledger never held %q: %+v", event, readLedger(t, path))
	return flaky.Entry{}
}
