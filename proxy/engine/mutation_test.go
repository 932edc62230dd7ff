package engine_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	{"what was written counts as unsent when the server dies", "death.go", "	if unsent {\n		o.failure.Delivery", "	if true {\n		o.failure.Delivery"},
	{"what may have run is said not to have", "settle.go", "	case op.lost > 0 || op.running != nil || len(op.open) > 0:\n		return \"unknown\"\n	case op.ran:\n		return \"yes\"\n", ""},
	{"one retry too many", "settle.go", "op.attempts > d.MaxRetries:", "op.attempts > d.MaxRetries+1:"},
	{"retries without regard to the deadline", "settle.go", "	if !e.timeFor(op, wait+minAttempt(d.CallTimeout), endDeadline, &op.last) {", "	if false {"},
	{"attempts without a timeout", "attempt.go", "	e.timers.arm(&a.timer, e.patience(a))\n	number", "	number"},
	{"a call that has joined waits for ever", "admit.go", "	e.timers.arm(&c.deadline, patience)\n", "	_ = patience\n"},
	{"a call that has joined ends with the first", "attempt.go", "	if !e.handOver(op, endDeadline, &o) {\n		return false", "	if true {\n		return false"},
	{"progress beyond max_call_time", "attempt.go", "	at := earliest(op.limit, a.sent.Add(op.decided.MaxCallTime))\n", "	at := a.sent.Add(1 << 60)\n"},
	{"a wait for the server without end", "attempt.go", "		e.timers.arm(&op.timer, op.deadline)\n		e.await(", "		e.await("},
	{"a budget that goes below zero", "budget.go", "	if b.balance < cost {\n		return false\n	}\n", ""},
	{"errors are kept", "settle.go", "	if endedBy != \"\" {\n		e.end(op, endedBy)\n", "	if endedBy != \"\" {\n		if op.last.code == 0 {\n			e.keep(op, a, op.last.value.Of(op.last.frame), true)\n		}\n		e.end(op, endedBy)\n"},
	{"errors are cached", "settle.go", "	if endedBy != \"\" {\n		e.end(op, endedBy)\n", "	if endedBy != \"\" {\n		if op.last.failure.Kind == kindRPC {\n			e.fill(op, a, op.last.value.Of(op.last.frame))\n		}\n		e.end(op, endedBy)\n"},
	{"results that report an error are cached", "settle.go", "	if endedBy != \"\" {\n		e.end(op, endedBy)\n", "	if endedBy != \"\" {\n		if op.last.failure.Kind == kindTool {\n			e.fill(op, a, op.last.value.Of(op.last.frame))\n		}\n		e.end(op, endedBy)\n"},
	{"errors are cached when they come late", "settle.go", "	op.last = *o\n	e.keepUnusable(op)\n", "	e.fill(op, a, o.value.Of(o.frame))\n	op.last = *o\n	e.keepUnusable(op)\n"},
	{"results that are not final are cached", "settle.go", "		e.fill(op, a, result)\n		e.keep(op, a, result, len(op.calls) > 0)\n	}\n", "		e.keep(op, a, result, len(op.calls) > 0)\n	}\n	e.fill(op, a, result)\n"},
	{"results that are not final are kept", "settle.go", "	if !o.partial {", "	if true {"},
	{"kept results are given to everybody", "idempotency.go", "		if k.once {\n			e.store.drop(key)\n		}\n", ""},
	{"a key is forgotten with its result", "idempotency.go", "		e.facts.remember(e.now, gone.key, fact{expires: k.expires, args: k.args})\n", ""},
	{"a key of unknown outcome runs again", "idempotency.go", "	if ttl > 0 {\n		e.facts", "	if false {\n		e.facts"},
	{"a repeat does not wait for an overdue answer", "settle.go", "op.found && !op.wantsLate()", "op.found"},
	{"identical calls are not joined", "admit.go", "	other := e.inFlight.find(e, op)\n", "	var other *operation\n"},
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
	{"memory is given away that is in use", "pool.go", "		return\n	}\n	if len(e.free)+len(e.freed) >= maxFree", "	}\n	if len(e.free)+len(e.freed) >= maxFree"},
	{"questions of a dead server stay open", "question.go", "func (e *Engine) dropQuestion(q *question) {\n	delete(e.asking, q.ours)\n", "func (e *Engine) dropQuestion(q *question) {\n"},
	{"progress for a call that is over", "cancel.go", "		for _, c := range a.op.calls {\n", "		for _, c := range []*call{&a.op.first} {\n"},
	{"the end waits for requests without a deadline", "ending.go", "	e.timers.arm(&e.drain, e.now.Add(drainTime))\n", ""},
	{"the store grows without bound", "store.go", " || s.items.ItemCount() >= s.limit.MaxEntries {", " {"},
	{"a place is given back twice", "places.go", "		a.placed = false\n", ""},
	{"the place of an attempt that timed out is never given back", "attempt.go", "	e.freePlace(a)\n", ""},
	{"one place too many", "places.go", "	case p.taken < p.most && ", "	case p.taken <= p.most && "},
	{"a place that comes free is not handed on", "engine.go", "	e.fillPlaces()\n", ""},
	{"who leaves the line for a place is called up", "places.go", "	p.waiting = leaveLine(p.waiting, op)\n}", "	_ = leaveLine(p.waiting, op)\n}"},
	{"more attempts than there are rate tokens", "limiter.go", "	if wait == 0 && len(l.waiting) == 0 {", "	if true {"},
	{"who leaves the line for a rate token is called up", "limiter.go", "	e.leaveLimiter(op)\n	if op.rate != nil {", "	if op.rate != nil {"},
	{"invalid results pass", "serverframe.go", "	e.validate(a.op, &o)\n", ""},
	{"what is cancelled in the queue goes out", "takeback.go", "	if e.takesBack && mayWait {", "	if false {"},
	{"what times out in the queue goes out", "attempt.go", "	if e.takesBack && a.overdue.IsZero() {", "	if false {"},
	{"what had gone out counts as taken back", "takeback.go", "e.timedOut(a, a.overdue, !ev.Taken)", "e.timedOut(a, a.overdue, false)"},
	{"what was taken back is waited for", "takeback.go", "		e.nothingMore(a.op, \"\")\n", ""},
	{"a call goes out before its server has answered initialize", "attempt.go", "	if e.life.state != up {", "	if !e.ready() {"},
	{"a call that waits overtakes the greeting in the queue", "life.go", "		case q.op != nil && greets:\n", "		case greets && q.op == nil && q.pass == nil && q.frame == nil:\n"},
	{"a life after a failed start is not greeted", "life.go", "	if e.session.initialize != nil && e.initializing() == nil {", "	if e.session.agreed {"},
	{"who waits for the greeting is forgotten", "life.go", "		e.launch(q.op)\n	}\n}\n", "		_ = q\n	}\n}\n"},
	{"the probe of a hung server is never given back", "attempt.go", "		e.tell(a.permit, ignored, op.tool.Name)\n		a.permit = permit{}\n		e.retire", "		a.permit = permit{}\n		e.retire"},
	{"a response of a batch is lost", "batch.go", "	b.responses = append(b.responses, response{", "	b.responses = append(b.responses[:0], response{"},
	{"a batch waits for what was cancelled", "cancel.go", "		e.unanswered(key)\n", ""},
	{"a batch has no patience", "batch.go", "		e.timers.arm(&b.timer, b.until)\n", ""},
	{"a batch counts its requests wrongly", "batch.go", "		e.batches[key] = e.batch\n		e.batch.open++\n", "		e.batches[key] = e.batch\n"},
	{"the same history goes two ways", "cancel.go", "	slices.SortFunc(all, func(a, b *call) int { return int(a.seq - b.seq) })\n", ""},
}

