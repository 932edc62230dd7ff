package examples_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bentabol/mcp-retry/policy"
)

// Tools as servers declare them.
var (
	reads      = policy.Tool{Annotated: true, ReadOnly: true}
	writes     = policy.Tool{Annotated: true, Destructive: true}
	overwrites = policy.Tool{Annotated: true, Destructive: true, Idempotent: true}
	unknown    = policy.Tool{}
)

// question is a call that the policy of an example is asked about.
type question struct {
	example, server, name string // server "" = the only one
	tool                  policy.Tool
	args                  string
}

// ask returns the plan for the call's tool, the call, and what is decided before its first attempt.
func (q question) ask(t *testing.T) (*policy.Plan, *policy.Call, *policy.Before) {
	t.Helper()
	cfg := load(t, q.example)
	s := cfg.Servers[0]
	if q.server != "" {
		s = cfg.Server(q.server)
	}
	plan := compile(t, s).For(q.name)
	c := &policy.Call{
		Tool: q.tool, Args: []byte(q.args), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Server: &policy.Peer{Name: s.Name}, Client: &policy.Peer{Name: "test"},
	}
	c.Tool.Name = q.name
	b := new(policy.Before)
	plan.Before(c, b)
	return plan, c, b
}

func TestTimesAndRetriesOfTools(t *testing.T) {
	const second = time.Second
	tests := []struct {
		question
		retries     int
		call, total time.Duration
	}{
		{question{"quickstart", "filesystem", "read_file", reads, `{}`}, 3, 20 * second, 84200 * time.Millisecond},
		{question{"quickstart", "everything", "echo", reads, `{}`}, 3, 30 * second, 55 * second},
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, 3, 20 * second, 55 * second},
		{question{"flaky-search", "", "search_web", unknown, `{}`}, 5, 6 * second, 50 * second},
		{question{"flaky-search", "", "search_images", unknown, `{}`}, 5, 15 * second, 50 * second},
		{question{"flaky-search", "", "list_engines", reads, `{}`}, 1, 20 * second, 50 * second},
		{question{"mcp-shield", "github", "get_file_contents", unknown, `{}`}, 3, 60 * second, 250500 * time.Millisecond},
		{question{"mcp-shield", "github", "search_repositories", unknown, `{}`}, 5, 30 * second, 222500 * time.Millisecond},
		{question{"mcp-shield", "filesystem", "read_file", unknown, `{}`}, 1, 10 * second, 21500 * time.Millisecond},
	}
	for _, test := range tests {
		_, _, b := test.ask(t)
		if b.MaxRetries != test.retries || b.CallTimeout != test.call || b.TotalTimeout != test.total {
			t.Errorf("%s, %s: %d retries of %v in %v; want %d of %v in %v", test.example, test.name,
				b.MaxRetries, b.CallTimeout, b.TotalTimeout, test.retries, test.call, test.total)
		}
	}
}

func TestWhatIsRetriedAndWhen(t *testing.T) {
	tool := func(text string) *policy.Failure {
		return &policy.Failure{Kind: "tool", Delivery: "answered", Text: text, Message: text}
	}
	timeout := &policy.Failure{Kind: "timeout", Delivery: "unknown", Transient: true}
	const (
		until     = "403 API rate limit exceeded for user ID 7. [rate reset in 1m05s]"
		secondary = "403 You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
	)
	tests := []struct {
		question
		failure *policy.Failure
		attempt int
		rule    string
		retry   bool
		delay   time.Duration // 0 = as computed
	}{
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, tool(until), 1, "limited-until", true, 66 * time.Second},
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, tool(secondary), 1, "limited", true, 5 * time.Second},
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, tool(secondary), 3, "limited", true, 15 * time.Second},
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, tool("404 Not Found"), 1, "otherwise", false, 0},
		{question{"github-rate-limit", "", "get_issue", reads, `{}`}, timeout, 1, "transient", true, 0},
		{question{"github-rate-limit", "", "create_issue", writes, `{}`}, tool(until), 1, "otherwise", false, 0},
		{question{"github-rate-limit", "", "create_issue", unknown, `{}`}, tool(secondary), 1, "otherwise", false, 0},
		{question{"guardrails", "", "refresh_statistics", unknown, `{}`}, timeout, 1, "leave-the-unknown-alone", false, 0},
		{question{"guardrails", "", "list_tables", reads, `{}`}, timeout, 1, "transient", true, 0},
		{question{"filesystem", "", "write_file", overwrites, `{"path":"/a"}`}, timeout, 1, "otherwise", false, 0},
		{question{"quickstart", "filesystem", "write_file", overwrites, `{}`}, timeout, 1, "transient", true, 0},
		{question{"quickstart", "filesystem", "edit_file", writes, `{}`}, timeout, 1, "otherwise", false, 0},
	}
	for _, test := range tests {
		plan, c, _ := test.ask(t)
		r := plan.AfterAttempt(c, test.failure, test.attempt, time.Second)
		if r.Rule != test.rule || r.Retry != test.retry || r.Delay != test.delay || r.Unsafe || len(c.Errors) > 0 {
			t.Errorf("%s, %s after %s %q: %+v, %v; want rule %s, retry %v, delay %v", test.example, test.name,
				test.failure.Kind, test.failure.Text, r, c.Errors, test.rule, test.retry, test.delay)
		}
	}
}

