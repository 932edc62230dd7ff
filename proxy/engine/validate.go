package engine

import (
	"bytes"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
	"github.com/bentabol/mcp-retry/schema"
)

// outputSchema is a tool's schema of its structured content. It is compiled when the first value is held against it, for most
// tools that are listed are never called.
type outputSchema struct {
	text     []byte // nil = the tool has none
	compiled bool
	check    CheckValue // nil = it cannot be used
}

// learn takes in the schema of the latest tools/list, nil if there is none. One that has not changed stays compiled.
func (s *outputSchema) learn(text []byte) {
	if !bytes.Equal(s.text, text) {
		*s = outputSchema{text: clone(text)}
	}
}

// validatesAny reports whether the rules ask for results of some tool to be validated. If not, no schema is remembered.
func validatesAny(rules []schema.Rule) bool {
	for i := range rules {
		for _, s := range rules[i].Decides {
			if s.Decision == schema.Validate && s.Literal != "off" {
				return true
			}
		}
	}
	return false
}

// validate holds a result of the server against what MCP and the tool itself say of it, as policy wants it. Under enforce an
// invalid one is a failure of the attempt. A result that cannot be checked, because it is too large or the tool's schema
// is of no use, passes: it is not known to be bad, and the log says so.
func (e *Engine) validate(op *operation, o *outcome) {
	mode := op.decided.ValidateResults
	if mode == "off" || o.code != 0 || !o.ok() && o.failure.Kind != kindTool {
		return
	}
	wrong := e.wrongWith(op, o)
	if wrong == "" {
		return
	}
	e.logInvalid(op, "invalid_result", wrong)
	if mode == "enforce" {
		*o = unusable(CodeInvalidResult, wrong, nil)
	}
}

// wrongWith says what is wrong with a result, "" if nothing is known to be.
func (e *Engine) wrongWith(op *operation, o *outcome) string {
	result := o.value.Of(o.frame)
	shape := shapeOf(e.peer.Protocol)
	if o.partial {
		return shape.wrongPartial(result)
	}
	if wrong := shape.wrong(result); wrong != "" {
		return wrong
	}
	if !o.ok() { // an error has its text, and need not have what the tool promises
		return ""
	}
	return e.wrongStructure(op, result, shape)
}

// wrongStructure holds a result's structured content against the tool's outputSchema.
func (e *Engine) wrongStructure(op *operation, result []byte, shape resultShape) string {
	s := &op.tool.output
	if len(s.text) == 0 { // or there was no room for it
		return ""
	}
	value, ok := jsonrpc.Lookup(result, whole(result), "structuredContent")
	if s.text[0] != '{' {
		e.checkOf(op) // which logs that it is no schema: it asks for nothing
		return ""
	}
	if !ok {
		if shape.structured {
			return "structuredContent is missing, though the tool has an outputSchema"
		}
		return ""
	}
	check := e.checkOf(op)
	if check == nil {
		return ""
	}
	wrong, err := check(value.Of(result))
	if err != nil {
		e.logInvalid(op, "unchecked_result", err.Error())
		return ""
	}
	if wrong != "" {
		return "structuredContent does not match the tool's outputSchema: " + wrong
	}
	return ""
}

// checkOf returns the compiled outputSchema of a tool; nil = it cannot be used, which has been logged.
func (e *Engine) checkOf(op *operation) CheckValue {
	s := &op.tool.output
	if s.compiled || e.compile == nil {
		return s.check
	}
	s.compiled = true
	if s.text[0] != '{' {
		e.logInvalid(op, "unchecked_result", "the tool's outputSchema cannot be used: it is no JSON object")
		return nil
	}
	check, err := e.compile(s.text)
	if err != nil {
		e.logInvalid(op, "unchecked_result", "the tool's outputSchema cannot be used: "+err.Error())
		return nil
	}
	s.check = check
	return check
}

func (e *Engine) logInvalid(op *operation, event, detail string) {
	e.log(Record{Level: LevelWarn, Event: event, Tool: op.tool.Name, RequestID: loggedID(op.first.id), Detail: detail})
}
