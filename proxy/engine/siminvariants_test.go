package engine_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// toClient takes in a frame to the client, and holds an answer to the request that it belongs to.
func (s *sim) toClient(frame []byte) {
	s.note("client  ← %s", frame)
	if frame[0] == '[' && s.protocol == batches && !s.modern {
		for _, response := range elements(string(frame)) {
			s.toClient([]byte(response))
		}
		return
	}
	var m jsonrpc.Message
	if err := jsonrpc.Parse(frame, &m); err != nil {
		s.fail("the engine wrote %q to the client: %v", frame, err)
		return
	}
	switch m.Kind {
	case jsonrpc.Request:
		id, ok := jsonrpc.IntID(m.ID.Of(frame))
		if !ok || s.ids[id] {
			s.fail("the engine used the id of this before, or it is no integer: %s", frame)
		}
		s.ids[id] = true
		theirs, _ := jsonrpc.Lookup(frame, m.Params, "theirs")
		s.questions = append(s.questions, simQuestion{id, string(theirs.Of(frame))})
	case jsonrpc.Notification:
		s.notified(&m)
	default:
		s.responded(&m)
	}
}

// notified takes in a notification to the client.
func (s *sim) notified(m *jsonrpc.Message) {
	switch string(m.Method) {
	case "notifications/cancelled":
		span, _ := jsonrpc.Lookup(m.Frame, m.Params, "requestId")
		id, _ := jsonrpc.IntID(span.Of(m.Frame))
		for i, q := range s.questions {
			if q.ours == id {
				s.questions = append(s.questions[:i], s.questions[i+1:]...)
				return
			}
		}
		s.fail("a request is taken back that is not open at the client: %s", m.Frame)
	case "notifications/progress":
		span, _ := jsonrpc.Lookup(m.Frame, m.Params, "progressToken")
		for _, r := range s.requests {
			if r.token == string(span.Of(m.Frame)) {
				return
			}
		}
		s.fail("progress for no open request: %s", m.Frame)
	}
}

// responded takes in an answer to the client.
func (s *sim) responded(m *jsonrpc.Message) {
	id := string(m.ID.Of(m.Frame))
	if id == `"init"` && m.Kind == jsonrpc.Error && s.greeted {
		s.greets = 0 // the engine has given it up, and goes on by the one that was answered
	}
	if id == `"init"` || id == "null" {
		return
	}
	for i, r := range s.requests {
		if r.id != id {
			continue
		}
		s.requests = append(s.requests[:i], s.requests[i+1:]...)
		if r.call {
			s.checkAnswer(r, m)
			s.ended(r.operationName, m.Kind == jsonrpc.Result || s.writes(r.tool))
		} else if m.Kind == jsonrpc.Result && r.tool != "tools/list" && s.number(m.Frame, m.Result, "n") != r.n {
			s.fail("request %s (%d) got the answer to another: %s", r.id, r.n, m.Frame)
		}
		return
	}
	s.fail("an answer to no open request: %s", m.Frame)
}

// checkAnswer holds an answer against the call that it belongs to.
func (s *sim) checkAnswer(r *simRequest, m *jsonrpc.Message) {
	object := m.Err
	text, _ := jsonrpc.Lookup(m.Frame, m.Err, "message")
	if m.Kind == jsonrpc.Result {
		object = m.Result
		content, _ := jsonrpc.Lookup(m.Frame, m.Result, "content")
		for block := range jsonrpc.Elements(m.Frame, content) {
			text, _ = jsonrpc.Lookup(m.Frame, block, "text")
		}
	}
	message, _ := jsonrpc.Text(text.Of(m.Frame))
	var tool string
	var n, version, exec int
	if _, err := fmt.Sscanf(message, "%s %d %d %d", &tool, &n, &version, &exec); err != nil {
		s.checkOwnError(r, m.Frame[object.Start:object.End])
		return
	}
	if tool != r.tool || n != r.n {
		s.fail("call %s of %s %d got the answer to another: %s", r.id, r.tool, r.n, m.Frame)
	}
	x := s.execs[exec]
	switch {
	case r.step <= x.step:
		x.received++
	case x.partial:
		s.fail("a result that is not final was kept for call %s: %s", r.id, m.Frame)
	case !x.ok && r.joins: // it was the outcome of the last attempt so far
	case !x.ok:
		s.fail("an error was kept for call %s: %s", r.id, m.Frame)
	default:
		x.replayed++
		s.checkReplay(r, x, m.Frame)
	}
	if r.tool == "read" && x.ok && !r.keyed && !r.unknown && version < r.floor {
		s.fail("call %s read version %d after the write of version %d had ended: %s", r.id, version, r.floor, m.Frame)
	}
}

