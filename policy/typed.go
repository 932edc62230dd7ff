package policy

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The typed variables are views of a [Call]: a pointer of another type to the same memory, so that handing one to CEL
// allocates nothing and each field is read where it stands.
type (
	toolView   Call
	errorView  Call
	clientView Call
	serverView Call
)

// fielder is a value with fields that are known at compile time.
type fielder interface {
	ref.Val
	fields() []typedField
}

type typedField struct {
	Field
	celType *types.Type
	words   []string // all that a string can be, where that is known
	get     func(view any) ref.Val
}

var (
	effectsWords  = []string{EffectsNone, EffectsIdempotent, EffectsUnsafe, EffectsUnannotated}
	kindWords     = []string{"timeout", "exit", "spawn", "transport", "rpc", "tool", "malformed", "overloaded", "cancelled", ""}
	deliveryWords = []string{"not_sent", "rejected", "unknown", "answered", ""}
)

var toolFields = []typedField{
	{Field{"name", "string", "as the server calls it"}, types.StringType, nil, func(v any) ref.Val { t := v.(*toolView); return box(&t.memo.boxes.toolName, t.Tool.Name) }},
	{Field{"title", "string", "for people; \"\" if it has none"}, types.StringType, nil, func(v any) ref.Val { t := v.(*toolView); return box(&t.memo.boxes.toolTitle, t.Tool.Title) }},
	{Field{"effects", "string", "none, idempotent, unsafe or unannotated; as decided"}, types.StringType, effectsWords, func(v any) ref.Val { return boxEffects(v.(*toolView).Tool.Effects) }},
	{Field{"annotated", "bool", "whether the server gave any hint"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*toolView).Tool.Annotated) }},
	{Field{"readOnly", "bool", "readOnlyHint"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*toolView).Tool.ReadOnly) }},
	{Field{"destructive", "bool", "destructiveHint"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*toolView).Tool.Destructive) }},
	{Field{"idempotent", "bool", "idempotentHint"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*toolView).Tool.Idempotent) }},
	{Field{"openWorld", "bool", "openWorldHint"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*toolView).Tool.OpenWorld) }},
}

var errorFields = []typedField{
	{Field{"kind", "string", "timeout, exit, spawn, transport, rpc, tool, malformed, overloaded or cancelled; \"\" after a success"}, types.StringType, kindWords, func(v any) ref.Val { e := v.(*errorView); return box(&e.memo.boxes.errorKind, e.failure().Kind) }},
	{Field{"code", "int", "of a JSON-RPC error; 0 if there is none"}, types.IntType, nil, func(v any) ref.Val { return types.Int(v.(*errorView).failure().Code) }},
	{Field{"message", "string", "of a JSON-RPC error, or our own words"}, types.StringType, nil, func(v any) ref.Val { return types.String(v.(*errorView).failure().Message) }},
	{Field{"data", "dyn", "of a JSON-RPC error; null if there is none"}, types.DynType, nil, func(v any) ref.Val { return v.(*errorView).data() }},
	{Field{"text", "string", "all text of an isError result, else the message"}, types.StringType, nil, func(v any) ref.Val { return types.String(v.(*errorView).failure().Text) }},
	{Field{"delivery", "string", "not_sent, rejected, unknown or answered; \"\" after a success"}, types.StringType, deliveryWords, func(v any) ref.Val { e := v.(*errorView); return box(&e.memo.boxes.delivery, e.failure().Delivery) }},
	{Field{"transient", "bool", "whether it is likely to pass"}, types.BoolType, nil, func(v any) ref.Val { return types.Bool(v.(*errorView).failure().Transient) }},
	{Field{"retry_after", "duration", "the server's hint; 0 if it gave none"}, types.DurationType, nil, func(v any) ref.Val { return types.Duration{Duration: v.(*errorView).failure().RetryAfter} }},
}

