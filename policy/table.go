package policy

// A table is what a policy says about a tool of which something is known: for each decision the rules that may decide it, in
// order, up to the first that does so whatever the call. Decisions that come to a literal are settled in it.
type table struct {
	policy *Policy
	base   Before  // what does not depend on the call
	asks   []asked // decisions before the call that do depend on it, in the order of questions

	retry, retryUnsafe, retryDelay, breakerFailure, cacheTTL, staleIfError []candidate

	settled  timing // of the timeouts in base
	computes bool   // the timeouts depend on the call
	caches   bool   // whether the cache may fill depends on the call

	settledBy [len(questions)]*rule // which rules decided what is in base

	slots int // conditions that are left to be asked
	size  int // as maxKept counts

	hints   hints  // of the tool that it is for; 0 = any
	effects string // that it takes for decided; "" = it depends on none
}

// asked is one decision and the rules that may decide it.
type asked struct {
	ask        int
	candidates []candidate
}

// candidate is a rule that may decide a question.
type candidate struct {
	rule    *rule
	setting *setting // its literal may come from an expression that needs only the names of tool and server
	slot    int32    // of the answer of its when; see [memo]
	always  bool     // its when holds for every call
	success verdict  // whether a success is a failure for the breaker; unasked = it depends on the call, or is another question
}

// hints are those of a tool in one word, which is never 0.
type hints uint8

func (t *Tool) hints() hints {
	h := hints(1)
	for i, hint := range [...]bool{t.Annotated, t.ReadOnly, t.Destructive, t.Idempotent, t.OpenWorld} {
		if hint {
			h |= 2 << i
		}
	}
	return h
}

// fits tells whether the table is for a tool with these hints.
func (t *table) fits(tool *Tool) bool { return t.hints == 0 || t.hints == tool.hints() }

// sees tells whether the table holds where expressions see these effects.
func (t *table) sees(effects string) bool { return t.effects == "" || t.effects == effects }

// table finds the rules that can decide something for a tool.
func (p *Policy) table(l *learned) *table {
	l.server = p.server.Name
	t := &table{policy: p, size: tableSize}
	if l.hinted {
		l.effects = l.tool.AnnotatedEffects(p.server.TrustAnnotations)
	}
	f := finder{table: t, learned: l, named: Call{Tool: Tool{Name: l.tool.Name}, Server: &Peer{Name: p.server.Name}}, slots: make([]int32, len(p.rules))}
	f.named.begin(0)
	for i := range p.rules {
		f.consider(&p.rules[i], true)
	}
	if l.hinted && l.usedEffects {
		l.usedHints = true
	}
	l.usedEffects = false
	if list := f.lists[askEffects]; len(list) > 0 {
		l.effects = ""
		if first := &list[0]; first.always && first.setting.expr == nil && !l.otherEffects {
			l.effects = first.setting.literal.(string)
		}
	}
	for i := range p.rules {
		f.consider(&p.rules[i], false)
	}
	if l.hinted && (l.usedHints || l.usedEffects) {
		t.hints = l.tool.hints()
	}
	if l.usedEffects {
		t.effects = l.effects
	}
	t.retry, t.retryUnsafe, t.retryDelay = f.lists[askRetry], f.lists[askRetryUnsafe], f.lists[askRetryDelay]
	t.breakerFailure, t.cacheTTL, t.staleIfError = f.lists[askBreakerFailure], f.lists[askCacheTTL], f.lists[askStaleIfError]
	t.settle(&f.lists)
	return t
}

// tableSize is what a table takes besides its candidates, in candidates.
const tableSize = 64

// finder fills a table.
type finder struct {
	*table
	learned *learned
	named   Call // of the tool, with nothing but the names
	lists   [len(questions)][]candidate
	closed  [len(questions)]bool // by a candidate that decides whatever the call
	slots   []int32              // of the rules, plus 1; 0 = none yet
}

