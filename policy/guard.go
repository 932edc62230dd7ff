package policy

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// CEL counts the cost of a call of a function when the function has returned. That is too late for those whose time or
// memory can grow faster than what they are given, and what they are given comes from the other side of the wire. So
// these look at the sizes of their arguments first.
const (
	maxMatchedText = 256 << 10 // bytes of a text that a pattern is matched with, or that is split or replaced in
	maxGrownText   = 4 << 20   // bytes of a text that replace or join make
	maxPairs       = 1 << 20   // pairs of items that are compared with one another
	maxItems       = 100_000   // items of a list that is sorted, joined or flattened
	maxPattern     = 300       // instructions of a compiled pattern; each may run for each byte of the text
)

// guards say, for the functions that need it, whether their arguments are too large.
var guards = map[string]func(args []ref.Val) error{
	"matches":          textWithin,
	"regex.extract":    textWithin,
	"regex.extractAll": textWithin,
	"regex.replace":    growthWithin,
	"replace":          growthWithin,
	"split":            textWithin,
	"join": func(args []ref.Val) error {
		if len(args) > 1 {
			return within("the joined text", sizeOf(args[0])*sizeOf(args[1]), maxGrownText)
		}
		return within("the list", sizeOf(args[0]), maxItems)
	},
	"distinct":        func(args []ref.Val) error { return within("the list", sizeOf(args[0])*sizeOf(args[0]), maxPairs) },
	"sets.contains":   pairsWithin,
	"sets.equivalent": pairsWithin,
	"sets.intersects": pairsWithin,
	"sort":            func(args []ref.Val) error { return within("the list", sizeOf(args[0]), maxItems) },
	"flatten":         func(args []ref.Val) error { return within("the list", sizeOf(args[0]), maxItems) },
}

// patterned are the functions whose second argument is a regular expression.
var patterned = map[string]bool{"matches": true, "regex.extract": true, "regex.extractAll": true, "regex.replace": true}

func textWithin(args []ref.Val) error { return within("the text", sizeOf(args[0]), maxMatchedText) }

// checkPattern says what is wrong with a regular expression.
func checkPattern(pattern string) error {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return err
	}
	return within("the compiled pattern", len(program.Inst), maxPattern)
}

// growthWithin is for replace: at worst each character, and the gap before it, becomes the replacement.
func growthWithin(args []ref.Val) error {
	if err := textWithin(args); err != nil {
		return err
	}
	if len(args) < 3 || sizeOf(args[2]) <= 1 {
		return nil
	}
	return within("the replaced text", (sizeOf(args[0])+1)*sizeOf(args[2]), maxGrownText)
}

func pairsWithin(args []ref.Val) error {
	return within("the product of the lists' sizes", sizeOf(args[0])*sizeOf(args[1]), maxPairs)
}

func within(what string, size, limit int) error {
	if size <= limit {
		return nil
	}
	return fmt.Errorf("%s is too large: %d, at most %d", what, size, limit)
}

// sizeOf is the length of a text in bytes, or of a list in items.
func sizeOf(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Lister:
		n, _ := v.Size().(types.Int)
		return int(n)
	}
	return 1
}

// implementations are the guarded functions' own, by overload and by name.
var implementations = sync.OnceValues(func() (map[string]functions.FunctionOp, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	all := env.Functions()
	table := map[string]functions.FunctionOp{}
	for name := range guards {
		overloads, err := all[name].Bindings()
		if err != nil {
			return nil, err
		}
		for _, o := range overloads {
			if op := variadic(o); op != nil {
				table[o.Operator] = op
			}
		}
	}
	return table, nil
})

func variadic(o *functions.Overload) functions.FunctionOp {
	switch {
	case o.Function != nil:
		return o.Function
	case o.Binary != nil:
		return func(args ...ref.Val) ref.Val {
			if len(args) != 2 {
				return types.NoSuchOverloadErr()
			}
			return o.Binary(args[0], args[1])
		}
	case o.Unary != nil:
		return func(args ...ref.Val) ref.Val {
			if len(args) != 1 {
				return types.NoSuchOverloadErr()
			}
			return o.Unary(args[0])
		}
	}
	return nil
}

// guarded puts the guards before the functions of a program that is planned.
func guarded() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(step interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := step.(interpreter.InterpretableCall)
		if !ok {
			return step, nil
		}
		guard, ok := guards[call.Function()]
		if !ok {
			return step, nil
		}
		op, err := implementationOf(call)
		if err != nil || op == nil {
			return step, err
		}
		_, constant := constantPattern(call) // has been checked with the text of the expression
		checksPattern := patterned[call.Function()] && !constant
		check := func(args ...ref.Val) ref.Val {
			err := guard(args)
			if err == nil && checksPattern {
				if pattern, ok := args[1].(types.String); ok {
					err = checkPattern(string(pattern))
				}
			}
			if err != nil {
				return types.NewErr("%s: %v", call.Function(), err)
			}
			return op(args...)
		}
		// Under its own name cel-go would replace a call of matches by one without the guard, and by its overload the
		// library's own count of the cost would come before ours.
		return interpreter.NewCall(call.ID(), "guarded "+call.Function(), "", call.Args(), check), nil
	})
}

// constantPattern returns the pattern of a call that has the same one each time.
func constantPattern(call interpreter.InterpretableCall) (string, bool) {
	if args := call.Args(); patterned[call.Function()] && len(args) > 1 {
		if c, ok := args[1].(interpreter.InterpretableConst); ok {
			s, ok := c.Value().(types.String)
			return string(s), ok
		}
	}
	return "", false
}

// implementationOf returns what the call runs. A constant pattern of matches is compiled here, once.
func implementationOf(call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	if pattern, ok := constantPattern(call); ok && call.Function() == "matches" {
		return matchConstant(pattern)
	}
	table, err := implementations()
	if err != nil {
		return nil, err
	}
	if op := table[call.OverloadID()]; op != nil {
		return op, nil
	}
	return table[call.Function()], nil
}

func matchConstant(pattern string) (functions.FunctionOp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return func(args ...ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		return types.Bool(re.MatchString(string(s)))
	}, nil
}
