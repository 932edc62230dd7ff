package policy

import (
	"math"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// Bounds on the text of an expression. They are far above what a person writes; they keep a hostile or generated file from
// exhausting stack or time while it is compiled.
const (
	maxExpressionChars = 16 << 10
	maxExpressionNodes = 4000
	maxExpressionDepth = 100 // nested brackets and operators
)

// costLimit bounds the evaluation of an expression that loops or matches regular expressions, in CEL's units of cost: under
// 100 ms. Other expressions end in time proportional to their text and need no count, which would double their cost.
const costLimit = 100_000

// environment returns the one CEL environment of the process. It knows the variables of every phase; what an expression may
// use in its own phase is checked on the tree (see analyse), so that the message can say when a variable becomes known.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	stringMap := cel.MapType(cel.StringType, cel.DynType)
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Sets(), ext.Math(), ext.Encoders(), ext.Bindings(), ext.Regex(), ext.TwoVarComprehensions(),
		func(e *cel.Env) (*cel.Env, error) {
			e, err := cel.CustomTypeProvider(newProvider(e.CELTypeProvider()))(e)
			if err != nil {
				return nil, err
			}
			return cel.CustomTypeAdapter(adapter{e.CELTypeAdapter()})(e)
		},
		cel.ParserExpressionSizeLimit(maxExpressionChars),
		cel.ParserRecursionLimit(maxExpressionDepth),
		cel.ExpressionNodeLimit(maxExpressionNodes),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),

		cel.Variable("tool", toolType),
		cel.Variable("args", stringMap),
		cel.Variable("meta", stringMap),
		cel.Variable("client", clientType),
		cel.Variable("server", serverType),
		cel.Variable("now", types.TimestampType),
		cel.Variable("error", errorType),
		cel.Variable("attempt", types.IntType),
		cel.Variable("elapsed", types.DurationType),
		cel.Variable("result", types.DynType),
	}
	labelSharedErrors()
	return cel.NewEnv(append(options, ownFunctions()...)...)
})

// labelSharedErrors keeps evaluations from writing to two errors that all of them share: the first to meet one would mark
// it with its own node, under the eyes of the others, and every later report would point at that place.
func labelSharedErrors() {
	types.LabelErrNode(-1, types.NoSuchOverloadErr())
	types.LabelErrNode(-1, types.Int(math.MaxInt64).ConvertToType(types.TimestampType))
}
