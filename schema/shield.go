package schema

import (
	"path/filepath"
	"strconv"
	"strings"
)

// shieldNames are mcp-shield's names of settings, and ours, where the two differ.
var shieldNames = map[string]string{"timeout": "call_timeout", "retries": "retry"}

// shieldInner are the names inside a setting, by mcp-shield's name of that.
var shieldInner = map[string]map[string]string{
	"retries":         {"max": "max_retries"},
	"circuit_breaker": {"threshold": "failure_threshold", "reset_after": "cooldown_seconds"},
}

// detect says which spelling a file is in: its keys tell, or where they fit both its name, mcp-shield.yaml. In a file of both
// spellings, each key in mcp-shield's is a finding, and ours counts.
func detect(file string, root *node, r *report) *dialect {
	var theirs []mark
	var mine *node
	for _, n := range settingMaps(root) {
		for _, f := range n.fields {
			name := f.key.text
			switch {
			case shieldNames[name] != "":
				theirs = append(theirs, mark{f.key, n, shieldNames[name]})
			case name == "circuit_breaker":
				for _, p := range f.value.fields {
					if to := shieldInner[name][p.key.text]; to != "" {
						theirs = append(theirs, mark{p.key, f.value, to})
					} else if mine == nil && breakerSettings[p.key.text] != "" {
						mine = p.key
					}
				}
			case mine == nil && onlyOurs(name):
				mine = f.key
			}
		}
	}
	switch {
	case len(theirs) == 0 && mine == nil && strings.HasPrefix(filepath.Base(file), "mcp-shield"):
		return shield
	case len(theirs) == 0:
		return ours
	case mine == nil:
		return shield
	}
	for _, m := range theirs {
		fix := Fix{}
		if m.in.key(m.ours) == nil {
			fix = r.rewrite(m.key, m.ours)
		}
		r.mendable(m.key, fix, "mixed-spellings", `write "`+m.ours+`"`,
			"%q is mcp-shield's spelling, and %q on line %d is mcp-retry's: one file has one", m.key.text, mine.text, mine.pos.Line)
	}
	return ours
}

// mark is a key in mcp-shield's spelling, and its name in ours.
type mark struct {
	key  *node
	in   *node // the map in which it stands
	ours string
}

// onlyOurs reports whether a setting exists in our spelling and not in mcp-shield's.
func onlyOurs(name string) bool {
	switch name {
	case "command", "args", "env", "cwd", "tools", "type", "url", "headers":
		return false
	}
	ours.mu.Lock()
	defer ours.mu.Unlock()
	server := ours.config().field("servers").field("any")
	return server.field(name) != nil || server.field("tools").field("any").field(name) != nil
}

// settingMaps returns the maps of a file in which settings stand: defaults, servers, and the tools of both.
func settingMaps(root *node) []*node {
	var maps []*node
	add := func(n *node) {
		if n == nil || n.kind != object {
			return
		}
		maps = append(maps, n)
		if t := n.get("tools"); t != nil {
			for _, f := range t.fields {
				if f.value.kind == object {
					maps = append(maps, f.value)
				}
			}
		}
	}
	add(root.get("defaults"))
	if s := root.get("servers"); s != nil {
		for _, f := range s.fields {
			add(f.value)
		}
	}
	return maps
}

// respell renames the keys of a checked file in mcp-shield's spelling to ours.
func respell(root *node) {
	for _, n := range settingMaps(root) {
		for i := range n.fields {
			f := &n.fields[i]
			inner := shieldInner[f.key.text]
			for j := range f.value.fields {
				if to := inner[f.value.fields[j].key.text]; to != "" {
					f.value.fields[j].key.rename(to)
				}
			}
			if to := shieldNames[f.key.text]; to != "" {
				f.key.rename(to)
			}
		}
	}
}

// rename gives a key our name; what was written is kept for the origin of rules.
func (n *node) rename(to string) { n.written, n.text = n.text, to }

// origin is a key as the file spells it.
func (n *node) origin() string {
	if n.written != "" {
		return n.written
	}
	return n.text
}

func index(i int) string { return strconv.Itoa(i) }