var clientFields = []typedField{
	{Field{"name", "string", "as the client calls itself"}, types.StringType, nil, func(v any) ref.Val { c := v.(*clientView); return box(&c.memo.boxes.clientName, c.peer().Name) }},
	{Field{"version", "string", "its version"}, types.StringType, nil, func(v any) ref.Val { c := v.(*clientView); return box(&c.memo.boxes.clientVersion, c.peer().Version) }},
	{Field{"protocol", "string", "MCP revision spoken with it"}, types.StringType, nil, func(v any) ref.Val { c := v.(*clientView); return box(&c.memo.boxes.clientProtocol, c.peer().Protocol) }},
}

var serverFields = []typedField{
	{Field{"name", "string", "its name in the config"}, types.StringType, nil, func(v any) ref.Val { s := v.(*serverView); return box(&s.memo.boxes.serverName, s.peer().Name) }},
	{Field{"title", "string", "as the server calls itself, for people"}, types.StringType, nil, func(v any) ref.Val { s := v.(*serverView); return box(&s.memo.boxes.serverTitle, s.peer().Title) }},
	{Field{"version", "string", "its version"}, types.StringType, nil, func(v any) ref.Val { s := v.(*serverView); return box(&s.memo.boxes.serverVersion, s.peer().Version) }},
	{Field{"protocol", "string", "MCP revision spoken with it"}, types.StringType, nil, func(v any) ref.Val { s := v.(*serverView); return box(&s.memo.boxes.serverProtocol, s.peer().Protocol) }},
}

func fieldDocs(fields []typedField) []Field {
	docs := make([]Field, len(fields))
	for i, f := range fields {
		docs[i] = f.Field
	}
	return docs
}

// boxes keep strings in the shape that CEL wants: tools and peers recur, and each new box is an allocation.
type boxes struct {
	toolName, toolTitle, errorKind, delivery               ref.Val
	clientName, clientVersion, clientProtocol              ref.Val
	serverName, serverTitle, serverVersion, serverProtocol ref.Val
}

func box(kept *ref.Val, s string) ref.Val {
	if v, ok := (*kept).(types.String); ok && string(v) == s {
		return *kept
	}
	*kept = types.String(s)
	return *kept
}

var (
	boxedNone        ref.Val = types.String(EffectsNone)
	boxedIdempotent  ref.Val = types.String(EffectsIdempotent)
	boxedUnsafe      ref.Val = types.String(EffectsUnsafe)
	boxedUnannotated ref.Val = types.String(EffectsUnannotated)
)

func boxEffects(s string) ref.Val {
	switch s {
	case EffectsNone:
		return boxedNone
	case EffectsIdempotent:
		return boxedIdempotent
	case EffectsUnsafe:
		return boxedUnsafe
	case EffectsUnannotated:
		return boxedUnannotated
	}
	return types.String(s)
}

var (
	noFailure Failure
	noPeer    Peer
)

func (e *errorView) failure() *Failure {
	if e.memo.failure == nil {
		return &noFailure
	}
	return e.memo.failure
}

// data is error.data, decoded once per phase.
func (e *errorView) data() ref.Val {
	if e.memo.data == nil {
		raw := e.failure().Data
		if raw == nil {
			e.memo.data = types.NullValue
			return e.memo.data
		}
		v := decodeText(raw)
		if types.IsError(v) {
			return v
		}
		e.memo.data = v
	}
	return e.memo.data
}

func (c *clientView) peer() *Peer {
	if c.Client == nil {
		return &noPeer
	}
	return c.Client
}

func (s *serverView) peer() *Peer {
	if s.Server == nil {
		return &noPeer
	}
	return s.Server
}

var (
	toolType   = types.NewObjectType("tool")
	errorType  = types.NewObjectType("error")
	clientType = types.NewObjectType("client")
	serverType = types.NewObjectType("server")
)

func (t *toolView) fields() []typedField   { return toolFields }
func (e *errorView) fields() []typedField  { return errorFields }
func (c *clientView) fields() []typedField { return clientFields }
func (s *serverView) fields() []typedField { return serverFields }

func (t *toolView) Type() ref.Type   { return toolType }
func (e *errorView) Type() ref.Type  { return errorType }
func (c *clientView) Type() ref.Type { return clientType }
func (s *serverView) Type() ref.Type { return serverType }

