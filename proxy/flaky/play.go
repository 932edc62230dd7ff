package flaky

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// takeRequest counts a request and plays what it comes to.
func (l *life) takeRequest(m message) {
	if refusal := l.refuseEarly(m); refusal != "" {
		l.answer(m, &Outcome{}, `"error":`+errorText(-32600, refusal))
		return
	}
	plan, of := l.plan(m)
	l.mu.Lock()
	number := l.requests[of]
	l.requests[of]++
	if l.first[of].IsZero() {
		l.first[of] = time.Now()
	}
	first := l.first[of]
	l.mu.Unlock()
	l.journal.record(Entry{Event: EventRequest, Of: of, ID: m.ID})
	outcome := plan.nth(number)
	if plan.Outage != nil && time.Since(first) < plan.Outage.For.duration() {
		outcome = plan.Outage.Outcome
	}
	if outcome.takesTime() && !l.script.Serial {
		go l.play(&outcome, m)
		return
	}
	l.play(&outcome, m)
}

// refuseEarly says why a strict server refuses a request that comes out of turn; "" = it does not.
func (l *life) refuseEarly(m message) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	opens, introduced := m.Method == "initialize", l.introduced
	l.introduced = introduced || opens
	switch {
	case !l.script.StrictHandshake || m.Method == "ping":
		return ""
	case opens && introduced:
		return "Invalid Request: Server already initialized"
	case !opens && !(introduced && l.initialized):
		return "Invalid Request: Server not initialized"
	default:
		return ""
	}
}

// plan is the plan for a request, and the name under which the request is counted.
func (l *life) plan(m message) (Plan, string) {
	if m.Method != "tools/call" {
		return l.script.Methods[m.Method], m.Method
	}
	name := callOf(m).Name
	for _, tool := range l.script.Tools {
		if tool.Name == name && l.has(tool) {
			return tool.Plan, ofTool(name)
		}
	}
	return Always(Outcome{Error: &Error{Code: -32602, Message: "Unknown tool: " + name}}), ofTool(name)
}

// has reports whether a tool exists in this life.
func (l *life) has(tool Tool) bool {
	return tool.Lives == nil || slices.Contains(tool.Lives, l.journal.life)
}

// play is what a request comes to, from the first side effect to the last answer. It reports whether the life goes on.
func (l *life) play(o *Outcome, m message) bool {
	l.prepare(o, m)
	execution := 0
	if m.Method == "tools/call" && o.works() {
		execution = l.execute(callOf(m))
	}
	var told Raw
	if o.Ask != nil {
		if told = l.ask(*o.Ask); told == nil {
			return false
		}
	}
	if !l.goesOn(o) {
		return false
	}
	if o.answers() && !l.isCancelled(m) {
		text := l.answerText(o, m, execution, told)
		for range max(o.Copies, 1) {
			l.answer(m, o, text)
		}
	}
	for i := range o.And {
		further := o.And[i]
		if further.Effect == nil {
			further.Effect = new(false) // the request has done its work
		}
		if !l.play(&further, m) {
			return false
		}
	}
	return true
}

// prepare is all that an outcome does before it is decided how it ends.
func (l *life) prepare(o *Outcome, m message) {
	if o.Stderr != "" {
		fmt.Fprintln(l.stderr, o.Stderr)
	}
	flood(l.stderr, o.FloodStderr)
	flood(l.wire, o.Flood)
	for _, line := range o.Raw {
		l.wire.line(line)
	}
	for _, note := range o.Notify {
		l.send(note)
	}
	token := o.Token
	if token == nil {
		token = progressToken(m)
	}
	for _, value := range o.Progress {
		if token == nil || !l.wait(o.Pace) {
			return
		}
		params := fmt.Sprintf(`{"progressToken":%s,"progress":%s}`, token, strconv.FormatFloat(value, 'g', -1, 64))
		l.send(Message{Method: "notifications/progress", Params: Raw(params)})
	}
}

// goesOn waits, ends the process or its output if the outcome says so, and reports whether the life goes on.
func (l *life) goesOn(o *Outcome) bool {
	if !l.wait(o.Sleep) {
		return false
	}
	switch {
	case o.Exit != nil:
		l.leave(*o.Exit)
		return false
	case o.Kill:
		killSelf()
		return false
	case o.CloseStdout:
		l.wire.close()
	}
	return true
}

// execute writes down that a tool did its work, and returns the number of that execution.
func (l *life) execute(call callParams) int {
	of := ofTool(call.Name)
	l.mu.Lock()
	l.executions[of]++
	number := l.executions[of]
	l.mu.Unlock()
	l.journal.record(Entry{Event: EventExecuted, Of: of, Execution: number, Arguments: call.Arguments})
	return number
}

// ask sends a request to the client and waits for the answer; nil = the life ended before it came.
func (l *life) ask(question Message) Raw {
	told := make(chan Raw, 1)
	l.mu.Lock()
	if question.ID == nil {
		question.ID = Raw(strconv.Itoa(l.questions))
		l.questions++
	}
	l.asked[string(question.ID)] = told
	l.mu.Unlock()
	l.send(question)
	select {
	case answer := <-told:
		return answer
	case <-l.ended:
		return nil
	}
}

func (l *life) isCancelled(m message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.script.ObeyCancel && l.cancelled[string(m.ID)]
}

// send writes a request or a notification of ours.
func (l *life) send(m Message) {
	var b strings.Builder
	b.WriteString(`{"jsonrpc":"2.0",`)
	if m.ID != nil {
		fmt.Fprintf(&b, `"id":%s,`, m.ID)
	}
	fmt.Fprintf(&b, `"method":%s`, quote(m.Method))
	if m.Params != nil {
		fmt.Fprintf(&b, `,"params":%s`, m.Params)
	}
	b.WriteByte('}')
	l.wire.message([]byte(b.String()), false)
}

// answer writes an answer: member is its result or error with the name in front.
func (l *life) answer(m message, o *Outcome, member string) {
	id := l.script.answerID(m.ID)
	if o.ID != nil {
		id = o.ID
	}
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, id, member)
	if o.BadByte != 0 {
		line = bytes.ReplaceAll(line, []byte(badByteMark), []byte{o.BadByte})
	}
	l.wire.message(line, o.Pretty)
}

// killSelf ends the process as a crash would.
func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		self.Kill()
	}
	select {} // until the signal has come
}

func progressToken(m message) Raw {
	var params struct {
		Meta struct {
			Token Raw `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return nil
	}
	return params.Meta.Token
}

// callParams are the params of a tools/call.
type callParams struct {
	Name      string `json:"name"`
	Arguments Raw    `json:"arguments"`
}

func callOf(m message) callParams {
	var call callParams
	_ = json.Unmarshal(m.Params, &call) // a call of no tool is answered as one of an unknown tool
	return call
}

func trimEnd(line []byte) string { return strings.TrimRight(string(line), "\r\n") }
