package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/proxy/engine"
)

// keyedFrom is the number from which on operations are called with an explicit key, made of it.
const keyedFrom = 1000

// move makes one move.
func (s *sim) move(m move) {
	if s.trace != nil {
		s.note("%v %d %d %d", m.what, m.a, m.b, m.c)
	}
	switch m.what {
	case moveCall:
		s.call(m)
	case movePass:
		s.pass(m)
	case moveCancel:
		s.cancel(m)
	case moveClientAnswer:
		if n := len(s.questions); n > 0 {
			i := int(m.a) % n
			q := s.questions[i]
			s.questions = append(s.questions[:i], s.questions[i+1:]...)
			s.fromClient(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, q.ours))
		}
	case moveBadFrame:
		if n := len(s.questions); n > 0 && m.a%8 == 0 && !s.gone { // an answer that is too big
			q := s.questions[int(m.b)%n]
			s.questions = append(s.questions[:int(m.b)%n], s.questions[int(m.b)%n+1:]...)
			s.feed(engine.Event{Kind: engine.ClientTooBig, Frame: []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"x":"`, q.ours)), Tail: []byte(`"}}`)})
			return
		}
		s.fromClient([]string{`{`, `[]`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","id":99999,"result":{}}`}[m.a%4])
	case moveAnswer:
		s.answer(m)
	case moveEffect:
		if a := s.openAttempt(m.a); a != nil {
			s.takeEffect(a)
		}
	case moveQuestion:
		s.question(m)
	case moveServerCancel:
		if n := len(s.questions); n > 0 {
			s.fromServer(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + s.questions[int(m.a)%n].theirs + `}}`)
		}
	case moveProgress:
		s.progress(m)
	case moveNoise:
		s.fromServer([]string{
			`[INFO] hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":0,"result":{}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"made up","progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, `[]`, "\xff",
		}[m.a%7])
	case moveListChanged:
		s.fromServer(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case moveDie:
		if s.running == simRunning || s.running == simStopping {
			s.liveEnds(false, int(m.a)%4)
		}
	case moveUp:
		s.liveUp()
	case moveSpawnFails:
		if s.running == simStarting {
			s.liveEnds(true, 0)
		}
	case moveMood:
		s.silent = !s.silent && m.a%4 == 0
	case moveWait:
		s.wait(m)
	case moveEOF:
		s.leave()
	case moveReload:
		s.reload(m)
	case moveClog:
		s.clog()
	case moveUnclog:
		s.unclog()
	case moveBatch:
		s.sendBatch(m)
	case moveGreet:
		if !s.modern {
			s.greet()
		}
	}
}

// sendBatch has the client send several requests in one frame, if they have agreed on a revision that has them, and now and then take
// one back in the same frame.
func (s *sim) sendBatch(m move) {
	if s.modern || s.protocol != batches || s.gone {
		return
	}
	s.batch = []string{}
	for i := range 1 + m.a%4 {
		if next := (move{a: m.a / 4 * (i + 1), b: m.b + i, c: m.c}); m.c%5 == i {
			s.pass(next)
		} else {
			s.call(next)
		}
	}
	last := s.requests[len(s.requests)-1]
	if m.c%7 == 0 {
		s.batch = append(s.batch, takeBackOf(last))
	}
	frame := "[" + strings.Join(s.batch, ",") + "]"
	s.batch = nil
	s.fromClient(frame)
	if i := slices.Index(s.requests, last); i >= 0 && m.c%7 == 0 {
		s.takenBackByClient(i)
	}
}

// reload has the same rules put in force again; the server may be one that is started otherwise.
func (s *sim) reload(m move) {
	server, compiled := s.setup.compile()
	other := *server
	other.Args = []string{strconv.Itoa(int(m.a) % 3)}
	s.note("config  args %v", other.Args)
	s.feed(engine.Event{Kind: engine.Reload, Server: &other, Policy: compiled})
}

// wait lets time pass. A life that starts is mostly up by then, and one that is stopped has ended.
func (s *sim) wait(m move) {
	if m.b%8 != 0 {
		s.liveUp()
	}
	if s.running == simStopping {
		s.liveEnds(false, 0)
	}
	unit := []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second}[m.b/8%4]
	if m.c%64 == 0 {
		unit *= 30
	}
	s.advance(time.Duration(1+m.a%10) * unit)
}

func (s *sim) leave() {
	if !s.gone {
		s.note("client  EOF")
		s.gone, s.goneAt = true, s.now
		s.questions = nil
		s.feed(engine.Event{Kind: engine.ClientEOF})
	}
}

// newID makes up an id for a request, now and then one that was used before, but by no open request that it could be taken for.
func (s *sim) newID(m move) string {
	s.lastID++
	if m.c%16 == 0 {
		id := strconv.Itoa(1 + int(m.c/16)%s.lastID)
		free := true
		for _, r := range s.requests {
			free = free && r.id != id
		}
		if free {
			return id
		}
	}
	if m.c%2 == 0 {
		return strconv.Itoa(s.lastID)
	}
	return `"r` + strconv.Itoa(s.lastID) + `"`
}

func (s *sim) call(m move) {
	r := &simRequest{call: true, unknown: !s.listed, id: s.newID(m), admitted: s.now, floor: s.floors}
	r.tool = []string{"read", "read", "write", "write", "idem", "plain", "ghost"}[m.a%7]
	r.n = int(m.b % 8) // few, so that calls repeat each other
	if m.b/8%3 == 0 {
		r.n = 100 + s.lastID
	}
	meta, args := "", fmt.Sprintf(`{"n":%d}`, r.n)
	if m.b/32%5 == 0 {
		r.keyed, r.n = true, keyedFrom+int(m.b%4)
		if m.b/160%2 == 0 {
			meta, args = fmt.Sprintf(`"idempotencyKey":"k%d"`, r.n), fmt.Sprintf(`{"n":%d,"x":%d}`, r.n, m.c%2)
		} else {
			args = fmt.Sprintf(`{"n":%d,"_idempotency_key":"k%d"}`, r.n, r.n)
		}
	}
	if m.b/320%4 == 0 {
		r.token = strconv.Itoa(s.lastID)
		if meta != "" {
			meta += ","
		}
		meta += `"progressToken":` + r.token
	}
	if s.modern {
		if meta != "" {
			meta += ","
		}
		meta += modernMeta
	}
	if meta != "" {
		meta = `,"_meta":{` + meta + `}`
	}
	if s.gone {
		return
	}
	r.step = s.step + 1
	for _, other := range s.requests {
		r.joins = r.joins || other.operationName == r.operationName
	}
	s.counts[r.operationName]++
	s.requests = append(s.requests, r)
	s.fromClient(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}`, r.id, r.tool, args, meta))
}

