package policy

import (
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// Phase is a moment at which decisions are asked for. What an expression may use depends on it.
type Phase uint8

const (
	BeforeCall       Phase = iota // before the first attempt
	AfterFailure                  // after an attempt that failed
	AfterAttempt                  // after every attempt
	AfterSuccess                  // after a success
	AfterLastFailure              // when no further attempt will be made
)

// Phases are all phases in the order of a call's life.
var Phases = []Phase{BeforeCall, AfterFailure, AfterAttempt, AfterSuccess, AfterLastFailure}

// String says when the phase is, for messages: "before the call", "after a failed attempt", …
func (p Phase) String() string {
	switch p {
	case BeforeCall:
		return "before the call"
	case AfterFailure:
		return "after a failed attempt"
	case AfterAttempt:
		return "after an attempt"
	case AfterSuccess:
		return "after a success"
	case AfterLastFailure:
		return "after the last failure"
	}
	return "at an unknown moment"
}

// Decisions lists what is decided in the phase, in the order of the manual.
func (p Phase) Decisions() []schema.Decision {
	var list []schema.Decision
	for _, q := range questions {
		if q.phase == p {
			list = append(list, q.decision)
		}
	}
	return list
}

// Variables lists what expressions of the phase may use.
func (p Phase) Variables() []Variable {
	var list []Variable
	for _, v := range variables {
		if p.vars().has(v.set) {
			list = append(list, v.Variable)
		}
	}
	return list
}

// Variable is a name that expressions may use.
type Variable struct {
	Name   string
	Type   string // as CEL names it
	Doc    string
	Fields []Field // of a typed variable; nil for the others
}

// Field is a field of a typed variable.
type Field struct {
	Name, Type, Doc string
}

// varSet is a set of variables. The names of tool and server have bits of their own: they are known before any call.
type varSet uint16

const (
	varTool varSet = 1 << iota
	varToolName
	varArgs
	varMeta
	varClient
	varServer
	varServerName
	varNow
	varError
	varAttempt
	varElapsed
	varResult

	varsNamed  = varToolName | varServerName
	varsBefore = varTool | varToolName | varArgs | varMeta | varClient | varServer | varServerName | varNow
)

func (s varSet) has(t varSet) bool { return s&t == t }

func (p Phase) vars() varSet {
	switch p {
	case AfterFailure:
		return varsBefore | varError | varAttempt | varElapsed
	case AfterAttempt:
		return varsBefore | varError | varResult
	case AfterSuccess:
		return varsBefore | varResult | varElapsed
	case AfterLastFailure:
		return varsBefore | varError
	}
	return varsBefore
}

// variables are in the order in which messages list them.
var variables = []struct {
	Variable
	set varSet
}{
	{Variable{"tool", "tool", "the tool that is called", fieldDocs(toolFields)}, varTool},
	{Variable{"args", "map(string, dyn)", "params.arguments; empty if the call has none", nil}, varArgs},
	{Variable{"meta", "map(string, dyn)", "params._meta; empty if the call has none", nil}, varMeta},
	{Variable{"client", "client", "who calls", fieldDocs(clientFields)}, varClient},
	{Variable{"server", "server", "who is called", fieldDocs(serverFields)}, varServer},
	{Variable{"now", "timestamp", "when the call was admitted", nil}, varNow},
	{Variable{"error", "error", "what went wrong; its kind is \"\" after a success", fieldDocs(errorFields)}, varError},
	{Variable{"attempt", "int", "number of the attempt that just ended, from 1", nil}, varAttempt},
	{Variable{"elapsed", "duration", "time since the call was admitted", nil}, varElapsed},
	{Variable{"result", "dyn", "the result of the call; null if there is none", nil}, varResult},
}

// names lists the variables of the set as messages do: "tool, args, meta".
func (s varSet) names() []string {
	var names []string
	for _, v := range variables {
		if s.has(v.set) {
			names = append(names, v.Name)
		}
	}
	return names
}

func (s varSet) String() string { return strings.Join(s.names(), ", ") }
