package examples_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/metrics"
)

// ours are the metrics of mcp-retry, by name, with everything counted at least once.
func ours(t *testing.T) map[string]bool {
	t.Helper()
	m := metrics.New("v1")
	meter := m.Meter("everything")
	tool := engine.ToolName{Name: "echo", Listed: true}
	meter.CallBegan(tool)
	meter.CallEnded(tool, engine.CallEnd{Status: "refused", By: "breaker", Dedup: "joined"})
	meter.Sent(tool, "timeout")
	meter.Failed(tool, "timeout")
	meter.Cache(tool, "hit")
	meter.Limited(tool, time.Second, false)
	meter.Limited(tool, time.Second, true)
	meter.EvalError("retry")
	meter.Breaker("server", "", "closed", time.Time{})
	meter.Breaker("server", "closed", "open", time.Now())
	w := httptest.NewRecorder()
	m.Handler(func() any { return nil }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^mcp_retry_\w+`).FindAllString(string(text), -1) {
		names[found] = true
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			names[strings.TrimSuffix(found, part)] = true
		}
	}
	return names
}

func TestTheDashboardAsksForWhatIsCounted(t *testing.T) {
	known := ours(t)
	text, err := os.ReadFile("metrics/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil || dashboard.Title == "" {
		t.Fatalf("this is no dashboard: %v", err)
	}
	asked := map[string]bool{}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`mcp_retry_\w+`).FindAllString(target.Expr, -1) {
				asked[name] = true
				if !known[name] {
					t.Errorf("the panel %q asks for %s, which there is not", p.Title, name)
				}
			}
		}
	}
	for name := range known {
		if !asked[name] && !asked[name+"_bucket"] && !strings.Contains(name, "_duration_seconds") {
			t.Errorf("no panel asks for %s", name)
		}
	}
}

func TestTheReadmeNamesWhatIsCounted(t *testing.T) {
	text, err := os.ReadFile("metrics/README.md")
	if err != nil {
		t.Fatal(err)
	}
	known := ours(t)
	for _, name := range regexp.MustCompile(`mcp_retry_\w+\w`).FindAllString(string(text), -1) {
		if !known[name] {
			t.Errorf("it names %s, which there is not", name)
		}
	}
	for name := range known {
		short := strings.TrimPrefix(name, "mcp_retry_")
		if !strings.Contains(string(text), "`"+short+"`") && !strings.Contains(name, "_duration_seconds_") {
			t.Errorf("it does not name %s", short)
		}
	}
}