func (s *sim) pass(m move) {
	if s.gone {
		return
	}
	r := &simRequest{id: s.newID(m), admitted: s.now, operationName: operationName{tool: []string{"resources/list", "ping", "tools/list", "logging/setLevel", "resources/subscribe", "subscriptions/listen"}[m.a%6], n: s.lastID}, step: s.step + 1}
	s.requests = append(s.requests, r)
	s.fromClient(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"%s","params":{"n":%d,"uri":"u%d","level":"info","_meta":{%s}}}`, r.id, r.tool, r.n, m.b%4, modernMeta))
}

func (s *sim) cancel(m move) {
	if s.gone || len(s.requests) == 0 {
		return
	}
	i := int(m.a) % len(s.requests)
	frame, name := takeBackOf(s.requests[i]), s.requests[i].operationName
	s.takenBackByClient(i)
	s.fromClient(frame)
	s.ended(name, true)
}

// takeBackOf is the frame by which the client takes a request back.
func takeBackOf(r *simRequest) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + r.id + `}}`
}

// takenBackByClient takes in that the client waits no longer for a request.
func (s *sim) takenBackByClient(i int) {
	r := s.requests[i]
	s.requests = append(s.requests[:i], s.requests[i+1:]...)
	for i, q := range s.asked {
		s.asked[i].off = q.off || q.n == r.n && q.method == r.tool
	}
	s.ended(r.operationName, true)
}

// openAttempt picks a call that is at the server.
func (s *sim) openAttempt(k uint16) *simAttempt {
	var open []*simAttempt
	for _, a := range s.attempts {
		if a.status == simOpen && a.gen == s.gen && s.running == simRunning {
			open = append(open, a)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[int(k)%len(open)]
}

// takeEffect executes a call.
func (s *sim) takeEffect(a *simAttempt) {
	if a.effect || a.tool == "read" {
		return
	}
	s.version++
	a.effect, a.asks = true, true
	s.used[a.operationName] = s.version
	s.note("           %s %d takes effect: version %d", a.tool, a.n, s.version)
}

// answer has the server answer a request, in one of many ways.
func (s *sim) answer(m move) {
	if n := len(s.asked); n > 0 && m.a%4 == 0 {
		i := int(m.b) % n
		q := s.asked[i]
		s.asked = append(s.asked[:i], s.asked[i+1:]...)
		s.listed = s.listed || q.method == "tools/list" && !q.off
		s.fromServer(q.reply())
		return
	}
	a := s.openAttempt(m.b)
	if a == nil {
		return
	}
	s.lastExec++
	x := &simExec{step: s.step + 1}
	s.execs[s.lastExec] = x
	text := fmt.Sprintf("%s %d %d %d", a.tool, a.n, a.sees, s.lastExec)
	frame := ""
	failure := func(code int, data string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":%d,"message":"%s"%s}}`, a.id, code, text, data)
	}
	heard := s.now.Before(a.at.Add(s.setup.most))
	a.ended, a.asks, a.known = s.now, true, s.listed
	switch kind := m.a % 32; {
	case kind == 0:
		s.takeEffect(a)
		a.status, a.partial, x.partial = simFailed, true, true // it runs again when it is called again
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","content":[{"type":"text","text":"%s"}]}}`, a.id, text)
	case kind < 18 && s.setup.enforces && m.c%8 == 3:
		s.takeEffect(a)
		a.status = simFailed
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":"%s"}}`, a.id, text)
	case kind < 18:
		s.takeEffect(a)
		a.status, x.ok = simOK, true
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}`, a.id, text)
	case kind < 20:
		a.status = simFailed
		frame = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}],"isError":true}}`, a.id, text)
	case kind < 24:
		s.takeEffect(a)
		a.status = simFailed
		frame = failure([]int{-32603, -32000, -32001, -1}[kind-20], "")
	case a.effect:
		a.status = simFailed
		frame = failure(-32603, "")
	case kind < 26:
		a.status = simRefused
		frame = failure([]int{-32602, -32601}[kind-24], "")
	case kind < 28:
		a.status = simRefused
		frame = failure(-32023, `,"data":{"retryAfterMs":`+strconv.Itoa(int(m.c%2000))+`}`)
	case kind < 30:
		s.takeEffect(a)
		a.status = simFailed
		s.note("           ← server: the answer to %d is too big", a.id)
		head := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"x":"`, a.id)
		s.feed(engine.Event{Kind: engine.ServerTooBig, Gen: s.gen, Frame: []byte(head), Tail: []byte(`"}}`), Size: 1 << 30})
		s.answered(a, heard)
		return
	default: // under a wrong id: it is as if nothing had come
		a.status, a.ended = simOpen, time.Time{}
		s.fromServer(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, a.id+100000))
		return
	}
	if m.c%16 == 1 {
		frame = `[` + frame + `, {"jsonrpc":"2.0","method":"notifications/message"}]`
	}
	s.fromServer(frame)
	if m.c%8 == 0 {
		s.fromServer(frame) // and once more
	}
	s.answered(a, heard)
}

