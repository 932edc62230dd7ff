package policy

import (
	"iter"
	"slices"
	"strings"

	"github.com/bentabol/mcp-retry/schema"
)

// specimen is an error that a repeat cannot mend, or one to compare with.
type specimen struct {
	failure Failure
	what    string
}

func toolFailure(text string) Failure {
	return Failure{Kind: "tool", Delivery: "answered", Text: text, Message: text}
}

var (
	authSamples = []specimen{
		{toolFailure("401 Unauthorized: bad credentials"), "401"},
		{toolFailure("403 Forbidden: access denied"), "403"},
		{toolFailure("HTTP status 401"), "401"},
		{toolFailure("HTTP status 403"), "403"},
		{toolFailure("permission denied"), "a refusal of access"},
		{toolFailure("Unauthenticated: invalid token"), "a refusal of access"},
		{rpcFailure(401, "Unauthorized"), "401"},
		{rpcFailure(403, "Forbidden"), "403"},
	}
	invalidSamples = []specimen{
		{rpcFailure(-32602, "Invalid params"), "-32602 (invalid parameters)"},
		{rpcFailure(-32601, "Method not found"), "-32601 (no such method)"},
		{rpcFailure(-32600, "Invalid Request"), "-32600 (invalid request)"},
		{rpcFailure(400, "Bad Request"), "400"},
		{toolFailure("Input validation error: invalid arguments"), "invalid arguments"},
		{toolFailure("Validation failed: a required field is missing"), "invalid arguments"},
		{toolFailure("Invalid arguments for tool"), "invalid arguments"},
		{toolFailure("400 Bad Request"), "400"},
		{toolFailure("404 Not Found: no such file"), "404"},
	}
	generalSamples = []specimen{
		{toolFailure("the service said something else"), ""},
		{rpcFailure(-31987, "the service said something else"), ""},
	}
	anyTool, anyRPC = &generalSamples[0].failure, &generalSamples[1].failure
)

// retryHopeless reports rules that retry what a repeat cannot mend.
func (l *linter) retryHopeless() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.builtin || r.dead {
			continue
		}
		for j := range r.settings {
			if s := &r.settings[j]; s.ask == askRetry {
				l.hopeless(i, s)
				l.decidesAbove(r)
			}
		}
	}
}

func (l *linter) hopeless(index int, s *lintSetting) {
	r := &l.rules[index]
	retries := func(f *Failure) bool { return l.wouldRetry(index, s, f) }
	if retries(anyTool) || retries(anyRPC) {
		what := "every error"
		switch {
		case !retries(anyTool):
			what = "every JSON-RPC error"
		case !retries(anyRPC):
			what = "every error of a tool"
		}
		l.report(schema.Warning, LintRetryHopeless, l.errorPlace(r, s, nil), "name the errors that pass, such as error.transient or a text that says so",
			"retries %s, also those that a repeat cannot mend: a refusal of access, invalid arguments, nothing found", what)
		return
	}
	for _, group := range [][]specimen{authSamples, invalidSamples} {
		for i := range group {
			sm := &group[i]
			if !retries(&sm.failure) {
				continue
			}
			pos := l.errorPlace(r, s, &sm.failure)
			if sm.failure.Delivery == "rejected" {
				l.report(schema.Warning, LintRetryHopeless, pos, "remove it", "%s is never retried, whatever a rule says: the server would refuse the same call again", sm.what)
			} else {
				l.report(schema.Warning, LintRetryHopeless, pos, "leave it out: the caller has to see it", "retries %s, which a repeat cannot mend", sm.what)
			}
			return
		}
	}
}