func TestCallsThatAreDenied(t *testing.T) {
	tests := []struct {
		name, args, rule string
	}{
		{"query", `{"sql":"SELECT 1"}`, ""},
		{"query", `{"sql":"\n select 1 ;\n"}`, ""},
		{"query", `{"sql":"DROP TABLE t"}`, "only-select"},
		{"query", `{"sql":"SELECT 1; DROP TABLE t"}`, "only-select"},
		{"query", `{"sql":7}`, "only-select"},
		{"query", `{}`, "only-select"},
		{"query", `{"sql":"SELECT 1","database":"prod"}`, "not-in-production"},
		{"list_tables", `{"database":"production"}`, "not-in-production"},
		{"list_tables", `{"database":"staging"}`, ""},
	}
	for _, test := range tests {
		_, _, b := question{"guardrails", "", test.name, reads, test.args}.ask(t)
		if b.DenyRule != test.rule || (b.Deny != "") != (test.rule != "") {
			t.Errorf("%s %s: denied by %q (%s), want %q", test.name, test.args, b.DenyRule, b.Deny, test.rule)
		}
	}
}

func TestKeysOfPayments(t *testing.T) {
	tests := []struct {
		name, args string
		key        string
		refused    bool
		forward    string
	}{
		{"create_charge", `{"order":{"id":"o-1001"}}`, `"e8b20c554d65f269e57fc578e95fe19926a0b2d1bf1f9cca349cf837222281c5"`, false, "arguments.idempotency_key"},
		{"create_charge", `{"order":{}}`, "", true, "arguments.idempotency_key"},
		{"create_payout", `{"order":{"id":9007199254740993},"payee":"kim"}`, `[9007199254740993,"kim"]`, false, ""},
		{"create_payout", `{"order":{"id":"o-7"}}`, "", true, ""},
		{"get_payment", `{"id":"p-1"}`, "", false, ""},
	}
	for _, test := range tests {
		_, _, b := question{"payments", "", test.name, unknown, test.args}.ask(t)
		if string(b.Key) != test.key || b.KeyRequired != test.refused || b.ForwardKey != test.forward {
			t.Errorf("%s %s: key %s, refused %v, forwarded to %q; want %s, %v, %q", test.name, test.args,
				b.Key, b.KeyRequired, b.ForwardKey, test.key, test.refused, test.forward)
		}
		if test.key != "" && (b.OnConflict != "reject" || b.IdempotencyTTL != 24*time.Hour || !b.IdempotencyStated) {
			t.Errorf("%s: %s for %v, want reject for 24h", test.name, b.OnConflict, b.IdempotencyTTL)
		}
	}
}

func TestScopesOfBreakers(t *testing.T) {
	tests := []struct{ server, name, args, scope string }{
		{"cloud", "list_instances", `{"region":"eu-west-1"}`, "region/eu-west-1"},
		{"cloud", "list_instances", `{"region":"moon-1"}`, "server"},
		{"cloud", "list_instances", `{"region":7}`, "server"},
		{"cloud", "list_instances", `{}`, "server"},
		{"fetch", "fetch", `{"url":"https://API.example.com:8443/v1?x=1"}`, "host/api.example.com"},
		{"fetch", "fetch", `{"url":"http://docs.example.com"}`, "host/docs.example.com"},
		{"fetch", "fetch", `{"url":"https://api.example.com.evil.test/"}`, "other hosts"},
		{"fetch", "fetch", `{"url":"not a url"}`, "other hosts"},
		{"fetch", "fetch", `{}`, "server"},
	}
	for _, test := range tests {
		_, c, b := question{"per-argument-breaker", test.server, test.name, reads, test.args}.ask(t)
		if b.BreakerScope != test.scope || len(c.Errors) > 0 {
			t.Errorf("%s %s: scope %q, %v; want %q", test.name, test.args, b.BreakerScope, c.Errors, test.scope)
		}
	}
}

