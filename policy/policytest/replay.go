package policytest

import (
	"encoding/json"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// Tally counts what calls came to.
type Tally struct {
	Calls      int `json:"calls"`
	Attempts   int `json:"attempts"`
	Retries    int `json:"retries"`
	Executions int `json:"executions"` // attempts that the server answered with a result
	Unsent     int `json:"unsent"`     // calls that had their result without an attempt: cached, replayed
	Refused    int `json:"refused"`    // calls that had an error of ours without an attempt
	Failed     int `json:"failed"`     // calls that ended without a result, refused ones included
}

// Replayed is the traffic of a recording under another policy.
type Replayed struct {
	Server  string         `json:"server"` // of the recording
	Then    Tally          `json:"recorded"`
	Now     Tally          `json:"replayed"`
	Changed []ReplayedCall `json:"changed"` // calls that came to something else
	Assumed int            `json:"assumed"` // attempts that the recording does not have: they are answered as the last one was
}

// ReplayedCall is a call that came to something else.
type ReplayedCall struct {
	AtMS         float64         `json:"at_ms"` // since the start of the recording
	Tool         string          `json:"tool"`
	Args         json.RawMessage `json:"args,omitempty"`
	ThenStatus   string          `json:"recorded_status"`         // success, tool_error, error
	ThenCode     int64           `json:"recorded_code,omitempty"` // of the error
	ThenAttempts int             `json:"recorded_attempts"`
	NowStatus    string          `json:"replayed_status"`
	NowAttempts  int             `json:"replayed_attempts"`
	Now          string          `json:"replayed"` // in words
}

// Replay makes the calls of a recording again, each at its time, under a policy, to a server that answers attempts as it
// answered them then. A call that was made when others had ended comes after those have ended now, though that be later: its client
// may have waited for them. tools are used if the recording has none.
func Replay(r *Recording, server *schema.Server, p *policy.Policy, tools json.RawMessage) *Replayed {
	if r.Tools != nil {
		tools = r.Tools
	}
	if tools == nil {
		tools = json.RawMessage("[]")
	}
	s := &Suite{File: &schema.TestFile{Clock: r.Start, Seed: 1}}
	setup := newSetup(server, p, tools)
	s.setups = []*serverSetup{setup}
	w := &world{suite: s, start: r.Start, now: r.Start, trace: false}
	session := w.session(setup)
	session.server.play(nil)
	var calls []*Call
	for _, recorded := range r.Calls {
		c := session.newCall(&recorded.Call)
		c.script, c.rest = recorded.Attempts, recorded.otherwise()
		calls = append(calls, c)
	}
	turns := newTurns(r.Calls, calls)
	for i, recorded := range r.Calls {
		w.plan(recorded.At, func() {
			turns.take(i, func() {
				calls[i].make(&recorded.Call)
				if recorded.Cancels {
					w.plan(recorded.Cancel-recorded.At, calls[i].takeBack)
				}
			})
		})
	}
	for over := 0; over < len(calls); {
		turns.next()
		if calls[over].over {
			over++
		} else if !w.next(w.now.Add(maxWait)) {
			break
		}
	}
	return compareReplay(r, calls, session)
}

// otherwise is how the server answers attempts that it did not get then.
func (c *RecordedCall) otherwise() schema.TestAnswer {
	if n := len(c.Attempts); n > 0 {
		return c.Attempts[n-1]
	}
	if c.Result != nil {
		return schema.TestAnswer{Kind: "result", Value: c.Result, Effect: c.Status == "success"}
	}
	return schema.TestAnswer{Kind: "ok", Effect: true}
}

func compareReplay(r *Recording, calls []*Call, s *session) *Replayed {
	out := &Replayed{Server: r.Server, Changed: []ReplayedCall{}, Assumed: s.server.unscripted}
	out.Now.Executions = s.server.executions
	for i, then := range r.Calls {
		now := calls[i]
		out.Then.count(len(then.Attempts), then.Status)
		for _, a := range then.Attempts {
			if a.Effect {
				out.Then.Executions++
			}
		}
		attempts := len(now.Attempts)
		status := now.Status
		switch status {
		case "timeout", "refused", "denied":
			status = "error" // a recording knows no other word
		case "cancelled":
			status = "" // the client is not answered any more
		}
		out.Now.count(attempts, status)
		if status == then.Status && now.code() == then.Code && attempts == len(then.Attempts) || then.Status == "" {
			continue
		}
		out.Changed = append(out.Changed, ReplayedCall{
			AtMS: milliseconds(then.At), Tool: then.Call.Tool, Args: then.Call.Args,
			ThenStatus: then.Status, ThenCode: then.Code, ThenAttempts: len(then.Attempts), NowStatus: now.Status, NowAttempts: attempts, Now: now.summary(),
		})
	}
	return out
}

// count adds a call by how it ended: success, tool_error, error; "" = it got no answer.
func (t *Tally) count(attempts int, status string) {
	t.Calls++
	t.Attempts += attempts
	t.Retries += max(0, attempts-1)
	if status != "success" {
		t.Failed++
	}
	switch {
	case attempts > 0:
	case status == "error":
		t.Refused++
	case status != "":
		t.Unsent++
	}
}

// code is that of the error that the call ended with; 0 = none.
func (c *Call) code() int64 {
	if c.failure == nil {
		return 0
	}
	return c.failure.Code
}
