package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bentabol/mcp-retry/schema"
)

// DefaultSeparator stands between the name of a server and that of its tool or prompt.
const DefaultSeparator = schema.DefaultSeparator

const (
	maxName  = 64    // bytes in a tool name that clients and model APIs take
	hashSize = 8     // hex digits at the end of a name that was cut
	maxCut   = 10000 // names that were cut and are remembered: servers can make up names without end
	nameHint = "rename one of them, or set another compose.separator"
)

// names translates between the names that servers give and those that the client sees.
type names struct {
	prefixes []string       // by server; "" = it has been retired
	cut      map[string]own // composed names that do not say it all
}

// own is a name as its server knows it.
type own struct {
	server int
	name   string
}

// newNames returns the names of servers, or an error if two could be taken for each other. "" stands for a server that has been
// retired.
func newNames(servers []string, separator string) (*names, error) {
	n := &names{cut: map[string]own{}}
	for i, name := range servers {
		if name == "" {
			n.prefixes = append(n.prefixes, "")
			continue
		}
		prefix := schema.ComposedPrefix(name, separator)
		for j, other := range n.prefixes {
			if other == "" {
				continue
			}
			if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
				return nil, fmt.Errorf("the servers %q and %q cannot be composed: tools of both could begin with %q: %s",
					servers[j], servers[i], max(prefix, other), nameHint)
			}
		}
		n.prefixes = append(n.prefixes, prefix)
	}
	return n, nil
}

// compose returns the name at the client of what a server calls name; cut reports that it is new and had to be cut.
func (n *names) compose(server int, name string) (composed string, cut bool) {
	composed = n.prefixes[server] + name
	if len(composed) <= maxName {
		return composed, false
	}
	sum := sha256.Sum256([]byte(composed))
	head := composed[:maxName-hashSize-1]
	for !utf8.ValidString(head) && len(head) > maxName-hashSize-1-utf8.UTFMax {
		head = head[:len(head)-1]
	}
	composed = head + "_" + hex.EncodeToString(sum[:hashSize/2])
	if _, known := n.cut[composed]; known || len(n.cut) >= maxCut {
		return composed, false
	}
	n.cut[composed] = own{server, name}
	return composed, true
}

// resolve returns whose name it is that the client uses, and what that server calls it.
func (n *names) resolve(composed string) (own, bool) {
	if o, ok := n.cut[composed]; ok {
		return o, true
	}
	for i, prefix := range n.prefixes {
		if name, ok := strings.CutPrefix(composed, prefix); ok && prefix != "" {
			return own{i, name}, true
		}
	}
	return own{}, false
}

// cutBy returns the servers that may have a name that looks as if it was cut and is not known: a client may have kept it from
// an earlier session.
func (n *names) cutBy(composed string) (servers []int) {
	if _, known := n.cut[composed]; known || len(composed) > maxName || len(composed) < maxName-utf8.UTFMax {
		return nil
	}
	head, sum := composed[:len(composed)-hashSize-1], composed[len(composed)-hashSize-1:]
	if _, err := hex.DecodeString(sum[1:]); sum[0] != '_' || err != nil {
		return nil
	}
	for i, prefix := range n.prefixes {
		if prefix != "" && (strings.HasPrefix(head, prefix) || strings.HasPrefix(prefix, head)) {
			servers = append(servers, i)
		}
	}
	return servers
}

// keep takes over from other names what was cut for servers that are still there under the same prefix.
func (n *names) keep(other *names) {
	for composed, o := range other.cut {
		if n.prefixes[o.server] == other.prefixes[o.server] {
			n.cut[composed] = o
		}
	}
}