// wouldRetry reports whether the setting would have this very error retried, if what is not of the error is as it wants. Rules are asked
// from the top: those that surely decide of an error are remembered.
func (l *linter) wouldRetry(index int, s *lintSetting, f *Failure) bool {
	r := &l.rules[index]
	value := mayHold
	if s.expr != nil {
		value = l.sampled(s.value, f)
	} else if s.literal == false {
		value = mayFail
	}
	return l.sampled(r.cond, f).and(value)&mayHold != 0 && !slices.ContainsFunc(l.deciders[f], func(above *lintRule) bool {
		return above != r && above.owner == r.owner && covers(above.tools, r.tools)
	})
}

// decidesAbove notes of which errors the rule leaves nothing to those below it.
func (l *linter) decidesAbove(r *lintRule) {
	for f := range allSpecimens() {
		if l.sampled(r.cond, f) == mayHold {
			l.deciders[f] = append(l.deciders[f], r)
		}
	}
}

func allSpecimens() iter.Seq[*Failure] {
	return func(yield func(*Failure) bool) {
		for _, list := range [][]specimen{authSamples, invalidSamples, generalSamples} {
			for i := range list {
				if !yield(&list[i].failure) {
					return
				}
			}
		}
	}
}

// sampled evaluates a condition for one specimen with its text. A part that uses the error in a way that cannot be told counts as false.
func (l *linter) sampled(p *proposition, f *Failure) truth {
	if p == nil {
		return mayHold
	}
	return p.holds(func(leaf *leaf) truth {
		if leaf.vars&varError == 0 {
			return anything
		}
		if t, ok := leaf.sampled[f]; ok {
			return t
		}
		c := &l.call
		c.Tool = Tool{Effects: EffectsNone, Annotated: true, ReadOnly: true}
		c.enter(0, f, nil, 1, 0)
		unknown := append(l.unknown[:0], unknownAlways...)
		unknown = append(unknown, unknownName, unknownTitle, unknownTool)
		l.unknown = unknown
		t := leaf.eval(c, unknown)
		if t == anything {
			t = mayFail
		}
		if leaf.sampled == nil {
			leaf.sampled = map[*Failure]truth{}
		}
		leaf.sampled[f] = t
		return t
	})
}

// errorPlace is where a rule names the error: the literal, if there is one that fits, else the part of the condition that
// asks for it, else the setting.
func (l *linter) errorPlace(r *lintRule, s *lintSetting, f *Failure) schema.Pos {
	type part struct {
		x *schema.Expr
		p *proposition
	}
	var parts []part
	if r.cond != nil {
		parts = append(parts, part{r.src.When, r.cond})
	}
	if s.value != nil {
		parts = append(parts, part{s.text, s.value})
	}
	for _, it := range parts {
		var pos schema.Pos
		it.p.leaves(func(leaf *proposition) {
			if pos.Line != 0 || leaf.leaf.vars&varError == 0 {
				return
			}
			if f == nil {
				if l.sampled(leaf, anyTool) == mayHold || l.sampled(leaf, anyRPC) == mayHold {
					pos = placeOf(it.x, leaf.tree, leaf.expr)
				}
				return
			}
			if l.sampled(leaf, f) == mayHold && l.sampled(leaf, anyTool) != mayHold && l.sampled(leaf, anyRPC) != mayHold {
				pos = literalPlace(it.x, leaf, f)
			}
		})
		if pos.Line != 0 {
			return pos
		}
	}
	return s.place()
}

// literalPlace is where the code or the text of the error stands in a part of a condition.
func literalPlace(x *schema.Expr, p *proposition, f *Failure) schema.Pos {
	pos := placeOf(x, p.tree, p.expr)
	found := false
	visitLiterals(p.expr, func(e literalExpr) {
		if found {
			return
		}
		fits := f.Code != 0 && e.isInt && e.number == f.Code
		if e.isText && e.text != f.Kind && e.text != f.Delivery {
			fits = fits || e.text != "" && (strings.Contains(strings.ToLower(f.Text), strings.ToLower(e.text)) || len(p.expr.AsCall().Args()) == 1)
		}
		if fits {
			found, pos = true, placeOf(x, p.tree, e.expr)
		}
	})
	return pos
}