// checkReplay says whether a call may get a result that was there before it came.
func (s *sim) checkReplay(r *simRequest, x *simExec, frame []byte) {
	switch {
	case r.keyed:
	case r.tool == "read" && s.setup.cached:
	case (r.tool != "read" || r.unknown) && s.setup.ttl > 0:
	case x.received == 0 && x.replayed == 1: // the client never had it
	default:
		s.fail("call %s got a result that others had got before: %s", r.id, frame)
	}
}

// checkOwnError holds an error of the engine against the call.
func (s *sim) checkOwnError(r *simRequest, raw []byte) {
	if !strings.Contains(string(raw), `"tool":"`+r.tool+`"`) {
		s.fail("call %s of %s got an error that is not about it: %s", r.id, r.tool, raw)
	}
	data := string(raw)
	if waited := s.now.Sub(r.admitted); waited < s.setup.total && strings.Contains(data, "more time with total_timeout.)") {
		s.fail("call %s has waited for %v only, and total_timeout is said to be over: %s", r.id, waited, raw)
	}
	if i := strings.Index(data, `"attempts":`); i >= 0 {
		attempts := 0
		fmt.Sscanf(data[i:], `"attempts":%d`, &attempts)
		if attempts > s.setup.retries+1 {
			s.fail("call %s: %d attempts, %d retries are allowed", r.id, attempts, s.setup.retries)
		}
	}
	if strings.Contains(data, `"mayHaveExecuted":"no"`) {
		for _, a := range s.attempts {
			if a.operationName == r.operationName && a.effect && !a.at.Before(r.admitted) && s.counts[r.operationName] == 1 {
				s.fail("call %s took effect, and the client is told that it did not: %s", r.id, raw)
			}
		}
	}
}

// checkAttempt says whether an attempt may be made: what is not safe to repeat takes effect once for each time that it is called.
func (s *sim) checkAttempt(a *simAttempt) {
	unknown, executed := 0, 0
	made := 1
	for _, b := range s.attempts {
		if b.operationName != a.operationName || b.status == simUnsent {
			continue
		}
		made++
		switch b.status {
		case simOpen, simLost:
			unknown++
			executed++
		case simOK, simFailed:
			if b.known {
				executed++
			}
		}
		if a.keyed && (a.tool == "write" || a.tool == "plain") && !s.setup.daring {
			s.checkKey(a, b)
		}
	}
	calls := s.counts[a.operationName]
	switch {
	case made > calls*(s.setup.retries+1):
		s.fail("attempt %d of %s %d, which was called %d times", made, a.tool, a.n, calls)
	case s.setup.daring || a.keyed && s.setup.forwards:
	case s.writes(a.tool) && a.tool == "write" && !s.setup.toolErrors && executed >= calls,
		(a.tool == "ghost" || a.tool == "write") && unknown >= calls:
		s.fail("%s %d may take effect once more, though it was called %d times only", a.tool, a.n, calls)
	}
}

// checkCrowd says whether there is a place at the server for a further attempt: only those count that somebody surely waits for.
func (s *sim) checkCrowd(now *simAttempt) {
	if s.setup.places == 0 {
		return
	}
	there := 1
	for _, a := range s.attempts {
		if a.status == simOpen && a.gen == s.gen && !a.off && s.now.Before(a.at.Add(s.setup.call)) && s.waitedFor(a) {
			there++
		}
	}
	if there > s.setup.places {
		s.fail("%s %d is the call number %d at a server with places for %d", now.tool, now.n, there, s.setup.places)
	}
}

