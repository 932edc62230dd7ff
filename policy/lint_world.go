package policy

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// A world is what can be told apart of a call by fields whose values are few: the tool's effects and hints, and the kind,
// code, delivery and transience of the error. A condition is asked in every world, with all else unknown: one that holds in
// none never holds, and one that holds in each always does.

// facet is a set of fields that tell worlds apart.
type facet uint16

const (
	facetName facet = 1 << iota
	facetEffects
	facetAnnotated
	facetReadOnly
	facetDestructive
	facetIdempotent
	facetOpenWorld
	facetKind
	facetCode
	facetDelivery
	facetTransient

	facetHints = facetAnnotated | facetReadOnly | facetDestructive | facetIdempotent | facetOpenWorld
	facetTool  = facetName | facetEffects | facetHints
	facetError = facetKind | facetCode | facetDelivery | facetTransient
)

var facets = map[string]map[string]facet{
	"tool": {
		"name": facetName, "effects": facetEffects, "annotated": facetAnnotated, "readOnly": facetReadOnly,
		"destructive": facetDestructive, "idempotent": facetIdempotent, "openWorld": facetOpenWorld,
	},
	"error": {"kind": facetKind, "code": facetCode, "delivery": facetDelivery, "transient": facetTransient},
}

// toolState is one possibility for a tool. Hints are the bits of facetHints.
type toolState struct {
	effects uint8 // index into effectsWords
	hints   facet
}

func (s toolState) tool(name, title string) Tool {
	return Tool{
		Name: name, Title: title, Effects: effectsWords[s.effects],
		Annotated: s.hints&facetAnnotated != 0, ReadOnly: s.hints&facetReadOnly != 0, Destructive: s.hints&facetDestructive != 0,
		Idempotent: s.hints&facetIdempotent != 0, OpenWorld: s.hints&facetOpenWorld != 0,
	}
}

func hintsOf(t *Tool) facet {
	var h facet
	for _, hint := range []struct {
		set bool
		bit facet
	}{{t.Annotated, facetAnnotated}, {t.ReadOnly, facetReadOnly}, {t.Destructive, facetDestructive}, {t.Idempotent, facetIdempotent}, {t.OpenWorld, facetOpenWorld}} {
		if hint.set {
			h |= hint.bit
		}
	}
	return h
}

// effectsSet is a set of indices into effectsWords.
type effectsSet uint8

const (
	onlyNone effectsSet = 1 << iota
	onlyIdempotent
	onlyUnsafe
	onlyUnannotated
	anyEffects = onlyNone | onlyIdempotent | onlyUnsafe | onlyUnannotated
)

func effectsOf(word string) effectsSet { return 1 << max(0, slices.Index(effectsWords, word)) }

// space is the worlds of one tool, or of all tools whose name is not known.
type space struct {
	id     int
	name   string
	named  bool      // the name is known
	info   *ToolInfo // of a snapshot; nil = none
	states []toolState
	errs   int // number of failures; world = state·errs + failure
}

func (sp *space) size() int { return len(sp.states) * sp.errs }

// newSpace makes the worlds of a tool with these effects. Where its hints are not known, those that the rules of the server ask for vary.
func (l *linter) newSpace(name string, named bool, effects effectsSet, info *ToolInfo) *space {
	sp := &space{id: len(l.spaces), name: name, named: named, info: info, errs: len(l.failures)}
	var hints []facet
	if info != nil {
		hints = []facet{hintsOf(&info.Tool)}
	} else {
		hints = hintStates(l.asked)
	}
	for e := range effectsWords {
		if effects&(1<<e) == 0 {
			continue
		}
		for _, h := range hints {
			if info == nil && l.hintsDecide() && !hintsAllow(h, l.asked, 1<<e) {
				continue
			}
			sp.states = append(sp.states, toolState{uint8(e), h})
		}
	}
	l.spaces = append(l.spaces, sp)
	return sp
}

// hintStates lists the hints that a tool can have, as far as the facets asked for tell them apart. Without annotations there are none.
func hintStates(asked facet) []facet {
	var states []facet
	for h := facet(0); h <= facetHints; h += facetAnnotated {
		if h&^(asked&facetHints) == 0 && (h == 0 || h&facetAnnotated != 0 || asked&facetAnnotated == 0) {
			states = append(states, h)
		}
	}
	return states
}

// hintsDecide reports whether the effects of every tool are those of its hints, for no rule states any.
func (l *linter) hintsDecide() bool {
	if !l.server.TrustAnnotations {
		return false
	}
	for i := range l.rules {
		for j := range l.rules[i].settings {
			if l.rules[i].settings[j].ask == askEffects {
				return false
			}
		}
	}
	return true
}

// hintsAllow reports whether a tool with these hints, of which only those asked for are told apart, can have these effects.
func hintsAllow(hints, asked facet, effects effectsSet) bool {
	is := func(hint facet) bool { return hints&hint != 0 }
	isNot := func(hint facet) bool { return asked&hint != 0 && hints&hint == 0 }
	switch effects {
	case onlyNone:
		return !isNot(facetReadOnly) && !isNot(facetAnnotated)
	case onlyIdempotent:
		return !is(facetReadOnly) && !isNot(facetIdempotent) && !isNot(facetAnnotated)
	case onlyUnsafe:
		return !is(facetReadOnly) && !is(facetIdempotent) && !isNot(facetAnnotated)
	default:
		return hints == 0
	}
}

// bits is a set of worlds.
type bits []uint64

