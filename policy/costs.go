package policy

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// manyNodes is the size from which an expression is counted although it does not loop: below it, what it can cost is
// some hundred times the size of the call at most.
const manyNodes = 100

// costs adds to CEL's own table what it takes for constant: functions of ours that read a whole value, and every function
// whose arguments are dynamic.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	if types.IsError(result) {
		return &cost
	}
	switch function {
	case "guarded matches", "guarded regex.extract", "guarded regex.extractAll", "guarded regex.replace":
		cost += textSize(args[0]) / 20 * (1 + textSize(args[1])/16)
	case "guarded distinct":
		cost += uint64(sizeOf(args[0])) * uint64(sizeOf(args[0])) / 2
	case "guarded sets.contains", "guarded sets.equivalent", "guarded sets.intersects":
		cost += uint64(sizeOf(args[0])) * uint64(sizeOf(args[1]))
	case "hash", "text", "omit", "pick", "glob", "json.encode", "guarded sort", "guarded flatten", "guarded join",
		"guarded split", "guarded replace":
		cost += sumOfSizes(args) / 10
	default:
		if overload != "" {
			return nil
		}
		cost += sumOfSizes(args) / 10
	}
	return &cost
}

func sumOfSizes(args []ref.Val) uint64 {
	var sum uint64
	for _, arg := range args {
		sum += textSize(arg)
	}
	return sum
}

// textSize is how many bytes a value was decoded from, or what is near it.
func textSize(v ref.Val) uint64 {
	switch v := v.(type) {
	case *object:
		return uint64(len(v.raw))
	case *list:
		return uint64(len(v.raw))
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	case traits.Lister, traits.Mapper:
		if n, ok := v.(traits.Sizer).Size().(types.Int); ok {
			return 10 * uint64(n)
		}
	}
	return 0
}
