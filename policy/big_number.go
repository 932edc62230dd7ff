package policy

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// bigNumber is the text of a JSON number beyond 64 bits. It can be told from others, made a string and be part of a key,
// exactly; whatever would compute with it is an error, for rounding it would make two numbers one.
type bigNumber string

var bigNumberType = types.NewObjectType("number", traits.ComparerType)

func (n bigNumber) err() error {
	return fmt.Errorf("the number %s does not fit into 64 bits", short(string(n)))
}

// Compare implements traits.Comparer.
func (n bigNumber) Compare(ref.Val) ref.Val { return types.WrapErr(n.err()) }

// Equal implements ref.Val.
func (n bigNumber) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(n)) }

// Type implements ref.Val.
func (n bigNumber) Type() ref.Type { return bigNumberType }

// Value implements ref.Val.
func (n bigNumber) Value() any { return n }

// ConvertToNative implements ref.Val.
func (n bigNumber) ConvertToNative(reflect.Type) (any, error) { return nil, n.err() }

// ConvertToType implements ref.Val.
func (n bigNumber) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(n)
	case types.TypeType:
		return bigNumberType
	}
	return types.WrapErr(n.err())
}
