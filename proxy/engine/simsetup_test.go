package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// setup is a config of the simulation, and what of it the invariants need.
type setup struct {
	yaml       string
	retries    int
	call       time.Duration // call_timeout
	total      time.Duration // total_timeout
	most       time.Duration // max_call_time
	cached     bool          // reads are cached
	ttl        time.Duration // idempotency_ttl; 0 = not stated
	forwards   bool          // the server honours explicit keys
	daring     bool          // a rule has what may have taken effect run again
	toolErrors bool          // a rule has results that report an error retried
	enforces   bool          // results are validated
	places     int           // max_concurrency; 0 = any number
	tokens     int           // rate_limit: how many at once; 0 = any number

	compile func() (*schema.Server, *policy.Policy)
}

// setups are made up once: the same in every run.
var setups = func() (all []*setup) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 80 {
		all = append(all, newSetup(r))
	}
	return all
}()

// batches is the revision that has batches.
const batches = "2025-03-26"

// The rate limit of the setups that have one.
const (
	simRate  = 5
	simBurst = 3
)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func newSetup(r *rand.Rand) *setup {
	s := &setup{
		retries: pick(r, 0, 1, 3, 3),
		call:    pick(r, time.Second, 2*time.Second, 5*time.Second),
		most:    pick(r, 20*time.Second, 40*time.Second),
		cached:  r.IntN(2) == 0,
		ttl:     pick(r, 0, 0, time.Minute),
	}
	s.total = s.call + pick(r, time.Second, 5*time.Second, 10*time.Second)
	s.yaml = fmt.Sprintf("call_timeout: %v\ntotal_timeout: %v\nmax_call_time: %v\nstartup_timeout: 3\n", s.call, s.total, s.most)
	s.yaml += fmt.Sprintf("retry: {max_retries: %d, base_delay: %s, max_delay: 2, jitter: %s}\n", s.retries, pick(r, "0.1", "0.5"), pick(r, "0", "0.5"))
	s.yaml += fmt.Sprintf("circuit_breaker: {failure_threshold: %d, cooldown_seconds: %d, half_open_probes: %d}\n", pick(r, 1, 2, 5), pick(r, 1, 5), pick(r, 1, 1, 2))
	cache := fmt.Sprintf("max_entries: %d", pick(r, 2, 10, 1000))
	if s.cached {
		cache += fmt.Sprintf(", tools: {read: %d}", pick(r, 1, 60))
	}
	s.yaml += "cache: {" + cache + "}\n"
	if s.ttl > 0 {
		s.yaml += fmt.Sprintf("idempotency_ttl: %v\n", s.ttl)
	}
	s.yaml += pick(r, "", "", "retry_budget: {ratio: 0.2, per_second: 0.1, burst: 3}\n")
	if limit := pick(r, "", "", ", max_wait: 2", ", max_wait: 30", "-"); limit != "" {
		s.tokens = simBurst
		s.yaml += fmt.Sprintf("rate_limit: {calls: %d, per: 1, burst: %d%s}\n", simRate, simBurst, strings.TrimPrefix(limit, "-"))
	}
	if s.places = pick(r, 0, 0, 1, 2, 3); s.places > 0 {
		s.yaml += fmt.Sprintf("max_concurrency: %d\n", s.places)
	}
	s.yaml += pick(r, "", "", "validate_results: warn\n", "validate_results: enforce\n")
	s.enforces = strings.Contains(s.yaml, "enforce")
	s.yaml += pick(r, "", "", "", "restart: never\n")
	s.yaml += pick(r, "", "", "errors: result\n")
	s.yaml += pick(r, "", "", "mark_results: true\n")
	s.yaml += pick(r, "", "", "policy: [{stale_if_error: 30s}]\n", "policy: [{on_conflict: reject}]\n", "policy: [{breaker_scope: tool.name}]\n",
		"policy: [{when: 'error.kind == \"tool\"', retry: true}]\n", "policy: [{breaker_scope: '\"\"'}]\n",
		"policy: [{forward_key: _meta.key}]\n", "policy: [{retry: true, retry_unsafe: true}]\n", "policy: [{on_ambiguous: run}]\n",
		"policy: [{on_ambiguous: refuse}]\n", "policy: [{when: 'tool.name == \"idem\"', invalidates: [read, wr*]}]\n")
	s.toolErrors = strings.Contains(s.yaml, `"tool"`)
	s.forwards = strings.Contains(s.yaml, "forward_key")
	s.daring = strings.Contains(s.yaml, "retry_unsafe") || strings.Contains(s.yaml, "on_ambiguous: run")
	s.compile = sync.OnceValues(func() (*schema.Server, *policy.Policy) {
		server, compiled, err := load(s.yaml)
		if err != nil {
			panic(err)
		}
		return server, compiled
	})
	return s
}
