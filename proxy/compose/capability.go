package compose

import (
	"strings"

	"github.com/bentabol/mcp-retry/proxy/jsonrpc"
)

// mergedCapabilities is what any of the servers can do. Lists may change whenever a server comes back; of one that is missing
// it is not known what it has.
func (b *Board) mergedCapabilities(f *fan) map[string]any {
	all := map[string]any{}
	b.declared = map[string]bool{}
	missing := false
	for _, p := range f.parts {
		if p.result == nil {
			missing = true
			continue
		}
		var r struct{ Capabilities map[string]any }
		if decode(p.result, &r) == nil {
			unite(all, r.Capabilities)
		}
	}
	for _, name := range []string{"tools", "prompts", "resources"} {
		own, there := all[name].(map[string]any)
		if own == nil {
			own = map[string]any{}
		}
		if there || missing {
			own["listChanged"] = true
			all[name] = own
			b.declared[name] = true
		}
	}
	return all
}

// unite adds what is in more to all; of two booleans, true stays.
func unite(all, more map[string]any) {
	for key, value := range more {
		old, there := all[key]
		oldMap, _ := old.(map[string]any)
		moreMap, isMap := value.(map[string]any)
		switch {
		case oldMap != nil && isMap:
			unite(oldMap, moreMap)
		case !there || value == true:
			all[key] = value
		}
	}
}

// capabilityOf names what a server declares that takes methods with that beginning.
var capabilityOf = map[string]string{
	"prompts": "prompts", "resources": "resources", "logging": "logging", "completion": "completions", "tasks": "tasks",
}

// asks reports whether a server is there and declares that it takes a method.
func (b *Board) asks(server int, method string) bool {
	member := b.members[server]
	if !member.agreed {
		return false
	}
	family, _, _ := strings.Cut(method, "/")
	capability, needs := capabilityOf[family]
	if !needs || member.capabilities == nil {
		return true
	}
	_, declared := jsonrpc.Lookup(member.capabilities, whole(member.capabilities), capability)
	return declared
}
