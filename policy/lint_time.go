package policy

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bentabol/mcp-retry/schema"
)

// times looks at the times and counts that hold for each tool that the rules name, and for one that they do not. Only what is stated
// without a condition counts: what depends on the call is cut at run time to the time that is left.
func (l *linter) times() {
	names := []string{""}
	for i := range l.rules {
		if t := l.rules[i].tools; t != "" && names[len(names)-1] != t {
			names = append(names, t)
		}
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		plan := l.policy.For(name).byName()
		l.worstCase(name, plan)
		l.outlasts(name, plan)
		l.jitter(name, plan)
		l.breakerInOneCall(name, plan)
		l.waitForTurn(name, plan)
	}
	l.cut()
	l.stale()
	l.tooLong()
}

// depends reports whether the plan leaves the decision to each call.
func (pl *table) depends(ask int) bool {
	for i := range pl.asks {
		if pl.asks[i].ask == ask {
			return true
		}
	}
	return false
}

// stated returns the setting of the file that decides for a tool whatever the call; nil = none of the file's.
func (l *linter) stated(ask int, name string) *lintSetting {
	for i := range l.rules {
		r := &l.rules[i]
		if r.tools != "" && !Match(r.tools, name) {
			continue
		}
		for j := range r.settings {
			s := &r.settings[j]
			if s.ask != ask {
				continue
			}
			if r.builtin || r.cond != nil || s.expr != nil || s.src.Pos.Line == 0 {
				return nil
			}
			return s
		}
	}
	return nil
}

// of names the tool that a finding is about, if it is about one.
func of(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" of %q", name)
}

// worstCase compares the longest that the attempts of a call may take with total_timeout.
func (l *linter) worstCase(name string, plan *table) {
	b := &plan.base
	total := l.stated(askTotalTimeout, name)
	if total == nil || b.MaxRetries == 0 || b.Effects == EffectsUnsafe || plan.depends(askTotalTimeout) || plan.depends(askCallTimeout) || plan.depends(askMaxRetries) {
		return
	}
	limit := b.TotalTimeout
	var sum, waits time.Duration
	fit := 0
	wait := float64(b.Backoff.Base)
	for n := 0; n <= b.MaxRetries; n++ {
		if n > 0 {
			w := min(b.Backoff.Max, time.Duration(min(wait*(1+b.Backoff.Jitter), float64(maxDuration))))
			sum, waits = sum+w, waits+w
			switch b.Backoff.Kind {
			case "exponential":
				wait *= 2
			case "linear":
				wait += float64(b.Backoff.Base)
			}
		}
		if sum += b.CallTimeout; sum <= limit {
			fit++
		}
	}
	if sum <= limit {
		return
	}
	attempts := b.MaxRetries + 1
	level, much := schema.Note, ""
	if fit < 2 {
		level, much = schema.Warning, ": after one that times out there is no time for another"
	} else if 2*fit < attempts {
		level, much = schema.Warning, fmt.Sprintf(": only %d of them fit", fit)
	}
	if b.CallTimeout >= limit {
		return // timeout-order
	}
	l.report(level, LintWorstCase, total.src.Pos, fmt.Sprintf("raise total_timeout to %s, or lower call_timeout or max_retries", ceiling(sum)),
		"%d attempts%s of %s and waits of %s between them take %s, more than total_timeout (%s)%s",
		attempts, of(name), brief(b.CallTimeout), brief(waits), brief(sum), brief(limit), much)
}

// clientWaits is after which time most clients give a call up.
const clientWaits = 60 * time.Second

// outlasts reports calls that may take longer than clients wait, because of what is stated of their attempts and nothing of the whole.
func (l *linter) outlasts(name string, plan *table) {
	b := &plan.base
	for _, ask := range []int{askTotalTimeout, askCallTimeout, askMaxRetries} {
		if plan.depends(ask) {
			return
		}
	}
	attempts, longest := b.MaxRetries+1, b.TotalTimeout
	if b.Effects == EffectsUnsafe {
		attempts, longest = 1, b.CallTimeout
	}
	if l.stated(askTotalTimeout, name) != nil || longest <= clientWaits {
		return
	}
	hint := "state total_timeout: 55, or lower call_timeout or max_retries"
	if 2*b.CallTimeout > patience {
		hint = "lower call_timeout, or have the client wait longer"
	}
	in := fmt.Sprintf("%d attempts", attempts)
	if attempts == 1 {
		in = "1 attempt"
	}
	for _, ask := range []int{askCallTimeout, askMaxRetries, askBaseDelay, askMaxDelay, askJitter, askBackoff} {
		if s := l.stated(ask, name); s != nil {
			l.report(schema.Note, LintOutlasts, s.src.Pos, hint, "a call%s may take %s, in %s of %s, and most clients give up after %s",
				of(name), brief(longest), in, brief(b.CallTimeout), brief(clientWaits))
			return
		}
	}
}

// ceiling is the duration in whole seconds, not shorter.
func ceiling(d time.Duration) string {
	return brief(time.Duration(math.Ceil(d.Seconds())) * time.Second)
}