func newBits(n int) bits      { return make(bits, (n+63)/64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bits) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) intersects(o bits) bool {
	for i := range b {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// domain is the worlds that the phases meet: a failure, a success, or either.
func (l *linter) domain(sp *space, phases phaseSet) bits {
	b := newBits(sp.size())
	for s := range sp.states {
		for e := range l.failures {
			success := l.failures[e].Kind == ""
			switch {
			case success && phases&(1<<AfterAttempt|1<<AfterSuccess|1<<BeforeCall) == 0:
			case !success && phases&(1<<AfterFailure|1<<AfterAttempt|1<<AfterLastFailure) == 0:
			default:
				b.add(s*sp.errs + e)
			}
		}
	}
	return b
}

// anyDomain is the domain in the space any, computed once.
func (l *linter) anyDomain(phases phaseSet) bits {
	if l.domains == nil {
		l.domains = map[phaseSet]bits{}
	}
	b, ok := l.domains[phases]
	if !ok {
		b = l.domain(l.any, phases)
		l.domains[phases] = b
	}
	return b
}

// phaseSet is a set of phases.
type phaseSet uint8

// maxCodes is how many codes of errors are told apart; from there on error.code counts as unknown.
const maxCodes = 48

// lostKinds are the failures without an answer.
var lostKinds = []string{"timeout", "exit", "spawn", "transport", "malformed"}

// makeFailures lists the errors that can be told apart, success last.
func (l *linter) makeFailures(codes []int64) {
	for _, kind := range lostKinds {
		for _, delivery := range []string{"unknown", "not_sent"} {
			if kind == "spawn" && delivery == "unknown" {
				continue
			}
			l.failures = append(l.failures, Failure{Kind: kind, Delivery: delivery, Transient: true})
		}
	}
	l.failures = append(l.failures,
		Failure{Kind: "malformed", Delivery: "answered", Transient: true},
		Failure{Kind: "cancelled", Delivery: "unknown"},
		Failure{Kind: "tool", Delivery: "answered"})
	codes = append(codes, 0, -32603, -32000, -32602, -32023, -1)
	for fresh := int64(-31999); ; fresh++ {
		if !slices.Contains(codes, fresh) {
			codes = append(codes, fresh)
			break
		}
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		f := rpcFailure(code, "")
		l.failures = append(l.failures, f, Failure{Kind: "overloaded", Code: code, Delivery: "rejected", Transient: f.Transient})
	}
	l.failures = append(l.failures, Failure{})
}

// rpcFailure is a JSON-RPC error of that code without a hint when to come back.
func rpcFailure(code int64, message string) Failure {
	f := Failure{Kind: "rpc", Code: code, Delivery: "answered", Message: message, Text: message}
	f.Transient = code == -32603 || -32003 <= code && code <= -32000
	if -32602 <= code && code <= -32600 || code == -32700 || -32022 <= code && code <= -32020 {
		f.Delivery = "rejected"
	}
	return f
}

// failure returns the index of the first failure of that kind and delivery.
func (l *linter) failure(kind, delivery string) int {
	return slices.IndexFunc(l.failures, func(f Failure) bool { return f.Kind == kind && f.Delivery == delivery })
}

// comparedCodes returns the codes that a comparison of error.code is about; ok = the call is such a comparison.
func comparedCodes(call ast.CallExpr) (codes []int64, ok bool) {
	args := call.Args()
	if len(args) != 2 || !isField(args[0], "error", "code") && !isField(args[1], "error", "code") {
		return nil, false
	}
	other := args[1]
	if isField(other, "error", "code") {
		other = args[0]
	}
	around := false
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals:
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		around = true
	case operators.In:
		if other.Kind() != ast.ListKind {
			return nil, false
		}
		for _, item := range other.AsList().Elements() {
			n, isInt := intLiteral(item)
			if !isInt {
				return nil, false
			}
			codes = append(codes, n)
		}
		return codes, true
	default:
		return nil, false
	}
	n, isInt := intLiteral(other)
	if !isInt {
		return nil, false
	}
	if around {
		return []int64{n - 1, n, n + 1}, true
	}
	return []int64{n}, true
}

func intLiteral(e ast.Expr) (int64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	n, ok := e.AsLiteral().(types.Int)
	return int64(n), ok
}

func stringLiteral(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// isField reports whether the expression is owner.name.
func isField(e ast.Expr, owner, name string) bool {
	if e.Kind() != ast.SelectKind {
		return false
	}
	s := e.AsSelect()
	return !s.IsTestOnly() && s.FieldName() == name && s.Operand().Kind() == ast.IdentKind && s.Operand().AsIdent() == owner
}

// unknownBefore are the patterns of what is unknown in every world whatever came of the call.
var unknownBefore = []*cel.AttributePatternType{
	cel.AttributePattern("args"), cel.AttributePattern("meta"), cel.AttributePattern("client"), cel.AttributePattern("now"),
	cel.AttributePattern("attempt"), cel.AttributePattern("elapsed"),
	cel.AttributePattern("server").QualString("title"), cel.AttributePattern("server").QualString("version"), cel.AttributePattern("server").QualString("protocol"),
	cel.AttributePattern("error").QualString("data"), cel.AttributePattern("error").QualString("retry_after"),
}

// unknownAlways are the patterns of what is unknown in every world.
var unknownAlways = append(slices.Clip(unknownBefore), cel.AttributePattern("result"))

var (
	unknownText = []*cel.AttributePatternType{
		cel.AttributePattern("error").QualString("text"), cel.AttributePattern("error").QualString("message"),
	}
	unknownName  = cel.AttributePattern("tool").QualString("name")
	unknownTitle = cel.AttributePattern("tool").QualString("title")
	unknownCode  = cel.AttributePattern("error").QualString("code")
	unknownTool  = cel.AttributePattern("tool").QualString("effects")
)
