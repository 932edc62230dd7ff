package schema

import (
	"cmp"
	"slices"
	"strings"
)

// ruleList collects the rules of a server, in the order of precedence.
type ruleList struct {
	report *report
	rules  []Rule
	names  map[string]bool
}

// add appends a rule that states something. A name that a rule before it has already is told apart by the place.
func (l *ruleList) add(r Rule) {
	if len(r.Decides) == 0 && r.When == nil {
		return
	}
	if l.names[r.Name] {
		prefix, _, _ := strings.Cut(r.Origin, ".")
		r.Name = prefix + "." + r.Name
		for base, n := r.Name, 2; l.names[r.Name]; n++ {
			r.Name = base + "#" + index(n)
		}
	}
	l.names[r.Name] = true
	l.rules = append(l.rules, r)
}

// settings adds the rules of a server, or of the defaults: policy, tools, settings.
func (l *ruleList) settings(origin, prefix string, n *node) {
	if n == nil || n.kind != object {
		return
	}
	if p := n.get("policy"); p != nil {
		l.policy(place(origin, "policy"), prefix, p)
	}
	if t := n.get("tools"); t != nil {
		for _, f := range bySpecificity(t) {
			l.common(place(origin, "tools", f.key.text), prefix+"tools."+f.key.text+".", f.key, f.value)
		}
	}
	l.common(origin, prefix, nil, n)
	if c := n.get("cache"); c != nil {
		l.cache(place(origin, "cache"), prefix+"cache.", c)
	}
}

// bySpecificity returns the usable entries of a map by tool: exact names, then globs with more literal characters first.
func bySpecificity(n *node) []field {
	var out []field
	for _, f := range n.fields {
		if !f.key.bad && !f.value.bad {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b field) int {
		ka, kb := a.key.text, b.key.text
		if ga, gb := isGlob(ka), isGlob(kb); ga != gb {
			if ga {
				return 1
			}
			return -1
		}
		if !isGlob(ka) {
			return 0 // of exact names only one can hold
		}
		return cmp.Or(cmp.Compare(literals(kb), literals(ka)), cmp.Compare(ka, kb))
	})
	return out
}

func isGlob(s string) bool { return strings.ContainsAny(s, "*?") }

// literals counts the characters of a glob that stand for themselves.
func literals(glob string) int {
	n := 0
	for _, c := range glob {
		if c != '*' && c != '?' {
			n++
		}
	}
	return n
}

// common adds a rule for each setting that a server, or one of its tools, states. tool is the key that names the tool, or nil.
func (l *ruleList) common(origin, prefix string, tool *node, n *node) {
	if n == nil || n.kind != object {
		return
	}
	for _, f := range n.fields {
		if f.key.bad || f.value.bad {
			continue
		}
		key := f.key.text
		r := Rule{Name: prefix + key, Origin: place(origin, f.key.origin()), Pos: f.key.pos}
		if tool != nil {
			r.Tools, r.ToolsAt = tool.text, tool.pos
		}
		switch d := Decision(key); d {
		case CallTimeout, TotalTimeout, MaxCallTime, IdempotencyTTL, CacheTTL, Effects, Validate:
			r.literal(d, f)
		case "retry":
			for _, p := range f.value.fields {
				r.literal(retrySettings[p.key.text], p)
			}
		case "circuit_breaker":
			for _, p := range f.value.fields {
				r.literal(breakerSettings[p.key.text], p)
			}
			if tool != nil {
				r.Decides = append(r.Decides, Setting{Decision: BreakerScope, Pos: f.key.pos, Expr: &Expr{Text: `"tool:" + tool.name`, Pos: f.key.pos}})
			}
		case Limit:
			r.Decides = append(r.Decides, Setting{Decision: Limit, Pos: f.key.pos, Literal: rateLimit(f.value)})
		}
		l.add(r)
	}
}

var retrySettings = map[string]Decision{
	"max_retries": MaxRetries, "base_delay": BaseDelay, "max_delay": MaxDelay, "jitter": Jitter, "backoff": Backoff,
}

var breakerSettings = map[string]Decision{
	"failure_threshold": FailureThreshold, "cooldown_seconds": Cooldown, "half_open_probes": HalfOpenProbes,
}

// literal adds what a field states for a decision.
func (r *Rule) literal(d Decision, f field) {
	if d == "" || f.key.bad || f.value.bad {
		return
	}
	v := f.value.value
	if d == Jitter {
		switch v {
		case true:
			v = jitterTrue
		case false:
			v = 0.0
		default:
			v = f.value.float()
		}
	}
	r.Decides = append(r.Decides, Setting{Decision: d, Pos: f.key.pos, Literal: v})
}

func rateLimit(n *node) RateLimit {
	var calls, burst int64
	var out RateLimit
	set(&calls, n.get("calls"))
	set(&burst, n.get("burst"))
	set(&out.Per, n.get("per"))
	set(&out.MaxWait, n.get("max_wait"))
	out.Calls, out.Burst = int(calls), int(burst)
	return out
}

// cachedByDefault are the tools that cache.default_ttl covers.
const cachedByDefault = `tool.effects in ["none", "unannotated"]`

func (l *ruleList) cache(origin, prefix string, n *node) {
	if t := n.get("tools"); t != nil {
		for _, f := range bySpecificity(t) {
			r := Rule{Name: prefix + "tools." + f.key.text, Origin: place(origin, "tools", f.key.text), Pos: f.key.pos, Tools: f.key.text, ToolsAt: f.key.pos}
			r.literal(CacheTTL, f)
			l.add(r)
		}
	}
	if v := n.get("default_ttl"); v != nil {
		key := n.key("default_ttl")
		r := Rule{
			Name: prefix + "default_ttl", Origin: place(origin, "default_ttl"), Pos: key.pos,
			When: &Expr{Text: cachedByDefault, Pos: key.pos},
		}
		r.literal(CacheTTL, field{key: key, value: v})
		l.add(r)
	}
}
