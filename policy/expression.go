package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/bentabol/mcp-retry/schema"
)

// expression is a compiled CEL expression.
type expression struct {
	text     string
	program  cel.Program
	source   *ast.SourceInfo
	tree     *ast.AST // checked; for those who ask what it could come to
	result   *types.Type
	vars     varSet
	static   *static // what the tool alone says of it, if it is a condition
	costly   bool    // its evaluation is counted
	uses     []use   // of variables, in the order of the text
	constant ref.Val // its value if it uses no variable, else nil
	warnings []issue
}

// use is a reference to a variable.
type use struct {
	name   string
	set    varSet
	offset int // in bytes
}

// compileText compiles one expression. The variables known are those that hints may name; whether it uses others is for the
// caller to check, because that depends on the decision and not on the text.
func compileText(text string, known varSet) (e *expression, issues []issue) {
	defer func() {
		if r := recover(); r != nil { // a fault of the compiler must not take the proxy down
			e, issues = nil, []issue{{id: "internal", length: tokensLen(text), message: fmt.Sprintf("this expression cannot be compiled: %v", r)}}
		}
	}()
	env, err := environment()
	if err != nil {
		return nil, []issue{{id: "internal", message: "the CEL environment cannot be built: " + err.Error()}}
	}
	checked, problems := env.Compile(text)
	if problems.Err() != nil {
		return nil, append(explain(env, text, known, problems), explainRest(env, text)...)
	}
	tree := checked.NativeRep()
	e = &expression{text: text, source: tree.SourceInfo(), tree: tree, result: checked.OutputType()}
	facts := analyse(tree, text)
	e.vars, e.uses, e.warnings, e.costly = facts.vars, facts.uses, facts.warnings, facts.costly
	e.static = newStatic(tree.Expr())
	if len(facts.issues) > 0 {
		return nil, facts.issues
	}

	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if facts.costly {
		options = append(options, cel.CostLimit(costLimit), cel.CostTracking(costs{}), guarded())
	}
	if e.program, err = env.Program(checked, options...); err != nil {
		return nil, []issue{{id: "cel-type", length: tokensLen(text), message: err.Error()}}
	}
	if e.vars == 0 {
		v, _, err := e.program.Eval(&activation{})
		if err != nil {
			at := e.offsetOf(err)
			return nil, []issue{{id: "cel-constant", offset: at, length: tokenLen(text, at), message: "always fails: " + err.Error()}}
		}
		e.constant = v
	}
	return e, nil
}

// eval evaluates the expression for the call.
func (e *expression) eval(c *Call) (ref.Val, error) {
	if e.constant != nil {
		return e.constant, nil
	}
	v, _, err := e.program.Eval((*activation)(c))
	if err != nil {
		return nil, err
	}
	if types.IsUnknown(v) {
		return nil, fmt.Errorf("the value is not known")
	}
	return v, nil
}

// offsetOf returns where in the text a run-time error arose, in bytes; 0 if that is not known.
func (e *expression) offsetOf(err error) int {
	celErr, ok := err.(*types.Err)
	if !ok || celErr.NodeID() <= 0 {
		return 0
	}
	at, ok := e.source.GetOffsetRange(celErr.NodeID())
	if !ok {
		return 0
	}
	offset := nameAt(e.text, byteOffset(e.text, int(at.Start)))
	if key, ok := strings.CutPrefix(err.Error(), "no such key: "); ok && key != "" {
		// CEL blames the whole path. Show the step that failed.
		if i := strings.LastIndex(e.text[:min(len(e.text), offset+len(key))], key); i >= 0 {
			return i
		}
	}
	return offset
}

// byteOffset turns an offset in characters, as CEL counts, into one in bytes.
func byteOffset(text string, chars int) int {
	if chars <= 0 {
		return 0
	}
	for i := range text {
		if chars == 0 {
			return i
		}
		chars--
	}
	return len(text)
}

// nameAt moves an offset that points at the dot of a selection to the name behind it, which is what the reader looks for.
func nameAt(text string, offset int) int {
	if offset < len(text) && text[offset] == '.' {
		offset++
		if offset < len(text) && text[offset] == '?' {
			offset++
		}
		for offset < len(text) && (text[offset] == ' ' || text[offset] == '\n' || text[offset] == '\t') {
			offset++
		}
	}
	return offset
}

// place is where the byte at offset of the expression stands in the file, length characters long.
func place(x *schema.Expr, offset, length int) schema.Pos {
	offset = min(offset, len(x.Text))
	pos := placeSpan(x, offset, offset+byteOffset(x.Text[offset:], length))
	pos.Len = max(pos.Len, min(length, 1))
	if length == 0 {
		pos.Len = 0
	}
	return pos
}

// tokenLen is the length, in characters, of the name or number at offset; 1 for anything else.
func tokenLen(text string, offset int) int {
	if offset >= len(text) {
		return 1
	}
	end := offset
	for end < len(text) && isNameByte(text[end]) {
		end++
	}
	return max(1, utf8.RuneCountInString(text[offset:end]))
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
