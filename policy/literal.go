package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/bentabol/mcp-retry/schema"
)

// The Go types of a compiled literal, by form:
//
//	formWord, formPath, formText   string
//	formDuration                   time.Duration
//	formCount                      int
//	formBool                       bool
//	formNumber                     float64
//	formLimit                      *RateLimit
//	formGlobs                      []invalidation
//	formKey                        keyLiteral

// keyLiteral is a key that does not depend on the call.
type keyLiteral struct {
	answer keyAnswer
	text   []byte
}

// invalidation is one item of a literal invalidates.
type invalidation struct {
	tool  string
	fixed []byte      // canonical arguments that do not depend on the call; nil = none
	args  *expression // arguments that do; nil = none
	whole *expression // either; nil = none
	text  *schema.Expr
}

// literal checks and converts a literal of the config.
func (c *compiler) literal(q *question, v any) (any, error) {
	switch q.form {
	case formWord:
		s, ok := v.(string)
		if !ok || !slices.Contains(q.words, s) {
			return "", fmt.Errorf("expected one of %s, got %s", strings.Join(q.words, ", "), written(v))
		}
		return s, nil
	case formPath:
		s, ok := v.(string)
		if !ok {
			return "", fmt.Errorf("expected _meta.NAME or arguments.NAME, got %s", written(v))
		}
		return s, checkPath(s)
	case formText:
		if s, ok := v.(string); ok {
			return s, nil
		}
	case formKey:
		switch v := v.(type) {
		case nil:
			return keyLiteral{answer: keyNone}, nil
		case bool:
			if !v {
				return keyLiteral{answer: keyOff}, nil
			}
		case string:
			return literalOf(q, types.String(v))
		}
	case formDuration:
		switch v := v.(type) {
		case time.Duration:
			return v, nil
		case int64:
			return time.Duration(v) * time.Second, nil
		case float64:
			return time.Duration(v * float64(time.Second)), nil
		}
	case formCount:
		switch v := v.(type) {
		case int64:
			return int(v), nil
		case int:
			return v, nil
		}
	case formBool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case formNumber:
		if f, ok := v.(float64); ok && !math.IsNaN(f) {
			return f, nil
		}
	case formLimit:
		if l, ok := v.(schema.RateLimit); ok {
			out := RateLimit(l)
			if out.Burst == 0 {
				out.Burst = out.Calls
			}
			return &out, nil
		}
	case formGlobs:
		return c.invalidations(q, v)
	}
	return nil, fmt.Errorf("expected %s, got %s", expected[q.form], written(v))
}

func (c *compiler) invalidations(q *question, v any) (any, error) {
	switch list := v.(type) {
	case []string:
		out := make([]invalidation, len(list))
		for i, glob := range list {
			out[i].tool = glob
		}
		return out, nil
	case []schema.Invalidation:
		out := make([]invalidation, len(list))
		for i, item := range list {
			out[i] = invalidation{tool: item.Tool, text: item.Args}
			if item.Args == nil {
				continue
			}
			e := c.take(item.Args, q.phase.vars())
			if !c.checkPhase(item.Args, q) || e == nil {
				continue
			}
			if kind := e.result.Kind(); kind != types.MapKind && kind != types.DynKind {
				c.report(place(item.Args, 0, tokensLen(item.Args.Text)), "cel-type", fmt.Sprintf("args: expected map, got %s", e.result), "")
				continue
			}
			out[i].args, out[i].whole = e, e
			if e.constant != nil {
				fixed, err := toArgs(e.constant)
				if err != nil {
					return nil, err
				}
				out[i].args, out[i].fixed = nil, fixed
			}
		}
		return out, nil
	case nil:
		return []invalidation(nil), nil
	}
	return nil, fmt.Errorf("expected a list of globs or of {tool, args}, got %s", written(v))
}

// literalOf converts the value of an expression that depends on nothing of the call.
func literalOf(q *question, v ref.Val) (any, error) {
	switch q.form {
	case formWord:
		return toWord(v, q.words)
	case formPath:
		return toPath(v)
	case formText:
		return toText(v)
	case formKey:
		text, answer, err := appendKey(nil, v)
		return keyLiteral{answer, text}, err
	case formDuration:
		d, err := toDuration(v)
		if err != nil {
			return d, err
		}
		if exact, ok := v.(types.Duration); ok {
			d = exact.Duration
		}
		return d, withinBounds(q.decision, d)
	case formCount:
		return toCount(v)
	case formBool:
		return toBool(v)
	case formGlobs:
		list, err := appendInvalidates(nil, v)
		if err != nil {
			return nil, err
		}
		out := make([]invalidation, len(list))
		for i, item := range list {
			out[i].tool, out[i].fixed = item.Tool, item.Args
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s takes a plain value, not an expression", q.decision)
}

// withinBounds complains of a duration that a file could not state for the decision.
func withinBounds(decision schema.Decision, d time.Duration) error {
	zero, most := schema.DurationBounds(decision)
	switch {
	case d < 0:
		return errors.New("a duration cannot be negative")
	case d == 0 && !zero:
		return errors.New("a timeout must be more than 0")
	case d > most:
		return fmt.Errorf("it is at most %s, not %s", brief(most), brief(d))
	}
	return nil
}

// written is a literal as a message shows it.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", short(v))
	}
	return fmt.Sprint(v)
}