func (t *toolView) Value() any   { return t }
func (e *errorView) Value() any  { return e }
func (c *clientView) Value() any { return c }
func (s *serverView) Value() any { return s }

func (t *toolView) Equal(other ref.Val) ref.Val   { return types.Bool(other == ref.Val(t)) }
func (e *errorView) Equal(other ref.Val) ref.Val  { return types.Bool(other == ref.Val(e)) }
func (c *clientView) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(c)) }
func (s *serverView) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(s)) }

func (t *toolView) Get(field ref.Val) ref.Val   { return fieldOf(t, field) }
func (e *errorView) Get(field ref.Val) ref.Val  { return fieldOf(e, field) }
func (c *clientView) Get(field ref.Val) ref.Val { return fieldOf(c, field) }
func (s *serverView) Get(field ref.Val) ref.Val { return fieldOf(s, field) }

func (t *toolView) ConvertToType(to ref.Type) ref.Val   { return convertView(t, to) }
func (e *errorView) ConvertToType(to ref.Type) ref.Val  { return convertView(e, to) }
func (c *clientView) ConvertToType(to ref.Type) ref.Val { return convertView(c, to) }
func (s *serverView) ConvertToType(to ref.Type) ref.Val { return convertView(s, to) }

func (t *toolView) ConvertToNative(to reflect.Type) (any, error)   { return nativeView(t, to) }
func (e *errorView) ConvertToNative(to reflect.Type) (any, error)  { return nativeView(e, to) }
func (c *clientView) ConvertToNative(to reflect.Type) (any, error) { return nativeView(c, to) }
func (s *serverView) ConvertToNative(to reflect.Type) (any, error) { return nativeView(s, to) }

// fieldOf serves the rare access that is not resolved at compile time: a view that went through dyn().
func fieldOf(v fielder, field ref.Val) ref.Val {
	name, ok := field.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(field)
	}
	for _, f := range v.fields() {
		if f.Name == string(name) {
			return f.get(v)
		}
	}
	return types.NewErr("no such field %q", string(name))
}

func convertView(v fielder, to ref.Type) ref.Val {
	switch to {
	case v.Type():
		return v
	case types.TypeType:
		return v.Type().(*types.Type)
	}
	return types.NewErr("type conversion error from %q to %q", v.Type().TypeName(), to.TypeName())
}

// nativeView is for functions that want the whole value, such as json.encode.
func nativeView(v fielder, to reflect.Type) (any, error) {
	m := make(map[ref.Val]ref.Val, len(v.fields()))
	for _, f := range v.fields() {
		m[types.String(f.Name)] = f.get(v)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, m).ConvertToNative(to)
}

// provider adds the typed variables' types to those that CEL knows.
type provider struct {
	types.Provider
	fields map[string]map[string]*types.FieldType
}

func newProvider(base types.Provider) *provider {
	p := &provider{Provider: base, fields: map[string]map[string]*types.FieldType{}}
	for name, fields := range map[string][]typedField{
		"tool": toolFields, "error": errorFields, "client": clientFields, "server": serverFields,
	} {
		byName := make(map[string]*types.FieldType, len(fields))
		for _, f := range fields {
			byName[f.Name] = &types.FieldType{
				Type:    f.celType,
				IsSet:   func(any) bool { return true },
				GetFrom: func(view any) (any, error) { return f.get(view), nil },
			}
		}
		p.fields[name] = byName
	}
	return p
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.fields[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := p.fields[name]
	if !ok {
		return p.Provider.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(fields))
	for field := range fields {
		names = append(names, field)
	}
	return names, true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ok := p.fields[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, field)
	}
	f, ok := fields[field]
	return f, ok
}

// NewValue implements types.Provider.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.fields[name]; ok {
		return types.NewErr("a value of type %q cannot be made", name)
	}
	return p.Provider.NewValue(name, fields)
}

// adapter hands values that are CEL's already through, which saves the long way for every variable and field.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(v any) ref.Val {
	if val, ok := v.(ref.Val); ok {
		return val
	}
	return a.Adapter.NativeToValue(v)
}
