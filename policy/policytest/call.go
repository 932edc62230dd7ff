package policytest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/proxy/engine"
	"github.com/bentabol/mcp-retry/schema"
)

// Call is what a call of the client came to.
type Call struct {
	Server string
	Tool   string
	Args   json.RawMessage

	Status   string // success tool_error error timeout refused denied cancelled; "" = it has not ended
	Attempts []Attempt
	Sends    int // attempts as the engine counts them, those of the call that this one joined included
	Took     time.Duration
	Cache    string // hit, stale, stored, miss, ""
	Dedup    string // joined, replayed, kept, ""
	Kind     string // of the failure
	EndedBy  string // why there was no further attempt

	Result    json.RawMessage            // nil = it got none
	Rules     map[schema.Decision]string // which rule decided, of the last time that it was asked; "" = none
	Decisions []Decision                 // all of them with their reasons, if they were traced
	CELErrors []string

	world    *world
	session  *session
	id       string
	begun    time.Time
	answers  int
	over     bool
	failure  *failure
	values   map[schema.Decision]any
	key      json.RawMessage // explicit idempotency key
	denyRule string
	state    string // of its breaker, when the step had ended

	script []schema.TestAnswer // of a call that is replayed: what the server did with its attempts
	rest   schema.TestAnswer   // and what it does with others; the zero value = the call is not replayed
}

// Attempt is one send of a call to the server.
type Attempt struct {
	At      time.Duration // since the call was made
	End     time.Duration // when the engine was through with it
	Ended   bool
	Outcome string // success, or the kind of failure
}

// Decision is one that policy took, with the reasons.
type Decision struct {
	Decision   schema.Decision
	Rule       string // "" = none decided, and what is usual holds
	Value      string
	Attempt    int // how many attempts had been made
	Considered []policy.Considered
	value      any
}

// failure is the error that a call was answered with.
type failure struct {
	Code    int64
	Message string
	Kind    string // of an error of ours
	May     string // mayHaveExecuted, of an error of ours
}

