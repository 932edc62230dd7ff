package schema

import "strings"

// ComposedPrefix is what the names of a server's tools and prompts begin with where several servers stand behind one endpoint: its own
// name, in which what clients refuse in the names of tools becomes _, and the separator.
func ComposedPrefix(server, separator string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, server) + separator
}

// checkPrefixes warns of servers that cannot be composed: tools of both could have one name.
func checkPrefixes(cfg *Config, r *report) {
	for i, s := range cfg.Servers {
		prefix := ComposedPrefix(s.Name, cfg.Separator)
		for _, other := range cfg.Servers[:i] {
			before := ComposedPrefix(other.Name, cfg.Separator)
			if !strings.HasPrefix(prefix, before) && !strings.HasPrefix(before, prefix) {
				continue
			}
			r.warnAt(s.Pos, "composed-names", "rename one of them, or state another compose.separator",
				"servers %q and %q cannot stand behind one endpoint: tools of both could begin with %q", shorten(other.Name), shorten(s.Name), max(prefix, before))
			break
		}
	}
}