// brief is a duration as a file would have it: 1m24.2s, 20s, 2h.
func brief(d time.Duration) string {
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// jitter reports retries whose waits are the same for all.
func (l *linter) jitter(name string, plan *table) {
	b := &plan.base
	s := l.stated(askJitter, name)
	if s == nil || b.Backoff.Jitter > 0 || b.Backoff.Base == 0 || b.MaxRetries == 0 && !plan.depends(askMaxRetries) {
		return
	}
	l.report(schema.Warning, LintNoJitter, s.src.Pos, "write jitter: 0.2", "without jitter all clients of a server that was down come back at the same moment")
}

// breakerInOneCall reports a breaker that the attempts of a single call open.
func (l *linter) breakerInOneCall(name string, plan *table) {
	b := &plan.base
	if plan.depends(askMaxRetries) || b.Breaker.Threshold == 0 || b.MaxRetries+1 <= b.Breaker.Threshold || b.BreakerScope == "" && !plan.depends(askBreakerScope) {
		return
	}
	s := l.stated(askFailureThreshold, name)
	if s == nil {
		if s = l.stated(askMaxRetries, name); s == nil {
			return
		}
	}
	lost := b.MaxRetries + 1 - b.Breaker.Threshold
	level, never := schema.Warning, fmt.Sprintf("the last %d are never made", lost)
	if lost == 1 {
		level, never = schema.Note, "the last is never made"
	}
	l.report(level, LintBreakerOneCall, s.src.Pos, fmt.Sprintf("raise failure_threshold above %d, or lower max_retries", b.MaxRetries+1),
		"one call%s makes up to %d attempts, and %d failures open the breaker: %s, and other calls are shut out", of(name), b.MaxRetries+1, b.Breaker.Threshold, never)
}

// cut reports a call_timeout that holds for some calls and is longer than total_timeout. One that holds for all of a tool's is an error
// of the file (timeout-order).
func (l *linter) cut() {
	for r, s := range l.stating() {
		call, ok := s.literal.(time.Duration)
		if s.ask != askCallTimeout || !ok || s.expr != nil || s == l.stated(askCallTimeout, r.tools) {
			continue
		}
		if total := l.totalFor(r); total != nil && call > total.literal.(time.Duration) {
			l.report(schema.Warning, LintAboveBound, s.src.Pos, "lower call_timeout, or state a longer total_timeout beside it",
				"a call_timeout of %s is cut to the total_timeout of %s (line %d)", brief(call), brief(total.literal.(time.Duration)), total.src.Pos.Line)
		}
	}
}

// totalFor returns the total_timeout that the file states for every call that a rule holds for, or nil if it depends on more.
func (l *linter) totalFor(rule *lintRule) *lintSetting {
	for i := range l.rules {
		r := &l.rules[i]
		for j := range r.settings {
			s := &r.settings[j]
			if s.ask != askTotalTimeout || r.tools != "" && rule.tools != "" && !Match(r.tools, rule.tools) && !Match(rule.tools, r.tools) {
				continue
			}
			_, isLiteral := s.literal.(time.Duration)
			if r.builtin || !isLiteral || s.expr != nil || r != rule && (r.cond != nil || r.tools != "" && !Match(r.tools, rule.tools)) {
				return nil
			}
			return s
		}
	}
	return nil
}

// waitForTurn reports a max_wait of a rate limit that total_timeout cuts short.
func (l *linter) waitForTurn(name string, plan *table) {
	s := l.stated(askLimit, name)
	if s == nil || plan.depends(askTotalTimeout) || plan.depends(askCallTimeout) || plan.depends(askMaxRetries) {
		return
	}
	if limit, ok := s.literal.(*RateLimit); ok && limit.MaxWait > plan.base.TotalTimeout {
		l.report(schema.Warning, LintAboveBound, s.src.Pos, "lower max_wait, or raise total_timeout",
			"a max_wait of %s is cut to the total_timeout%s of %s", brief(limit.MaxWait), of(name), brief(plan.base.TotalTimeout))
	}
}

// tooLong reports durations that an expression may come to and that no file could state.
func (l *linter) tooLong() {
	for i := range l.rules {
		for j := range l.rules[i].settings {
			s := &l.rules[i].settings[j]
			if s.expr == nil || questions[s.ask].form != formDuration || s.ask == askStaleIfError { // which has a bound of its own
				continue
			}
			for _, d := range durations(branches(s.expr.tree.Expr())...) {
				if err := withinBounds(s.decision(), d.value); err != nil {
					l.report(schema.Warning, LintAboveBound, placeOf(s.text, s.expr.tree, d.expr), "", "%s: %v", s.decision(), err)
				}
			}
		}
	}
}

// longStale is how old an answer may become under stale_if_error before it is asked whether that is meant.
const longStale = 24 * time.Hour

// stale reports answers that may be used long after their time.
func (l *linter) stale() {
	for _, s := range l.stating() {
		if s.ask != askStaleIfError {
			continue
		}
		if d, ok := s.literal.(time.Duration); ok && s.expr == nil && d > longStale {
			l.report(schema.Warning, LintStaleLong, s.place(), "24h or less", "an answer that is %s past its time may stand in for an error, and nobody sees that it is old", brief(d))
		} else if s.expr != nil {
			l.staleLiterals(s)
		}
	}
}

func (l *linter) staleLiterals(s *lintSetting) {
	for _, d := range durationsWithin(s.expr.tree.Expr()) {
		if d.value > longStale {
			l.report(schema.Warning, LintStaleLong, placeOf(s.text, s.expr.tree, d.expr), "24h or less",
				"an answer that is %s past its time may stand in for an error, and nobody sees that it is old", brief(d.value))
		}
	}
}