// waitedFor reports whether a request is open that an attempt was made for. One whose answer is there, and is held back only until its
// batch is complete, waits for the server no longer.
func (s *sim) waitedFor(a *simAttempt) bool {
	for _, r := range s.requests {
		if r.call && r.operationName == a.operationName && !r.admitted.After(a.at) && !s.e.HeldBack(r.id) {
			return true
		}
	}
	return false
}

// checkPace says whether a further attempt keeps the rate limit of its tool. What has waited for the server goes out when that is up; so
// only what came after the first of a life counts.
func (s *sim) checkPace(now *simAttempt) {
	if s.setup.tokens == 0 || s.setup.places > 0 {
		return
	}
	var first time.Time
	n := 1
	for i := len(s.attempts) - 1; i >= 0; i-- {
		if a := s.attempts[i]; a.gen == s.gen {
			first = a.at
		}
	}
	for i := len(s.attempts) - 1; i >= 0; i-- {
		a := s.attempts[i]
		if a.gen != s.gen || a.tool != now.tool || !a.at.After(first) {
			continue
		}
		n++
		if most := simBurst + simRate*now.at.Sub(a.at).Seconds(); float64(n) > most+1e-6 {
			s.fail("%s was called %d times in %v", now.tool, n, now.at.Sub(a.at))
		}
	}
}

// checkKey says whether an operation with an explicit key may run though it has run before.
func (s *sim) checkKey(now, before *simAttempt) {
	if s.setup.forwards {
		return // the server tells repeats apart
	}
	ttl := s.setup.ttl
	if ttl == 0 {
		ttl = 300 * time.Second
	}
	switch {
	case before.status == simOpen && before.gen == s.gen && s.now.Before(before.at.Add(s.setup.most)):
		s.fail("%s %d runs though an attempt with its key is at the server", now.tool, now.n)
	case (before.status == simOK || before.status == simLost) && s.now.Before(before.ended.Add(ttl)):
		s.fail("%s %d runs though it has run with its key %v ago", now.tool, now.n, s.now.Sub(before.ended))
	}
}

// checkDeadlines says whether a call has waited too long.
func (s *sim) checkDeadlines() {
	for _, r := range s.requests {
		if !r.call {
			continue
		}
		patience := s.setup.total
		if s.loosened[r.operationName] {
			patience = s.setup.most
		}
		if waited := s.now.Sub(r.admitted); waited > patience {
			s.fail("call %s of %s %d still waits after %v", r.id, r.tool, r.n, waited)
		}
	}
	if s.gone && s.now.Sub(s.goneAt) > s.setup.most+10*time.Second {
		s.fail("the client has gone %v ago", s.now.Sub(s.goneAt))
	}
}

func (s *sim) checkAllAnswered() {
	for _, r := range s.requests {
		s.fail("request %s of %s was never answered", r.id, r.tool)
	}
}

// conclude lets a history come to rest, or ends it, and looks at what is left.
func (s *sim) conclude(end int) {
	if s.gone {
		end = 1
	}
	switch end {
	case 1:
		s.leave()
		for i := 0; i < 200 && !s.finished && s.err == nil; i++ {
			s.wait(move{a: 0, b: 1 + 8*3})
		}
	case 2:
		s.note("terminate")
		s.feed(engine.Event{Kind: engine.Terminate})
	default:
		s.rest()
		s.leave()
	}
	if !s.finished {
		s.fail("the session has not ended")
	}
}

// rest answers what has no deadline and waits until nothing is under way.
func (s *sim) rest() {
	s.silent = false
	s.unclog()
	for range 3 {
		for len(s.asked) > 0 && s.err == nil {
			q := s.asked[0]
			s.asked = s.asked[1:]
			s.fromServer(q.reply())
		}
		for len(s.questions) > 0 && s.err == nil {
			s.move(move{what: moveClientAnswer})
		}
		for range 40 {
			s.wait(move{a: 1, b: 1 + 8*3})
		}
	}
	if s.err != nil {
		return
	}
	s.checkAllAnswered()
	has := s.e.Inspect()
	has.Free, has.Stored, has.StoredBytes = 0, 0, 0
	if has != (engine.Inspection{}) {
		s.fail("at rest, the engine still holds %+v", has)
	}
}
