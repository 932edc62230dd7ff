package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bentabol/mcp-retry/proxy/flaky"
)

// measuredField is a session whose metrics are served.
type measuredField struct {
	*field
	address string
}

// startMeasured starts a session as [startField] does, with metrics.
func startMeasured(t *testing.T, settings string, script flaky.Script) *measuredField {
	t.Helper()
	f := &measuredField{field: newField(t), address: freeAddress(t)}
	script.Ledger = f.ledger
	config := f.write("mcp-retry.yaml", fieldConfig(f.write("script.json", script.String()), settings))
	f.launch([]string{"run", "--log-level", "debug", "--metrics", f.address, "--config", config}, nil, false)
	return f
}

// freeAddress is an address at which nobody listens, nor will by chance: no system gives one of these ports to whoever asks for any,
// and no test of this process gets one twice.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, ports = 15_000, 15_000
	for range ports {
		address := fmt.Sprintf("127.0.0.1:%d", first+freePort.Add(1)%ports)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// freePort counts the ports that were tried, from anywhere.
var freePort atomic.Int64

func init() { freePort.Store(rand.Int64N(1 << 30)) }

// page fetches a page. It is served before the first record is logged.
func (f *measuredField) page(path string) (int, string) {
	f.t.Helper()
	f.logged("proxy_start")
	answer, err := http.Get("http://" + f.address + path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// shows fails the test unless the page of metrics has each of these lines.
func (f *measuredField) shows(samples ...string) {
	f.t.Helper()
	_, text := f.page("/metrics")
	lines := strings.Split(text, "\n")
	for _, sample := range samples {
		if !slices.Contains(lines, sample) {
			f.t.Errorf("there is no %s in\n%s", sample, text)
		}
	}
}

// healthy fails the test unless the health of the server is this.
func (f *measuredField) health(status int, want string) {
	f.t.Helper()
	got, text := f.page("/healthz")
	var page struct {
		Status  string
		Servers map[string]string
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || got != status || page.Status != want || page.Servers["flaky"] != want {
		f.t.Errorf("want %d %s, the page says %d %s (%v)", status, want, got, text, err)
	}
}

func TestB114HealthIsToldApartAndStartsNothing(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "circuit_breaker: {failure_threshold: 1, cooldown_seconds: 3600}\nretry: {max_retries: 0}", flaky.Script{Tools: []flaky.Tool{
		{Name: "ok"},
		{Name: "die", Plan: flaky.Plan{Outcomes: []flaky.Outcome{{Exit: new(3)}}}},
	}})
	f.health(http.StatusOK, "starting")
	f.open()
	f.health(http.StatusOK, "healthy")
	f.call("1", "die", "{}")
	f.failure("1", -31004)
	f.logged("server_exit")
	for range 3 {
		f.health(http.StatusServiceUnavailable, "open")
	}
	f.call("2", "ok", "{}")
	f.failure("2", -31002)
	if lives := f.readLedger().Lives(); lives != 1 {
		t.Errorf("the server was started %d times", lives)
	}
	f.shows(
		`mcp_retry_breaker_state{scope="server",server="flaky"} 2`,
		`mcp_retry_breakers{server="flaky",state="open"} 1`,
		`mcp_retry_breakers{server="flaky",state="closed"} 0`,
		`mcp_retry_breaker_transitions_total{scope="server",server="flaky",to="open"} 1`,
		`mcp_retry_calls_total{server="flaky",status="refused",tool="ok"} 1`,
		`mcp_retry_attempt_failures_total{kind="exit",server="flaky",tool="die"} 1`,
		`mcp_retry_server_up{server="flaky"} 0`,
		`mcp_retry_calls_in_flight{server="flaky"} 0`,
	)
}

func TestHealthIsDegradedWhileTheNextCallWouldStartTheServerAnew(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "retry: {max_retries: 0}", toolbox(plainTool("die", flaky.Outcome{Exit: new(3)})))
	f.open()
	f.call("1", "die", "{}")
	f.failure("1", -31004)
	f.health(http.StatusOK, "degraded")
	f.call("2", "die", "{}")
	f.success("2")
	f.health(http.StatusOK, "healthy")
}

func TestMetricsComeAsTheScraperAccepts(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "", toolbox(readTool("look")))
	f.open()
	f.call("1", "look", "{}")
	f.success("1")
	for accept, want := range map[string]string{
		"": "text/plain", "application/openmetrics-text;version=1.0.0": "application/openmetrics-text",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited": "application/vnd.google.protobuf",
	} {
		r, err := http.NewRequest(http.MethodGet, "http://"+f.address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := answer.Header.Get("Content-Type"); err != nil || !strings.HasPrefix(got, want) || !strings.Contains(string(text), "mcp_retry_call_duration_seconds") {
			t.Errorf("%q is answered with %q (%v)", accept, got, err)
		}
		if ends := strings.HasSuffix(string(text), "# EOF\n"); ends != strings.Contains(want, "openmetrics") {
			t.Errorf("%q: the page ends with # EOF: %v", accept, ends)
		}
	}
}

func TestMadeUpToolsCannotFillThePage(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "", toolbox(readTool("look")))
	f.open()
	const many = 200
	for i := range many {
		id := fmt.Sprint(i + 1)
		f.call(id, "made_up_"+id, "{}")
		f.answer(id)
	}
	_, text := f.page("/metrics")
	if n := strings.Count(text, "mcp_retry_calls_total{"); n > 20 {
		t.Errorf("%d tools are shown", n)
	}
	if !strings.Contains(text, `tool="other"`) {
		t.Errorf("the rest is not counted:\n%s", text)
	}
}

func TestWhatHappensToCallsIsCounted(t *testing.T) {
	t.Parallel()
	busy := flaky.Outcome{Error: &flaky.Error{Code: -32000, Message: "busy"}}
	f := startMeasured(t, `retry: {base_delay: 1ms}
idempotency_ttl: 60
cache: {tools: {look: 60}}
policy: [{when: 'tool.name == "write" && args.missing == 1', retry: false}]`, flaky.Script{Tools: []flaky.Tool{
		{Name: "look", Annotations: &flaky.Annotations{ReadOnly: new(true)}},
		{Name: "write", Plan: flaky.Plan{Outcomes: []flaky.Outcome{busy, busy}}},
	}})
	f.open()
	f.request(`"list"`, "tools/list", "{}")
	f.success(`"list"`)
	for _, call := range [][2]string{{"1", "look"}, {"2", "look"}, {"3", "write"}, {"4", "write"}} {
		f.call(call[0], call[1], "{}")
		f.success(call[0])
	}
	f.call("5", `made \"up\"\n{x=\"1\"} 7`, "{}")
	f.answer("5")
	f.put("servers: [")
	f.reloaded("error", "refused")
	f.shows(
		`mcp_retry_config_reloads_total{result="refused"} 1`,
		`mcp_retry_config_reloads_total{result="ok"} 0`,
		`mcp_retry_calls_total{server="flaky",status="success",tool="look"} 2`,
		`mcp_retry_calls_total{server="flaky",status="success",tool="write"} 2`,
		`mcp_retry_attempts_total{server="flaky",tool="write"} 3`,
		`mcp_retry_retries_total{reason="rpc",server="flaky",tool="write"} 2`,
		`mcp_retry_cache_total{result="miss",server="flaky",tool="look"} 1`,
		`mcp_retry_cache_total{result="hit",server="flaky",tool="look"} 1`,
		`mcp_retry_dedup_total{kind="replayed",server="flaky",tool="write"} 1`,
		`mcp_retry_call_duration_seconds_count{server="flaky",tool="look"} 2`,
		`mcp_retry_server_up{server="flaky"} 1`,
		`mcp_retry_server_restarts_total{server="flaky"} 0`,
	)
	if _, text := f.page("/metrics"); !strings.Contains(text, `tool="made \"up\"\n{x=\"1\"} 7"`) {
		t.Errorf("a made-up name is not shown escaped:\n%s", text)
	}
	if status, text := f.page("/debug/state"); status != http.StatusOK || !json.Valid([]byte(text)) {
		t.Errorf("the state is %d %s", status, text)
	}
}

func TestTheStateShowsWhatIsInFlight(t *testing.T) {
	t.Parallel()
	f := startMeasured(t, "", flaky.Script{Tools: []flaky.Tool{{Name: "slow", Plan: flaky.Plan{Outcomes: []flaky.Outcome{{Hang: true}}}}}})
	f.open()
	f.call("1", "slow", `{"secret":"hidden"}`)
	f.arrived("slow", 1)
	_, text := f.page("/debug/state")
	if !strings.Contains(text, `"tool": "slow"`) || !strings.Contains(text, `"state": "sending"`) || strings.Contains(text, "hidden") {
		t.Errorf("the state is %s", text)
	}
	f.shows(`mcp_retry_calls_in_flight{server="flaky"} 1`)
	f.cancel("1")
	f.logged("tool_call_end")
	f.shows(`mcp_retry_calls_in_flight{server="flaky"} 0`)
}

func TestB86APortInUseIsAnErrorBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	marker := fieldFile(t, "ledger", "")
	script := fieldFile(t, "script.json", flaky.Script{Ledger: marker}.String())
	config := fieldFile(t, "mcp-retry.yaml", fieldConfig(script, ""))
	for _, args := range [][]string{
		{"run", "--config", config, "--metrics", l.Addr().String()},
		{"wrap", "--metrics", l.Addr().String(), "--", fieldProgram(t), flakyCommand, script},
	} {
		stdout, stderr, status := fieldProcess(t, nil, args...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, l.Addr().String()) {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", args[0], status, stdout, stderr)
		}
	}
	if ledger, err := flaky.ReadLedger(marker); err != nil || len(ledger) > 0 {
		t.Errorf("the server was started: %v, %v", ledger, err)
	}
	_, stderr, status := fieldProcess(t, nil, "run", "--config", config, "--metrics", "localhost")
	if status != exitUsage || !strings.Contains(stderr, "127.0.0.1:9464") {
		t.Errorf("no port: exit status %d, stderr %q", status, stderr)
	}
}

