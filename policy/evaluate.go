package policy

import (
	"fmt"

	"github.com/google/cel-go/common/types/ref"

	"github.com/bentabol/mcp-retry/schema"
)

// applies tells whether the candidate's when holds. Its answer is kept: for the call if it needs nothing that is learned
// later, else for the phase. A when that errs does not hold, and is reported once.
func (c *Call) applies(cand *candidate) bool {
	if cand.always {
		return true
	}
	r := cand.rule
	kept := &c.memo.whenOfThis[cand.slot]
	if r.early {
		kept = &c.memo.whenBefore[cand.slot]
	}
	if *kept == unasked {
		*kept = fails
		v, err := r.when.eval(c)
		if err == nil {
			var yes bool
			if yes, err = toBool(v); yes {
				*kept = holds
			}
		}
		if err != nil {
			c.fail("when", r, r.when, r.whenText, err)
		}
	}
	return *kept == holds
}

// value evaluates the candidate's expression and converts it. On an error, which it reports, ok is false.
func value[T any](c *Call, cand *candidate, convert func(ref.Val) (T, error)) (out T, ok bool) {
	s := cand.setting
	v, err := s.expr.eval(c)
	if err == nil {
		out, err = convert(v)
	}
	if err != nil {
		c.failSetting(cand, err)
		return out, false
	}
	return out, true
}

func (c *Call) failSetting(cand *candidate, err error) {
	s := cand.setting
	c.fail(string(questions[s.ask].decision), cand.rule, s.expr, s.text, err)
}

// fail reports an expression that failed at run time.
func (c *Call) fail(decision string, r *rule, e *expression, x *schema.Expr, err error) {
	message := shorten(err.Error(), 300) // what the call holds may be part of it
	if x != nil {
		if pos := x.Place(e.offsetOf(err)).String(); pos != "" {
			message = fmt.Sprintf("%s: %s", pos, message)
		}
	}
	c.Errors = append(c.Errors, EvalError{Decision: decision, Rule: r.name, Message: message})
}