// consider enters the rule for what it may decide: the effects, or all else.
func (f *finder) consider(r *rule, effects bool) {
	if r.tools != "" && !Match(r.tools, f.learned.tool.Name) {
		return
	}
	var answer verdict
	asked := false
	for i := range r.decisions {
		s := &r.decisions[i]
		if (s.ask == askEffects) != effects || f.closed[s.ask] {
			continue
		}
		if !asked {
			if answer = f.when(r); answer == fails {
				return
			}
			asked = true
		}
		if s = s.fold(&f.named); saysNothing(s) {
			continue
		}
		cand := candidate{rule: r, setting: s, always: answer == holds}
		if !cand.always {
			cand.slot = f.slot(r)
		} else if s.ask == askBreakerFailure {
			cand.success = f.afterSuccess(s)
		}
		f.lists[s.ask] = append(f.lists[s.ask], cand)
		f.size++
		f.closed[s.ask] = cand.always && s.expr == nil && s.final() && (r.builtin || s.ask != askBreakerFailure)
	}
}

// afterSuccess is what a setting of breaker_failure comes to after every success, or unasked.
func (f *finder) afterSuccess(s *setting) verdict {
	if s.expr == nil {
		failed, ok := s.literal.(bool)
		if !ok {
			return unasked
		}
		return verdictOf(failed)
	}
	if !(varsNamed | varError).has(s.expr.vars) {
		return unasked
	}
	v, err := s.expr.eval(&f.named)
	if err != nil {
		return unasked // it will fail, and be reported, for each call
	}
	failed, err := toBool(v)
	if err != nil {
		return unasked
	}
	return verdictOf(failed)
}

// when is what the rule's condition comes to for every call of the tool, or unasked.
func (f *finder) when(r *rule) verdict {
	if r.when == nil {
		return holds
	}
	if v := r.when.static.of(f.learned, r.when.costly); v != unasked {
		return v
	}
	if !varsNamed.has(r.when.vars) {
		return unasked
	}
	v, err := r.when.eval(&f.named)
	if err != nil {
		return unasked // it will fail, and be reported, for each call
	}
	yes, err := toBool(v)
	if err != nil {
		return unasked
	}
	return verdictOf(yes)
}

func (f *finder) slot(r *rule) int32 {
	if f.slots[r.index] == 0 {
		f.table.slots++
		f.slots[r.index] = int32(f.table.slots)
	}
	return f.slots[r.index] - 1
}

// fold replaces an expression that needs only names by its value.
func (s *setting) fold(named *Call) *setting {
	if s.expr == nil || !varsNamed.has(s.expr.vars) {
		return s
	}
	v, err := s.expr.eval(named)
	if err != nil {
		return s // it will fail, and be reported, for each call
	}
	literal, err := literalOf(&questions[s.ask], v)
	if err != nil {
		return s
	}
	folded := *s
	folded.literal, folded.expr = literal, nil
	return &folded
}

// saysNothing tells whether the setting leaves its decision to later rules, whatever the call.
func saysNothing(s *setting) bool {
	if s.expr != nil {
		return false
	}
	switch v := s.literal.(type) {
	case keyLiteral:
		return v.answer == keyNone && !s.required
	case string:
		return s.ask == askDeny && v == ""
	}
	return false
}

// final tells whether a literal leaves nothing for later rules to say.
func (s *setting) final() bool {
	list, ok := s.literal.([]invalidation)
	if !ok {
		return true
	}
	for _, item := range list {
		if item.args != nil {
			return false
		}
	}
	return true
}

// settle writes what is the same for every call into base and keeps the rest as asks.
func (t *table) settle(lists *[len(questions)][]candidate) {
	b := &t.base
	*b = undecided()
	for ask := range lists {
		list := lists[ask]
		if len(list) == 0 || questions[ask].phase != BeforeCall {
			continue
		}
		if first := &list[0]; first.always && first.setting.expr == nil && first.setting.final() {
			t.settled.note(ask, first.rule)
			t.settledBy[ask] = first.rule
			b.set(ask, first)
			continue
		}
		t.asks = append(t.asks, asked{ask, list})
		switch ask {
		case askCallTimeout, askTotalTimeout, askMaxCallTime, askMaxRetries:
			t.computes = true
		}
	}
	if !t.computes {
		t.settled.total(b)
	}
	b.CacheMayFill, b.CacheStated = false, false
	for i := range t.cacheTTL {
		if c := &t.cacheTTL[i]; !c.always && c.rule.early {
			t.caches = true
		}
	}
	if !t.caches {
		t.lookAtCache(nil, b)
	}
}