func TestASecretThatARuleMakesAScopeOfIsNotShown(t *testing.T) {
	t.Parallel()
	const secret = "a-value-that-nobody-may-see"
	f := startMeasured(t, `env: {API_TOKEN: "`+secret+`"}
retry: {max_retries: 0}
circuit_breaker: {failure_threshold: 1, cooldown_seconds: 3600}
rate_limit: {calls: 9, per: 3600}
policy: [{breaker_scope: 'args.user', rate_limit_key: 'args.user'}]`,
		toolbox(plainTool("work", flaky.Outcome{Error: &flaky.Error{Code: -32603, Message: "no"}})))
	f.open()
	f.call("1", "work", `{"user":"`+secret+`"}`)
	f.failure("1", -32603)
	f.logged("circuit_breaker_state_change")
	for _, path := range []string{"/metrics", "/debug/state"} {
		_, text := f.page(path)
		if strings.Contains(text, secret) || !strings.Contains(text, "[redacted:") {
			t.Errorf("%s shows\n%s", path, text)
		}
		if path == "/debug/state" && !strings.Contains(text, `"key rate_limit: [redacted:`) {
			t.Errorf("the bucket is not told as a person would read it:\n%s", text)
		}
	}
	f.health(http.StatusServiceUnavailable, "open")
	f.mu.Lock()
	defer f.mu.Unlock()
	if log := strings.Join(f.words, "\n"); strings.Contains(log, secret) {
		t.Errorf("the log shows\n%s", log)
	}
}