// answered takes in that the engine knows what an attempt came to, unless nobody has listened: because it was too late, or because
// another attempt of its operation had answered before.
func (s *sim) answered(a *simAttempt, heard bool) {
	if !heard {
		a.status, a.ended = simLost, a.at.Add(s.setup.most)
		return
	}
	for _, b := range s.attempts {
		if b != a && b.operationName == a.operationName && (b.status == simOK || b.status == simFailed && b.partial) && !b.ended.Before(a.at) {
			return
		}
	}
	s.ended(a.operationName, a.status == simOK || s.writes(a.tool))
}

// writes reports whether the engine knows by now that a tool writes.
func (s *sim) writes(tool string) bool { return s.listed && (tool == "write" || tool == "idem") }

// ended takes in that an operation may have ended: if nobody waits for it any more, whoever reads from now on must see what it has
// done. A tool of which nobody has said whether it writes counts only if it was accepted.
func (s *sim) ended(name operationName, accepted bool) {
	for _, r := range s.requests {
		if r.call && r.operationName == name {
			return
		}
	}
	if v := s.used[name]; accepted && v > s.floors {
		s.note("           whoever reads from now on must see version %d", v)
		s.floors = v
	}
}

func (s *sim) question(m move) {
	theirs := strconv.Itoa(int(m.b % 5)) // ids that every life uses again
	for _, q := range s.questions {
		if q.theirs == theirs {
			return
		}
	}
	method := []string{"sampling/createMessage", "elicitation/create", "roots/list", "ping"}[m.a%4]
	if method != "ping" && s.running == simRunning {
		for _, r := range s.requests {
			s.loosened[r.operationName] = true
		}
		for _, a := range s.attempts {
			if a.gen == s.gen && a.status == simOpen {
				s.loosened[a.operationName] = true
			}
		}
	}
	s.fromServer(`{"jsonrpc":"2.0","id":` + theirs + `,"method":"` + method + `","params":{"theirs":` + theirs + `}}`)
}

func (s *sim) progress(m move) {
	a := s.openAttempt(m.a)
	times := 1
	if m.c%16 == 0 {
		times = 80 // for longer than any call may take
	}
	for ; times > 0 && a != nil && a.status == simOpen && s.running == simRunning && s.err == nil && !s.finished; times-- {
		s.loosened[a.operationName] = true
		a.asks = true
		a.progress += int(m.b % 3)
		if times > 1 {
			s.advance(s.setup.call * 3 / 4)
		}
		s.fromServer(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}`, a.id, a.progress))
	}
}