func TestWhatIsCached(t *testing.T) {
	const found, nothing = `{"content":[{"type":"text","text":"found"}]}`, `{"content":[{"type":"text","text":"No results for x"}]}`
	tests := []struct {
		question
		result string
		ttl    time.Duration
	}{
		{question{"quickstart", "filesystem", "list_directory", reads, `{"path":"/a"}`}, found, 30 * time.Second},
		{question{"quickstart", "filesystem", "read_file", reads, `{"path":"/a"}`}, found, 15 * time.Second},
		{question{"quickstart", "filesystem", "search_files", reads, `{"path":"/a"}`}, found, 0},
		{question{"filesystem", "", "read_text_file", reads, `{"path":"/srv/a.txt"}`}, found, 15 * time.Second},
		{question{"filesystem", "", "read_text_file", reads, `{"path":"/srv/a.txt","head":3}`}, found, 0},
		{question{"filesystem", "", "read_text_file", reads, `{"path":"a.txt"}`}, found, 0},
		{question{"filesystem", "", "read_text_file", reads, `{"path":"/srv/../a.txt"}`}, found, 0},
		{question{"filesystem", "", "list_directory_with_sizes", reads, `{"path":"a"}`}, found, 30 * time.Second},
		{question{"flaky-search", "", "search_web", unknown, `{"query":"x"}`}, found, 2 * time.Minute},
		{question{"flaky-search", "", "search_web", unknown, `{"query":"x"}`}, nothing, 5 * time.Second},
		{question{"flaky-search", "", "list_engines", reads, `{}`}, found, 0},
	}
	for _, test := range tests {
		plan, c, b := test.ask(t)
		ttl, rule := plan.CacheTTL(c, []byte(test.result), time.Second)
		if ttl != test.ttl || len(c.Errors) > 0 {
			t.Errorf("%s, %s %s: kept for %v by %q, %v; want %v", test.example, test.name, test.args, ttl, rule, c.Errors, test.ttl)
		}
		if ttl > 0 && !b.CacheMayFill {
			t.Errorf("%s, %s %s: the cache is not asked", test.example, test.name, test.args)
		}
	}
}

func TestWhatWritesMakeStale(t *testing.T) {
	one := []string{
		`read_file {"path":"/srv/a.txt"}`, `read_text_file {"path":"/srv/a.txt"}`, `get_file_info {"path":"/srv/a.txt"}`,
		"list_directory* ", "directory_tree ", "search_files ",
	}
	tests := []struct {
		name, args string
		stale      []string // nil = no rule says so: everything
	}{
		{"write_file", `{"path":"/srv/a.txt","content":"x"}`, one},
		{"edit_file", `{"path":"/srv/a.txt","edits":[]}`, one},
		{"write_file", `{"path":"a.txt","content":"x"}`, nil},
		{"write_file", `{"path":"/srv/../a.txt","content":"x"}`, nil},
		{"move_file", `{"source":"/srv/a.txt","destination":"/srv/b.txt"}`, nil},
	}
	for _, test := range tests {
		_, c, b := question{"filesystem", "", test.name, writes, test.args}.ask(t)
		var got []string
		for _, i := range b.Invalidates {
			got = append(got, i.Tool+" "+string(i.Args))
		}
		if !slices.Equal(got, test.stale) || b.InvalidatesStated != (test.stale != nil) || b.InvalidatesAll || len(c.Errors) > 0 {
			t.Errorf("%s %s: %q, all %v, %v; want %q", test.name, test.args, got, b.InvalidatesAll, c.Errors, test.stale)
		}
	}
}

func TestFailuresThatCountAndOldAnswersThatStandIn(t *testing.T) {
	fetch := question{"per-argument-breaker", "fetch", "fetch", reads, `{"url":"https://docs.example.com/"}`}
	for text, counts := range map[string]bool{
		"Failed to fetch https://docs.example.com/ - status code 503": true,
		"Failed to fetch https://docs.example.com/: ConnectTimeout()": true,
		"Failed to fetch https://docs.example.com/ - status code 404": false,
	} {
		plan, c, _ := fetch.ask(t)
		failed, _ := plan.BreakerFailure(c, &policy.Failure{Kind: "tool", Delivery: "answered", Text: text}, nil)
		if failed != counts {
			t.Errorf("%q: counts as a failure: %v, want %v", text, failed, counts)
		}
	}
	for kind, transient := range map[string]bool{"timeout": true, "rpc": false} {
		plan, c, _ := question{"flaky-search", "", "search_web", unknown, `{}`}.ask(t)
		want := time.Duration(0)
		if transient {
			want = time.Hour
		}
		if d, _ := plan.StaleIfError(c, &policy.Failure{Kind: kind, Transient: transient}); d != want {
			t.Errorf("after %s an answer stands in for %v, want %v", kind, d, want)
		}
	}
}
