package schema

import (
	"strconv"
	"strings"
	"time"
)

// checkTimeouts complains of a call_timeout that leaves no room in total_timeout, and warns of a duration that the one that bounds
// it cuts short. Both come from anywhere in the rules, so they are compared for each tool that the rules name, and for one that
// they do not. Only what is stated without a condition counts: what a when or an expression decides is cut at run time to the time
// that is left.
func checkTimeouts(server string, rules []Rule, r *report) {
	tools := []string{""}
	for i := range rules {
		if rules[i].Tools != "" {
			tools = append(tools, rules[i].Tools)
		}
	}
	said := map[Pos]bool{}
	for _, tool := range tools {
		checkBound(BaseDelay, MaxDelay, rules, tool, r)
		checkBound(CallTimeout, MaxCallTime, rules, tool, r)
		call, total := stated(rules, CallTimeout, tool), stated(rules, TotalTimeout, tool)
		if call == nil || total == nil || *call.value < *total.value || said[total.pos] || r.said[[2]Pos{call.pos, total.pos}] {
			continue
		}
		said[total.pos] = true
		if r.said == nil {
			r.said = map[[2]Pos]bool{}
		}
		r.said[[2]Pos{call.pos, total.pos}] = true
		whose := "server " + strconv.Quote(server)
		if tool != "" && (call.rule.Tools != "" || total.rule.Tools != "") {
			whose = strconv.Quote(tool) + " of " + whose
		}
		r.errorAt(total.pos, "timeout-order", "raise total_timeout, or lower call_timeout",
			"a total_timeout of %s leaves no room for the call_timeout of %s (line %d) that holds for %s",
			durationWords(total.value.Seconds()), durationWords(call.value.Seconds()), call.pos.Line, whose)
	}
}

// checkBound warns of a duration that is longer than what bounds it, so that it never is what the file says.
func checkBound(d, bound Decision, rules []Rule, tool string, r *report) {
	value, most := stated(rules, d, tool), stated(rules, bound, tool)
	if value == nil || most == nil || *value.value <= *most.value {
		return
	}
	name, boundName := strings.TrimPrefix(string(d), "retry."), strings.TrimPrefix(string(bound), "retry.")
	r.warnAt(value.pos, "above-bound", "lower "+name+", or raise "+boundName, "a %s of %s is cut to the %s of %s (line %d)",
		name, durationWords(value.value.Seconds()), boundName, durationWords(most.value.Seconds()), most.pos.Line)
}

type statement struct {
	rule  *Rule
	pos   Pos
	value *time.Duration
}

// stated returns what the file states of a duration for a tool, or nil if that is nothing, or depends on the call.
func stated(rules []Rule, d Decision, tool string) *statement {
	for i := range rules {
		r := &rules[i]
		if r.Pos.Line == 0 || r.Tools != "" && !matches(r.Tools, tool) {
			continue
		}
		for _, s := range r.Decides {
			if s.Decision != d {
				continue
			}
			v, isLiteral := s.Literal.(time.Duration)
			if r.When != nil || !isLiteral {
				return nil
			}
			return &statement{rule: r, pos: s.Pos, value: &v}
		}
	}
	return nil
}

// matches reports whether a glob holds for a tool. A tool that is itself a glob stands for those that match it: so it matches
// where its stars are matched by stars.
func matches(glob, tool string) bool {
	if glob == "" {
		return tool == ""
	}
	if glob[0] == '*' {
		rest := strings.TrimLeft(glob, "*")
		for i := 0; i <= len(tool); i++ {
			if matches(rest, tool[i:]) {
				return true
			}
		}
		return false
	}
	return tool != "" && (glob[0] == tool[0] || glob[0] == '?' && tool[0] != '*') && matches(glob[1:], tool[1:])
}
