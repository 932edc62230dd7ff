package schema

import "strings"

// policy adds the rules of a policy list. prefix tells those of the defaults from those of the server.
func (l *ruleList) policy(origin, prefix string, n *node) {
	named := map[string]*node{}
	for i, item := range n.items {
		if item.bad || item.kind != object {
			continue
		}
		r := Rule{Name: prefix + "policy[" + index(i) + "]", Origin: place(origin, i), Pos: item.pos}
		if name := item.get("name"); name != nil {
			r.Name = name.text
			if first := named[r.Name]; first != nil {
				l.report.errorAt(name.pos, "repeated-name", "each rule has a name of its own", "two rules are named %q, the first on line %d", r.Name, first.pos.Line)
			} else {
				named[r.Name] = name
			}
		}
		if !r.condition(item.get("when")) {
			continue
		}
		if w := item.key("when"); w != nil && item.get("when") == nil {
			r.When = &Expr{Text: "false"} // its condition is faulty: it must not hold for every call
		}
		r.decisions(item, l.report)
		if len(r.Decides) == 0 && allSound(item) {
			l.report.warnAt(r.Pos, "empty-rule", "state a decision, such as retry: false", "rule %q decides nothing", r.Name)
		}
		l.add(r)
	}
}

// condition sets the rule's when; false means that the rule cannot be used.
func (r *Rule) condition(when *node) bool {
	switch {
	case when == nil:
	case when.kind == boolean:
		if !when.bool() {
			r.When = &Expr{Text: "false", Pos: when.pos}
		}
	default:
		r.When = when.expr()
	}
	return true
}

// decisions reads what the rule states, in the order of the file.
func (r *Rule) decisions(item *node, rep *report) {
	for _, f := range item.fields {
		if f.key.bad || f.value.bad {
			continue
		}
		d := Decision(f.key.text)
		s := Setting{Decision: d, Pos: f.key.pos}
		switch d {
		case "name", "when":
			continue
		case "required":
			if item.key(string(IdempotencyKey)) == nil {
				rep.errorAt(f.key.pos, "bad-value", "put it beside idempotency_key", "%q says nothing without %q", "required", "idempotency_key")
			}
			continue
		case IdempotencyKey:
			if req := item.get("required"); req != nil {
				s.Required = req.bool()
			}
		}
		s.state(f.value, rep)
		r.Decides = append(r.Decides, s)
	}
}

// state sets the literal or the expression of a setting.
func (s *Setting) state(v *node, rep *report) {
	switch {
	case s.Decision == Invalidates && v.kind == list:
		s.Literal = invalidations(v, rep)
	case v.kind != text:
		s.Literal = v.value
	case isLiteral(s.Decision, v):
		s.Literal = v.value
	default:
		s.Expr = v.expr()
	}
}

// isLiteral reports whether text in a rule is no expression: a duration, one of a decision's words, a key's place, or an empty
// text where that has a meaning.
func isLiteral(d Decision, v *node) bool {
	s, isText := v.value.(string)
	if !isText {
		return true
	}
	switch d {
	case Effects:
		return s == "none" || s == "idempotent" || s == "unsafe" || s == "unannotated"
	case OnConflict:
		return s == "replay" || s == "reject"
	case OnAmbiguous:
		return s == "refuse" || s == "run"
	case ForwardKey:
		where, name, _ := strings.Cut(s, ".")
		return (where == "_meta" || where == "arguments") && name != "" && !strings.ContainsAny(name, " \t\r\n")
	case Deny, BreakerScope:
		return s == ""
	}
	return false
}

// invalidations reads the list form of invalidates; never nil, for an empty list has a meaning.
func invalidations(n *node, rep *report) []Invalidation {
	out := make([]Invalidation, 0, len(n.items))
	for _, item := range n.items {
		switch {
		case item.bad:
		case item.kind == object:
			tool := item.get("tool")
			if tool == nil {
				continue
			}
			inv := Invalidation{Pos: tool.pos, Tool: tool.text}
			if a := item.get("args"); a != nil {
				inv.Args = a.expr()
			}
			out = append(out, inv)
		default:
			out = append(out, Invalidation{Pos: item.pos, Tool: item.text})
		}
	}
	return out
}

// allSound reports whether nothing of a map was marked by checking.
func allSound(n *node) bool {
	for _, f := range n.fields {
		if f.key.bad || f.value.bad {
			return false
		}
	}
	return true
}