// readFailure reads the error from an answer: from a JSON-RPC error, or from a result that reports one.
func readFailure(m *message) *failure {
	type facts struct {
		Kind            string `json:"kind"`
		MayHaveExecuted string `json:"mayHaveExecuted"`
		Source          string `json:"source"`
	}
	if m.Error != nil {
		var e struct {
			Code    int64           `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		}
		if json.Unmarshal(m.Error, &e) != nil {
			return &failure{}
		}
		f := &failure{Code: e.Code, Message: e.Message}
		var data facts
		if json.Unmarshal(e.Data, &data) == nil && data.Source == "mcp-retry" {
			f.Kind, f.May = data.Kind, data.MayHaveExecuted
		}
		return f
	}
	var r struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text *string `json:"text"`
		} `json:"content"`
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(m.Result, &r) != nil || !r.IsError {
		return nil
	}
	var texts []string
	for _, block := range r.Content {
		if block.Text != nil {
			texts = append(texts, *block.Text)
		}
	}
	f := &failure{Message: strings.Join(texts, "\n")}
	var ours struct {
		Code int64 `json:"code"`
		Data facts `json:"data"`
	}
	if json.Unmarshal(r.Meta[engine.MetaError], &ours) == nil {
		f.Code, f.Kind, f.May = ours.Code, ours.Data.Kind, ours.Data.MayHaveExecuted
	}
	return f
}

// newCall is a call that has not been made yet.
func (s *session) newCall(c *schema.TestCall) *Call {
	return &Call{
		Server: s.setup.server.Name, Tool: c.Tool, Args: c.Args, Rules: map[schema.Decision]string{},
		world: s.world, session: s, id: s.nextID(), values: map[schema.Decision]any{},
	}
}

// make sends the call.
func (c *Call) make(t *schema.TestCall) {
	c.begun = c.world.now
	c.session.calls[c.id] = c
	frame := `{"jsonrpc":"2.0","id":` + c.id + `,"method":"tools/call","params":{"name":` + string(quoted(t.Tool))
	if t.Args != nil {
		frame += `,"arguments":` + string(t.Args)
	}
	if t.Meta != nil {
		frame += `,"_meta":` + string(t.Meta)
	}
	unlisted := ""
	if !c.session.setup.names()[t.Tool] {
		unlisted = ", a tool that the server has not listed"
	}
	c.world.note("call of %s%s", strings.TrimSpace(t.Tool+" "+string(t.Args)), unlisted)
	c.session.fromClient(frame + "}}")
}

// takeBack cancels the call.
func (c *Call) takeBack() {
	if c.over {
		return
	}
	c.world.note("the client takes the call back")
	c.session.fromClient(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + c.id + `}}`)
}

// sent takes in that an attempt has gone to the server.
func (c *Call) sent(now time.Time, a schema.TestAnswer) {
	if n := len(c.Attempts); n > 0 && c.Attempts[n-1].Ended {
		if wait := now.Sub(c.begun) - c.Attempts[n-1].End; wait > 0 {
			c.world.note("after a wait of %s", wait)
		}
	}
	c.Attempts = append(c.Attempts, Attempt{At: now.Sub(c.begun)})
	c.world.note("attempt %d is sent; the server: %s", len(c.Attempts), answerText(a))
}

func answerText(a schema.TestAnswer) string {
	text := a.Kind
	if a.Value != nil {
		text += " " + string(a.Value)
	}
	if a.After > 0 {
		text += " after " + a.After.String()
	}
	if a.Effect && a.Kind != "ok" && a.Kind != "result" {
		text += ", and does it"
	}
	return text
}

// attemptEnded takes in what the engine made of an attempt.
func (c *Call) attemptEnded(r *engine.Record) {
	outcome := r.Kind
	if outcome == "" {
		outcome = "success"
	}
	detail := ""
	if r.Detail != "" {
		detail = " (" + r.Detail + ")"
	}
	n := len(c.Attempts)
	if n == 0 || c.Attempts[n-1].Ended {
		c.world.note("attempt %d could not be sent: %s%s", n+1, outcome, detail)
		return
	}
	a := &c.Attempts[n-1]
	a.Ended, a.End, a.Outcome = true, c.world.now.Sub(c.begun), outcome
	c.world.note("attempt %d came to %s%s", r.Attempt, outcome, detail)
}

// ended takes in the engine's last word on the call.
func (c *Call) ended(r *engine.Record) {
	c.Status, c.Sends, c.Cache, c.Dedup, c.Kind, c.EndedBy = r.Status, r.Attempt, r.Cache, r.Dedup, r.Kind, r.EndedBy
	if r.Status == "denied" {
		c.denyRule = r.Rule
	}
	c.finish(c.world.now)
}

// finish ends the call once the engine has said its last word and, unless the client took it back, has answered.
func (c *Call) finish(now time.Time) {
	if c.over || c.Status == "" || c.answers == 0 && c.Status != "cancelled" {
		return
	}
	c.over, c.Took = true, now.Sub(c.begun)
	c.world.note("%s", c.summary())
}

// summary is the end of a call on one line.
func (c *Call) summary() string {
	text := c.Status
	switch {
	case c.Cache == "hit":
		text += " from the cache"
	case c.Cache == "stale":
		text += " from the cache, though stale"
	case c.Dedup == "joined":
		text += " of the call that it joined"
	case c.Dedup == "replayed":
		text += " of an earlier call"
	}
	if c.EndedBy != "" {
		text += ", ended by " + c.EndedBy
	}
	if c.failure != nil {
		code := ""
		if c.failure.Code != 0 {
			code = strconv.FormatInt(c.failure.Code, 10) + " "
		}
		text += ": " + code + c.failure.Message
	} else if c.Result != nil {
		text += ": " + clip(string(c.Result), 120)
	}
	return text
}

// delays are the waits between the end of an attempt and the start of the next.
func (c *Call) delays() []time.Duration {
	waits := []time.Duration{}
	for i := 1; i < len(c.Attempts); i++ {
		waits = append(waits, c.Attempts[i].At-c.Attempts[i-1].End)
	}
	return waits
}

// cacheTTL is how long the result is cached.
func (c *Call) cacheTTL() time.Duration {
	ttl, _ := c.values[schema.CacheTTL].(time.Duration)
	if c.Cache != "stored" {
		return 0
	}
	return ttl
}

// scope is which breaker counts the call.
func (c *Call) scope() string {
	scope, _ := c.values[schema.BreakerScope].(string)
	return scope
}

// breakerState is the state of that breaker now. One whose state never changed is closed.
func (c *Call) breakerState() string {
	if state := c.session.breaker[c.scope()]; state != "" {
		return state
	}
	return "closed"
}

// rule is which rule decided; "" = none.
func (c *Call) rule(d schema.Decision) string {
	if d == schema.Deny && c.denyRule != "" {
		return c.denyRule
	}
	return c.Rules[d]
}

// valueText is a value that policy decided, for people.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case policy.Key:
		return string(v)
	case string:
		return strconv.Quote(v)
	case []policy.Invalidates:
		var all []string
		for _, i := range v {
			all = append(all, i.Tool+string(i.Args))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case *policy.RateLimit:
		if v == nil {
			return ""
		}
		text := fmt.Sprintf("%d per %s", v.Calls, v.Per)
		if v.Burst != 0 && v.Burst != v.Calls {
			text += fmt.Sprintf(", %d at once", v.Burst)
		}
		if v.MaxWait > 0 {
			text += fmt.Sprintf(", waiting up to %s", v.MaxWait)
		}
		return text
	}
	return fmt.Sprint(v)
}

func clip(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
