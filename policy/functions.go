package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// ownFunctions are those that CEL's libraries lack.
//
//	hash(dyn) → string                  SHA-256, in hex, of the value's canonical JSON: equal values, equal hashes
//	glob(string, string) → bool         whether the text matches the pattern; see [Match]
//	omit(map, list(string)) → map       the map without those keys
//	pick(map, list(string)) → map       the map with only those keys; those that it lacks are passed over
//	text(dyn) → string                  all text of a tool's result, blocks joined by newlines; "" for null
func ownFunctions() []cel.EnvOption {
	stringMap := cel.MapType(cel.StringType, cel.DynType)
	keys := cel.ListType(cel.StringType)
	return []cel.EnvOption{
		cel.Function("string", cel.Overload("number_to_string", []*cel.Type{bigNumberType}, cel.StringType,
			cel.UnaryBinding(func(n ref.Val) ref.Val { return n.ConvertToType(types.StringType) }))),
		cel.Function("hash", cel.Overload("hash_dyn", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(hashValue))),
		cel.Function("glob", cel.Overload("glob_string_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(globValue))),
		cel.Function("omit", cel.Overload("omit_map_list", []*cel.Type{stringMap, keys}, stringMap,
			cel.BinaryBinding(func(m, keys ref.Val) ref.Val { return selectKeys(m, keys, false) }))),
		cel.Function("pick", cel.Overload("pick_map_list", []*cel.Type{stringMap, keys}, stringMap,
			cel.BinaryBinding(func(m, keys ref.Val) ref.Val { return selectKeys(m, keys, true) }))),
		cel.Function("text", cel.Overload("text_dyn", []*cel.Type{cel.DynType}, cel.StringType,
			cel.UnaryBinding(textOfResult))),
	}
}

func hashValue(v ref.Val) ref.Val {
	var buf [256]byte
	text, err := appendCanonical(buf[:0], v, 0)
	if err != nil {
		return types.NewErr("hash: %v", err)
	}
	sum := sha256.Sum256(text)
	return types.String(hex.EncodeToString(sum[:]))
}

func globValue(text, pattern ref.Val) ref.Val {
	s, ok1 := text.(types.String)
	p, ok2 := pattern.(types.String)
	if !ok1 || !ok2 {
		return types.NewErr("glob: expected two strings")
	}
	return types.Bool(Match(string(p), string(s)))
}

// selectKeys returns m with (keep) or without (!keep) the keys.
func selectKeys(m, keys ref.Val, keep bool) ref.Val {
	mapper, ok1 := m.(traits.Mapper)
	lister, ok2 := keys.(traits.Lister)
	if !ok1 || !ok2 {
		return types.NewErr("expected a map and a list of its keys")
	}
	selected := map[ref.Val]ref.Val{}
	if keep {
		size, _ := lister.Size().(types.Int)
		for i := types.Int(0); i < size; i++ {
			key := lister.Get(i)
			if types.IsError(key) {
				return key
			}
			v, found := mapper.Find(key)
			if v != nil && types.IsError(v) {
				return v
			}
			if found {
				selected[key] = v
			}
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, selected)
	}
	for it := mapper.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		if lister.Contains(key) == types.True {
			continue
		}
		v := mapper.Get(key)
		if types.IsError(v) {
			return v
		}
		selected[key] = v
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, selected)
}

// textOfResult joins the text blocks of a result: content[].text where type is "text" (MCP, tools/call).
func textOfResult(result ref.Val) ref.Val {
	if result == types.NullValue {
		return types.String("")
	}
	m, ok := result.(traits.Mapper)
	if !ok {
		return types.NewErr("text: expected a tool's result, got %s", result.Type().TypeName())
	}
	content, found := m.Find(types.String("content"))
	if !found {
		return types.String("")
	}
	blocks, ok := content.(traits.Lister)
	if !ok {
		return types.NewErr("text: content is no list")
	}
	var texts []string
	size, _ := blocks.Size().(types.Int)
	for i := types.Int(0); i < size; i++ {
		block, ok := blocks.Get(i).(traits.Mapper)
		if !ok {
			continue
		}
		kind, _ := block.Find(types.String("type"))
		if kind != types.String("text") {
			continue
		}
		if t, _ := block.Find(types.String("text")); t != nil {
			if s, ok := t.(types.String); ok {
				texts = append(texts, string(s))
			}
		}
	}
	return types.String(strings.Join(texts, "\n"))
}
