package flaky

import "fmt"

// Plan is what the requests for one thing come to: the n-th plays Outcomes[n-1], and all later ones Then. The count goes on
// after a restart if there is a ledger.
type Plan struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	Then     *Outcome  `json:"then,omitempty"`   // nil = all is well
	Outage   *Outage   `json:"outage,omitempty"` // goes before both; nil = none
}

// Outage is a time in which every request comes to the same, however many there are.
type Outage struct {
	For     Millis  `json:"for"` // from the first request of the life on
	Outcome Outcome `json:"outcome"`
}

// nth is the outcome of the n-th request, from 0.
func (p Plan) nth(n int) Outcome {
	switch {
	case n < len(p.Outcomes):
		return p.Outcomes[n]
	case p.Then != nil:
		return *p.Then
	default:
		return Outcome{}
	}
}

// Always is the plan in which every request comes to the same.
func Always(o Outcome) Plan { return Plan{Then: &o} }

// Outcome is what one request comes to. Its zero value is a proper answer. First, in this order, happens what is stated of
// the first group; then it ends in the one of the second group that is stated; the third group varies that.
type Outcome struct {
	Stderr      string    `json:"stderr,omitempty"`       // a line on stderr
	FloodStderr int       `json:"flood_stderr,omitempty"` // so many bytes on stderr, without a newline
	Flood       int       `json:"flood,omitempty"`        // so many bytes on stdout, without a newline
	Raw         []string  `json:"raw,omitempty"`          // lines on stdout as they are; "" also ends a flood
	Notify      []Message `json:"notify,omitempty"`       // messages to the client
	Progress    []float64 `json:"progress,omitempty"`     // notifications/progress with the token of the request, if it has one
	Token       Raw       `json:"token,omitempty"`        // an invented progress token: used instead, also if the request has none
	Pace        Millis    `json:"pace,omitempty"`         // wait before each progress
	Effect      *bool     `json:"effect,omitempty"`       // whether the tool does its work; nil = exactly if it ends in a result
	Ask         *Message  `json:"ask,omitempty"`          // a request to the client, whose answer is waited for
	Sleep       Millis    `json:"sleep,omitempty"`        // wait

	Exit        *int   `json:"exit,omitempty"`         // the process ends with this status, without an answer
	Kill        bool   `json:"kill,omitempty"`         // the process is killed by a signal, without an answer
	CloseStdout bool   `json:"close_stdout,omitempty"` // stdout is closed, without an answer; the process lives on
	Hang        bool   `json:"hang,omitempty"`         // no answer, ever
	Error       *Error `json:"error,omitempty"`        // a JSON-RPC error
	IsError     string `json:"isError,omitempty"`      // a result with isError and this text
	Result      Raw    `json:"result,omitempty"`       // this result
	ResultText  string `json:"resultText,omitempty"`   // this result, byte for byte, whether it is JSON or not
	Text        string `json:"text,omitempty"`         // a result with this text
	Big         int    `json:"big,omitempty"`          // a result with a text of so many characters

	ID      Raw       `json:"id,omitempty"`       // the answer goes out under this id
	Copies  int       `json:"copies,omitempty"`   // the answer goes out so many times; 0 = once
	Pretty  bool      `json:"pretty,omitempty"`   // the answer goes out over several lines
	BadByte byte      `json:"bad_byte,omitempty"` // this byte, which is no UTF-8 alone, stands in the text of the result (0x97 = 151)
	And     []Outcome `json:"and,omitempty"`      // further outcomes for the same request, after this one: late and second answers, a later exit
}

// Error is a JSON-RPC error.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    Raw    `json:"data,omitempty"`
}

// UnmarshalJSON accepts an object, or one of the words ok, hang, exit and kill.
func (o *Outcome) UnmarshalJSON(text []byte) error {
	var word string
	if unmarshal(text, &word) == nil {
		switch word {
		case "ok":
			*o = Outcome{}
		case "hang":
			*o = Outcome{Hang: true}
		case "exit":
			*o = Outcome{Exit: new(1)}
		case "kill":
			*o = Outcome{Kill: true}
		default:
			return fmt.Errorf("unknown outcome %q; there are ok, hang, exit and kill, and objects", word)
		}
		return nil
	}
	type plain Outcome // without this method
	return unmarshal(text, (*plain)(o))
}

// answers reports whether the outcome ends in an answer.
func (o *Outcome) answers() bool {
	return o.Exit == nil && !o.Kill && !o.CloseStdout && !o.Hang
}

// works reports whether a tool with this outcome does its work.
func (o *Outcome) works() bool {
	if o.Effect != nil {
		return *o.Effect
	}
	return o.answers() && o.Error == nil
}

// takesTime reports whether others must not wait for the outcome.
func (o *Outcome) takesTime() bool {
	if o.Sleep > 0 || o.Pace > 0 || o.Ask != nil {
		return true
	}
	for i := range o.And {
		if o.And[i].takesTime() {
			return true
		}
	}
	return false
}
