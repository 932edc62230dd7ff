package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// page fetches a page of the metrics.
func page(t *testing.T, m *Metrics, path string, header ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	m.Handler(func() any { return "sessions" }).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// samples are the lines of /metrics that begin so.
func samples(t *testing.T, m *Metrics, prefix string) []string {
	t.Helper()
	status, text := page(t, m, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func wantSamples(t *testing.T, m *Metrics, prefix string, want ...string) {
	t.Helper()
	if got := samples(t, m, prefix); !slices.Equal(got, want) {
		t.Errorf("%s shows\n\t%s\nwant\n\t%s", prefix, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func call(meter *engine.Meter, tool string, listed bool) {
	name := engine.ToolName{Name: tool, Listed: listed}
	meter.CallBegan(name)
	meter.Sent(name, "")
	meter.CallEnded(name, engine.CallEnd{Status: "success", Took: time.Second})
}

func TestWhatAClientMakesUpCannotFillThePage(t *testing.T) {
	m := New("v1")
	meter := m.Meter("a")
	const many = 3000
	for i := range many {
		call(meter, fmt.Sprintf("made_up_%d", i), false)
		call(meter, fmt.Sprintf("listed_%d", i), true)
	}
	got := samples(t, m, "mcp_retry_calls_total{")
	if len(got) != maxListed+maxUnlisted+1 {
		t.Errorf("%d tools are shown", len(got))
	}
	if rest := fmt.Sprintf(`mcp_retry_calls_total{server="a",status="success",tool="other"} %d`, 2*many-maxListed-maxUnlisted); !slices.Contains(got, rest) {
		t.Errorf("there is no %s", rest)
	}
	call(meter, "listed_1", true)
	call(meter, "made_up_1", false)
	for _, want := range []string{
		`mcp_retry_calls_total{server="a",status="success",tool="listed_1"} 2`,
		`mcp_retry_calls_total{server="a",status="success",tool="made_up_1"} 2`,
	} {
		if !slices.Contains(samples(t, m, "mcp_retry_calls_total{"), want) {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestAToolThatIsListedLaterKeepsItsName(t *testing.T) {
	m := New("v1")
	meter := m.Meter("a")
	call(meter, "early", false)
	for i := range maxUnlisted {
		call(meter, fmt.Sprint("made_up", i), false)
	}
	call(meter, "early", true)
	call(meter, "another", false) // there is room for it, now that early counts as listed
	wantSamples(t, m, `mcp_retry_attempts_total{server="a",tool="early"`, `mcp_retry_attempts_total{server="a",tool="early"} 2`)
	wantSamples(t, m, `mcp_retry_attempts_total{server="a",tool="another"`, `mcp_retry_attempts_total{server="a",tool="another"} 1`)
}

func TestHostileNamesCannotBreakThePage(t *testing.T) {
	m := New("v1\xff", "a\xff")
	meter := m.Meter("a\xff")
	for _, name := range []string{"", "x\xff", strings.Repeat("x", maxName+1)} {
		call(meter, name, true)
	}
	wantSamples(t, m, "mcp_retry_attempts_total", `mcp_retry_attempts_total{server="a�",tool="other"} 3`)
	call(meter, "q\"\n\\{x=\"1\"} 7", true)
	if got := samples(t, m, `mcp_retry_attempts_total{server="a�",tool="q\"\n\\{x=\"1\"} 7"} 1`); len(got) != 1 {
		t.Errorf("the name is not escaped: %q", samples(t, m, "mcp_retry_attempts_total"))
	}
	meter.Breaker("x\xff", "", "closed", time.Time{})
	meter.Breaker("x\xff", "closed", "open", time.Now())
	wantSamples(t, m, "mcp_retry_breaker_transitions_total", `mcp_retry_breaker_transitions_total{scope="other",server="a�",to="open"} 1`)
	for _, path := range []string{"/healthz", "/debug/state"} {
		if _, text := page(t, m, path); !json.Valid([]byte(text)) {
			t.Errorf("%s is no JSON: %s", path, text)
		}
	}
}

func TestBreakersAreShownAsTheyAre(t *testing.T) {
	m := New("v1")
	meter := m.Meter("a")
	later := time.Now().Add(time.Hour)
	meter.Breaker("s", "", "closed", time.Time{})
	meter.Breaker("s", "closed", "open", later)
	meter.Breaker("s", "open", "half_open", later)
	wantSamples(t, m, "mcp_retry_breaker_state", `mcp_retry_breaker_state{scope="s",server="a"} 1`)
	meter.Breaker("s", "half_open", "", later)
	meter.Breaker("s", "half_open", "open", later) // an attempt that was sent before it was forgotten
	wantSamples(t, m, "mcp_retry_breaker_state")
	wantSamples(t, m, "mcp_retry_breakers", `mcp_retry_breakers{server="a",state="closed"} 0`,
		`mcp_retry_breakers{server="a",state="half_open"} 0`, `mcp_retry_breakers{server="a",state="open"} 0`)

	for i := range 1000 {
		meter.Breaker(fmt.Sprint("made of arguments ", i), "", "closed", time.Time{})
		meter.Breaker(fmt.Sprint("made of arguments ", i), "closed", "open", later)
	}
	if n := len(samples(t, m, "mcp_retry_breaker_state")); n != maxScopes { // s has been shown too, and there is other
		t.Errorf("%d scopes are shown", n)
	}
	if n := len(samples(t, m, "mcp_retry_breaker_transitions_total")); n > 2*maxScopes {
		t.Errorf("%d transitions are shown", n)
	}
	if !slices.Contains(samples(t, m, "mcp_retry_breakers"), `mcp_retry_breakers{server="a",state="open"} 1000`) {
		t.Errorf("breakers: %v", samples(t, m, "mcp_retry_breakers"))
	}
}

func TestTheWorstOfTheBreakersThatAreNotShownIsShown(t *testing.T) {
	m := New("v1")
	meter := m.Meter("a")
	now := time.Now()
	for i := range maxScopes {
		meter.Breaker(fmt.Sprint(i), "", "closed", now)
	}
	const other = `mcp_retry_breaker_state{scope="other"`
	wantSamples(t, m, other)
	meter.Breaker("x", "", "closed", now)
	meter.Breaker("y", "", "closed", now)
	wantSamples(t, m, other, other+`,server="a"} 0`)
	meter.Breaker("y", "closed", "open", now)
	meter.Breaker("x", "closed", "half_open", now)
	wantSamples(t, m, other, other+`,server="a"} 2`)
	meter.Breaker("y", "open", "", now)
	meter.Breaker("y", "open", "closed", now) // an attempt that was sent before it was forgotten
	wantSamples(t, m, other, other+`,server="a"} 1`)
	meter.Breaker("x", "half_open", "", now)
	wantSamples(t, m, other)
}

func TestScopesThatComeAndGoAreBounded(t *testing.T) {
	m := New("v1")
	meter := m.Meter("a")
	for i := range 1000 {
		scope := fmt.Sprint("made of arguments ", i)
		meter.Breaker(scope, "", "closed", time.Time{})
		meter.Breaker(scope, "closed", "open", time.Now())
		meter.Breaker(scope, "open", "", time.Now())
	}
	if n := len(samples(t, m, "mcp_retry_breaker_transitions_total")); n > maxScopes+1 {
		t.Errorf("%d transitions are shown", n)
	}
}

func TestHealth(t *testing.T) {
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	up := func(m *engine.Meter) { m.Life(engine.LifeUp, 1) }
	for name, c := range map[string]struct {
		play   []func(*engine.Meter)
		want   Health
		status int
	}{
		"nothing yet": {nil, Starting, 200},
		"started":     {[]func(*engine.Meter){func(m *engine.Meter) { m.Life(engine.LifeStarting, 1) }}, Starting, 200},
		"up":          {[]func(*engine.Meter){up}, Healthy, 200},
		"ended":       {[]func(*engine.Meter){up, func(m *engine.Meter) { m.Life(engine.LifeDown, 1) }}, Degraded, 200},
		"all breakers open": {[]func(*engine.Meter){up, func(m *engine.Meter) {
			m.Breaker("s", "", "closed", before)
			m.Breaker("s", "closed", "open", later)
		}}, Open, 503},
		"open, and time for a probe": {[]func(*engine.Meter){up, func(m *engine.Meter) {
			m.Breaker("s", "", "closed", before)
			m.Breaker("s", "closed", "open", before)
		}}, Degraded, 200},
		"one of two open": {[]func(*engine.Meter){up, func(m *engine.Meter) {
			m.Breaker("s", "", "closed", before)
			m.Breaker("s", "closed", "open", later)
			m.Breaker("t", "", "closed", before)
		}}, Degraded, 200},
		"closed again": {[]func(*engine.Meter){up, func(m *engine.Meter) {
			m.Breaker("s", "", "closed", before)
			m.Breaker("s", "closed", "open", later)
			m.Breaker("s", "open", "half_open", later)
			m.Breaker("s", "half_open", "closed", later)
		}}, Healthy, 200},
	} {
		t.Run(name, func(t *testing.T) {
			m := New("v1", "a")
			for _, play := range c.play {
				play(m.Meter("a"))
			}
			status, text := page(t, m, "/healthz")
			var got healthPage
			if err := json.Unmarshal([]byte(text), &got); err != nil || got.Status != c.want || got.Servers["a"] != c.want || status != c.status {
				t.Errorf("want %d %s, the page says %d %s (%v)", c.status, c.want, status, text, err)
			}
		})
	}
}

func TestTheHealthOfSeveralServers(t *testing.T) {
	life := map[Health]func(*engine.Meter){
		Starting: func(m *engine.Meter) { m.Life(engine.LifeStarting, 1) },
		Healthy:  func(m *engine.Meter) { m.Life(engine.LifeUp, 1) },
		Degraded: func(m *engine.Meter) { m.Life(engine.LifeDown, 1) },
		Open: func(m *engine.Meter) {
			m.Life(engine.LifeUp, 1)
			m.Breaker("s", "", "open", time.Now().Add(time.Hour))
		},
	}
	for _, c := range []struct{ a, b, want Health }{
		{Healthy, Healthy, Healthy}, {Healthy, Starting, Starting}, {Healthy, Degraded, Degraded}, {Healthy, Open, Degraded},
		{Open, Open, Open}, {Starting, Degraded, Degraded},
	} {
		m := New("v1")
		life[c.a](m.Meter("a"))
		life[c.b](m.Meter("b"))
		if got := m.health(time.Now()).Status; got != c.want {
			t.Errorf("%s and %s are %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

func TestEachFormatIsServed(t *testing.T) {
	m := New("v1")
	call(m.Meter("a"), "t", true)
	if _, text := page(t, m, "/metrics", "Accept", "application/openmetrics-text; version=1.0.0"); !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("this is not OpenMetrics: %.100s", text)
	}
	status, text := page(t, m, "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	if status != http.StatusOK || !strings.Contains(text, "mcp_retry_call_duration_seconds") || strings.Contains(text, "# HELP") {
		t.Errorf("this is not protobuf: %.100q", text)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "mcp_retry_call_duration_seconds" {
			h := f.GetMetric()[0].GetHistogram()
			if len(h.GetBucket()) != len(durations) || len(h.GetPositiveSpan()) == 0 {
				t.Errorf("the histogram is not classic and native: %v", h)
			}
		}
	}
}

func TestSeveralSessionsMayCountAndBeAskedAtOnce(t *testing.T) {
	m := New("v1")
	var all sync.WaitGroup
	for range 4 {
		meter := m.Meter("a")
		all.Go(func() {
			for i := range 200 {
				call(meter, fmt.Sprint("t", i), i%2 == 0)
				meter.Breaker(fmt.Sprint(i%3), "closed", "open", time.Now())
				meter.Life(engine.LifeUp, uint64(i))
			}
		})
		all.Go(func() {
			for _, path := range []string{"/metrics", "/healthz", "/debug/state"} {
				page(t, m, path)
			}
		})
	}
	all.Wait()
	wantSamples(t, m, "mcp_retry_calls_in_flight", `mcp_retry_calls_in_flight{server="a"} 0`)
}

func TestListen(t *testing.T) {
	for address, want := range map[string]string{
		"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464", "127.0.0.1:9464": "127.0.0.1:9464", "0.0.0.0:9464": "0.0.0.0:9464",
		"[::1]:9464": "[::1]:9464", "localhost:9464": "localhost:9464",
		"": "", "localhost": "", "host:port": "", ":99999": "", "::1": "",
	} {
		got, err := complete(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", address, got, err, want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), strconv.Quote(address)+" ") {
			t.Errorf("of %q it says %v", address, err)
		}
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(l.Addr().String()); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
}

func TestALocalPageIsForLocalEyes(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := New("v1", "a")
	defer m.Serve(l, func() any { return nil })()
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "localhost:9464": 200, "127.0.0.1:1": 200, "[::1]:9464": 200, "127.1.2.3": 200,
		"rebound.example": 403, "rebound.example:9464": 403, "10.0.0.1": 403,
	} {
		r, _ := http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/healthz", nil)
		r.Host = host
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("as host %q: %d, want %d", host, answer.StatusCode, want)
		}
	}
}

func TestAServerThatIsForgottenLeavesItsCountsOnly(t *testing.T) {
	m := New("v1", "a", "b")
	for _, name := range []string{"a", "b"} {
		meter := m.Meter(name)
		meter.Life(engine.LifeUp, 1)
		meter.Breaker("server", "", "closed", time.Time{})
		call(meter, "look", true)
	}
	m.Forget("b")
	m.Forget("nobody")
	for _, gauge := range []string{"calls_in_flight", "server_up", "breakers", "breaker_state"} {
		for _, line := range samples(t, m, "mcp_retry_"+gauge+"{") {
			if strings.Contains(line, `server="b"`) {
				t.Errorf("a gauge is left: %s", line)
			}
		}
	}
	wantSamples(t, m, `mcp_retry_calls_total{server="b"`, `mcp_retry_calls_total{server="b",status="success",tool="look"} 1`)
	if _, text := page(t, m, "/healthz"); strings.Contains(text, `"b"`) || !strings.Contains(text, `"healthy"`) {
		t.Errorf("the health is %s", text)
	}
	m.Meter("b").Life(engine.LifeUp, 1)
	if _, text := page(t, m, "/healthz"); !strings.Contains(text, `"b": "healthy"`) {
		t.Errorf("the health of one that is back is %s", text)
	}
}
