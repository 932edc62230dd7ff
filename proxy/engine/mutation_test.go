package engine_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var mutate = flag.Bool("mutations", false, "run the simulation against broken engines, and have it find each fault")

// mutation is a way to break the engine: a piece of its source, which occurs once, and what to put in its place.
type mutation struct {
	what     string
	file     string
	old, new string
}

// mutations prove the simulation: for each invariant there are engines that break it.
var mutations = []mutation{
	{"a call is answered twice", "settle.go", "			e.pass(c, o)\n		}", "			e.pass(c, o)\n			e.pass(c, o)\n		}"},
	{"an answer carries another call's id", "settle.go", "jsonrpc.Edit{At: o.id, New: c.id}", "jsonrpc.Edit{At: o.id, New: c.op.first.id}"},
	{"a call that has joined is not answered", "settle.go", "	for _, c := range op.calls {\n		if e.server.MarkResults", "	for _, c := range op.calls[:1] {\n		if e.server.MarkResults"},
	{"a cancelled call is answered", "cancel.go", "	op := c.op\n	op.calls = without(op.calls, c)\n	if", "	op := c.op\n	if"},
	{"an answer goes to the wrong call", "key.go", "	b = appendPart(b, tool)\n", ""},
	{"a probe that is cancelled is never given back", "cancel.go", "			e.tell(a.permit, ignored, op.tool.Name)\n", ""},
	{"a probe gives two places back", "breaker.go", "		b.out--\n", "		b.out -= 2\n"},
	{"results of an earlier period move the breaker", "breaker.go", "	if p.period != b.period {\n		return\n	}\n", ""},
	{"one probe too many", "breaker.go", "b.out+b.passed >= max(b.params.Probes, 1) {\n			return permit", "b.out+b.passed > max(b.params.Probes, 1) {\n			return permit"},
	{"unsafe tools are repeated", "call.go", "	effects := op.known()\n", "	effects := policy.EffectsIdempotent\n"},
	{"tools that are not known yet are repeated", "call.go", "(op.keyed == explicit || !op.tool.known)", "op.keyed == explicit"},
	{"what a tool does is judged by what was known at first", "call.go", `op.decided.EffectsRule == "" && !op.special`, "false"},
	{"what was written counts as unsent when the server dies", "life.go", "	if unsent {\n		o.failure.Delivery", "	if true {\n		o.failure.Delivery"},
	{"what may have run is said not to have", "settle.go", "	case op.lost > 0 || op.running != nil || len(op.open) > 0:\n		return \"unknown\"\n	case op.ran:\n		return \"yes\"\n", ""},
	{"one retry too many", "settle.go", "op.attempts > d.MaxRetries:", "op.attempts > d.MaxRetries+1:"},
	{"retries without regard to the deadline", "settle.go", "	if op.deadline.Sub(e.now) < wait+minAttempt(d.CallTimeout) {", "	if false {"},
	{"attempts without a timeout", "attempt.go", "	e.timers.arm(&a.timer, e.patience(a))\n	number", "	number"},
	{"a call that has joined waits for ever", "admit.go", "	e.timers.arm(&c.deadline, patience)\n", "	_ = patience\n"},
	{"progress beyond max_call_time", "attempt.go", "	if op.limit.Before(at) {\n		at = op.limit\n	}\n", ""},
	{"a wait for the server without end", "attempt.go", "		e.timers.arm(&op.timer, op.deadline)\n", ""},
	{"a budget that goes below zero", "budget.go", "	if b.balance < cost {\n		return false\n	}\n", ""},
	{"errors are kept", "settle.go", "	op.last = o\n	wait, endedBy := e.again(op, &o.failure)\n	if endedBy != \"\" {\n		e.end(op, endedBy)\n		return\n	}\n	op.last.keep()",
		"	op.last = o\n	wait, endedBy := e.again(op, &o.failure)\n	if endedBy != \"\" {\n		if o.code == 0 {\n			e.keep(op, a, o.value.Of(o.frame), true)\n		}\n		e.end(op, endedBy)\n		return\n	}\n	op.last.keep()"},
	{"results that are not final are kept", "settle.go", "	if !o.partial {", "	if true {"},
	{"kept results are given to everybody", "idempotency.go", "		if k.once {\n			e.store.drop(op.key)\n		}\n", ""},
	{"a key is forgotten with its result", "idempotency.go", "		e.facts.remember(gone.key, fact{expires: k.expires, args: k.args})\n", ""},
	{"a key of unknown outcome runs again", "idempotency.go", "	if ttl > 0 {\n		e.facts", "	if false {\n		e.facts"},
	{"a repeat does not wait for an overdue answer", "settle.go", "!op.wantsLate() && e.inFlight[op.key] == op", "e.inFlight[op.key] == op"},
	{"identical calls are not joined", "admit.go", "	other := e.inFlight[op.key]\n", "	var other *operation\n"},
	{"a write does not make reads stale when it ends", "settle.go", "	e.invalidate(op, true)\n	for", "	for"},
	{"a failed write does not make reads stale", "settle.go", "		e.invalidate(op, op.last.accepted())\n", ""},
	{"a cached read outlives a write", "cache.go", "	if e.epochs.stale(found.begun, found.tool, found.args) {", "	if false {"},
	{"a read that a write has overtaken is joined", "admit.go", "	if op.onlyReads() && e.overtaken(other) {", "	if false {"},
	{"a read that was kept outlives a write", "idempotency.go", "reads && (!k.once || e.outdated(k.begun, op))", "reads && !k.once"},
	{"ids begin anew with each life", "life.go", "	l.gen++\n", "	l.gen++\n	e.lastID = 0\n"},
	{"two lives at once", "life.go", "	e.dead(stopping, detail, true, nil)", "	e.dead(down, detail, true, nil)"},
	{"the server is not started again", "life.go", "		e.timers.arm(&l.timer, l.notBefore)\n", ""},
	{"a start without a deadline", "life.go", "	e.timers.arm(&l.timer, e.now.Add(e.server.StartupTimeout))\n", ""},
	{"an operation that waits for the server stays queued when it is over", "life.go", "	l.queue = slices.DeleteFunc(l.queue, func(q queued) bool { return q.op == op })\n", ""},
	{"a timer is left running", "settle.go", "	e.timers.stop(&op.timer)\n	e.unqueue(op)\n", "	e.unqueue(op)\n"},
	{"memory is given away that is in use", "pool.go", "		return\n	}\n	if len(e.free) >= maxFree", "	}\n	if len(e.free) >= maxFree"},
	{"questions of a dead server stay open", "question.go", "func (e *Engine) dropQuestion(q *question) {\n	delete(e.asking, q.ours)\n", "func (e *Engine) dropQuestion(q *question) {\n"},
	{"progress for a call that is over", "cancel.go", "		for _, c := range a.op.calls {\n", "		for _, c := range []*call{&a.op.first} {\n"},
	{"the end waits for requests without a deadline", "session.go", "	e.timers.arm(&e.drain, e.now.Add(drainTime))\n", ""},
	{"the store grows without bound", "store.go", " || s.items.ItemCount() >= s.limit.MaxEntries {", " {"},
	{"a place is given back twice", "places.go", "		a.placed = false\n", ""},
	{"the place of an attempt that timed out is never given back", "attempt.go", "	e.freePlace(a)\n", ""},
	{"one place too many", "places.go", "	case p.taken < p.most && ", "	case p.taken <= p.most && "},
	{"a place that comes free is not handed on", "engine.go", "	e.fillPlaces()\n", ""},
	{"who leaves the line for a place is called up", "places.go", "	p.waiting = leaveLine(p.waiting, op)\n}", "	_ = leaveLine(p.waiting, op)\n}"},
	{"more attempts than there are rate tokens", "limiter.go", "	if wait == 0 && len(l.waiting) == 0 {", "	if true {"},
	{"who leaves the line for a rate token is called up", "limiter.go", "	e.leaveLimiter(op)\n	if op.rate != nil {", "	if op.rate != nil {"},
	{"invalid results pass", "serverframe.go", "	e.validate(a.op, &o)\n", ""},
	{"the same history goes two ways", "cancel.go", "	slices.SortFunc(all, func(a, b *call) int { return int(a.seq - b.seq) })\n", ""},
}