// unbounded are engines that forget one of the bounds of their memory. The tests of bounds find them: a history of the simulation is too
// short to reach one, but for that of the store.
var unbounded = []mutation{
	{"breakers of as many scopes as arguments make up", "breaker.go", "		if len(e.breakers) >= maxScopes {", "		if false {"},
	{"buckets of as many keys as arguments make up", "limiter.go", "		if len(e.limiters) >= maxLimiters {", "		if false {"},
	{"keys of which the fact is known", "idempotency.go", " && len(f.known) <= maxFacts && len(f.order) <= 2*maxFacts {", " {"},
	{"the order of the keys of which the fact is known", "idempotency.go", " && len(f.order) <= 2*maxFacts {", " {"},
	{"expired facts", "idempotency.go", "present && now.Before(known.expires) && ", "present && "},
	{"the number of tools", "tools.go", "len(t.byName) < maxTools && ", ""},
	{"the bytes of the names of tools", "tools.go", " && t.bytes+bytes <= maxToolBytes", ""},
	{"the bytes of titles and schemas", "tools.go", "	if t.bytes+after > maxToolBytes {", "	if false {"},
	{"texts of tools that replace others are not counted", "tools.go", "	t.bytes -= before\n	if", "	t.bytes -= before + after\n	if"},
	{"names of tools are not counted", "tools.go", "		t.bytes += len(name)\n", ""},
	{"the entries of the store", "store.go", " || s.items.ItemCount() >= s.limit.MaxEntries {", " {"},
	{"the bytes of the store", "store.go", "	for s.bytes+size > s.limit.MaxBytes || ", "	for "},
	{"invalidations by tool", "cache.go", "	if len(p.tools) >= maxEpochs {", "	if false {"},
	{"invalidations by call", "cache.go", "	if len(p.exact) >= maxEpochs {", "	if false {"},
	{"questions at the client", "question.go", "	if len(e.asking) >= maxQuestions {", "	if false {"},
	{"subscriptions", "session.go", "len(s.subscriptions) < maxSubscriptions", "true"},
	{"operations that lie ready", "pool.go", "len(e.free)+len(e.freed) >= maxFree || ", ""},
}

// What a mutation replaces is there, and there once: the table keeps up with the engine.
func TestMutationsFitTheSource(t *testing.T) {
	for _, m := range slices.Concat(mutations, unbounded) {
		source, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), m.old); n != 1 {
			t.Errorf("%s: what is to be replaced occurs %d times in %s", m.what, n, m.file)
		}
	}
}

// TestMutationsAreFound builds each broken engine and has the simulation fail, or a test of bounds. The sources stay as they are.
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
		t.Run(m.what, func(t *testing.T) { m.run(t, dir, "^TestSimulation") })
	}
	for _, m := range unbounded {
		t.Run("without bound/"+m.what, func(t *testing.T) { m.run(t, dir, "(Bounded|Forgotten)$") })
	}
}

// run has the tests of that name look for the fault.
func (m mutation) run(t *testing.T, dir, tests string) {
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
	out, err := exec.Command("go", "test", "-overlay", overlay, ".", "-run", tests, "-seeds", "3000", "-fast=true").CombinedOutput()
	switch {
	case err == nil:
		t.Error("it is not found")
	case !strings.Contains(string(out), "--- FAIL: Test"):
		t.Errorf("the tests could not be run:\n%.2000s", out)
	}
}