// What a mutation replaces is there, and there once: the table keeps up with the engine.
func TestMutationsFitTheSource(t *testing.T) {
	for _, m := range mutations {
		source, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: what is to be replaced occurs %d times in %s", m.what, n, m.file)
		}
	}
}

// TestMutationsAreFound builds each broken engine and has the simulation fail. The sources stay as they are.
//
//	go test ./proxy/engine -run Mutations -mutations
func TestMutationsAreFound(t *testing.T) {
	if !*mutate {
		t.Skip("without -mutations")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.what, func(t *testing.T) { m.run(t, dir) })
	}
}

// run has the simulation look for the fault.
func (m mutation) run(t *testing.T, dir string) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	broken, overlay := filepath.Join(temp, m.file), filepath.Join(temp, "overlay.json")
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, m.file): broken}})
	for name, text := range map[string][]byte{broken: []byte(strings.Replace(string(source), m.old, m.new, 1)), overlay: replace} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "test", "-overlay", overlay, ".", "-run", "^TestSimulation", "-seeds", "3000", "-fast=true").CombinedOutput()
	switch {
	case err == nil:
		t.Error("it is not found")
	case !strings.Contains(string(out), "shrunk to") && !strings.Contains(string(out), "went\n"):
		t.Errorf("the simulation could not be run:\n%.2000s", out)
	}
}
