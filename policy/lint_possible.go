package policy

import (
	"slices"
)

// maxTrials bounds the combinations that are tried of one condition; of one with more only the worlds tell what it may come to.
const maxTrials = 20_000

// possibilities are all that some propositions may come to together: their leaves answer as in a world, and where that does
// not know, as witnesses of their subjects do.
type possibilities struct {
	leaves []*leaf
	index  map[*leaf]int
	worlds [][]truth // by leaf, each combination once; anything = the world does not tell
	groups []group
	free   []truth // by leaf, of those that stand alone: all that it may come to
}

// group is leaves of one subject.
type group struct {
	leaves  []int
	answers [][]truth // by witness, as the leaves; each combination once
}

// possible lists the possibilities of propositions in a part of the space any; nil = they tell nothing that the worlds do not,
// or are too many.
func (l *linter) possible(domain bits, list ...*proposition) *possibilities {
	ps := &possibilities{index: map[*leaf]int{}}
	var count []int
	for _, p := range list {
		p.leaves(func(p *proposition) {
			i, ok := ps.index[p.leaf]
			if !ok {
				i = len(ps.leaves)
				ps.index[p.leaf] = i
				ps.leaves, count = append(ps.leaves, p.leaf), append(count, 0)
			}
			count[i]++
		})
	}
	bySubject := map[string][]int{}
	var subjects []string
	for i, f := range ps.leaves {
		if f.atom == nil {
			continue
		}
		s := f.atom.subject
		if bySubject[s] == nil {
			subjects = append(subjects, s)
		}
		bySubject[s] = append(bySubject[s], i)
	}
	ps.free = make([]truth, len(ps.leaves))
	for i := range ps.free {
		ps.free[i] = anything
	}
	trials, tells := 1, false
	for _, s := range subjects {
		g := ps.group(bySubject[s])
		if g == nil {
			continue
		}
		if len(g.leaves) == 1 && count[g.leaves[0]] == 1 {
			var all truth
			for _, a := range g.answers {
				all |= a[0]
			}
			ps.free[g.leaves[0]] = all
			tells = tells || all&mayHold == 0 || all&mayFail == 0
			continue
		}
		tells = true
		if trials *= len(g.answers); trials > maxTrials {
			return nil
		}
		ps.groups = append(ps.groups, *g)
	}
	if !tells {
		return nil
	}
	l.worldsOf(ps, domain)
	if len(ps.worlds) == 0 || trials*len(ps.worlds) > maxTrials {
		return nil
	}
	return ps
}

// group asks the atoms of one subject; nil = its witnesses are too many.
func (ps *possibilities) group(leaves []int) *group {
	atoms := make([]*atom, len(leaves))
	for k, i := range leaves {
		atoms[k] = ps.leaves[i].atom
	}
	list := witnesses(atoms)
	if list == nil {
		return nil
	}
	g := &group{leaves: leaves}
	for w := range list {
		answers := make([]truth, len(atoms))
		for k, a := range atoms {
			answers[k] = a.answer(&list[w])
		}
		if !slices.ContainsFunc(g.answers, func(known []truth) bool { return slices.Equal(known, answers) }) {
			g.answers = append(g.answers, answers)
		}
	}
	return g
}

// worldsOf lists what the leaves answer in the worlds of the domain.
func (l *linter) worldsOf(ps *possibilities, domain bits) {
	sp := l.any
	var tool, failure bool
	for _, f := range ps.leaves {
		tool = tool || f.uses&facetTool != 0
		failure = failure || f.uses&facetError != 0
	}
	seen := map[string]bool{}
	key := make([]byte, len(ps.leaves))
	states := map[int]bool{}
	for i := range sp.size() {
		if !domain.has(i) {
			continue
		}
		state, e := i/sp.errs, i%sp.errs
		if !failure {
			e = sp.errs - 1
			if states[state] {
				continue
			}
			states[state] = true
		}
		for k, f := range ps.leaves {
			key[k] = byte(l.ask(f, sp, state, e))
		}
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		answers := make([]truth, len(key))
		for k := range key {
			answers[k] = truth(key[k])
		}
		ps.worlds = append(ps.worlds, answers)
		if !tool && !failure {
			return
		}
	}
}

// each calls f with each combination, until it returns false.
func (ps *possibilities) each(f func(ask func(*leaf) truth) bool) {
	given := make([]truth, len(ps.leaves))
	ask := func(f *leaf) truth { return given[ps.index[f]] }
	var choose func(world []truth, g int) bool
	choose = func(world []truth, g int) bool {
		if g == len(ps.groups) {
			return f(ask)
		}
		for _, answers := range ps.groups[g].answers {
			for k, i := range ps.groups[g].leaves {
				if world[i] == anything {
					given[i] = answers[k]
				}
			}
			if !choose(world, g+1) {
				return false
			}
		}
		return true
	}
	for _, world := range ps.worlds {
		for i, t := range world {
			if given[i] = t; t == anything {
				given[i] = ps.free[i]
			}
		}
		if !choose(world, 0) {
			return
		}
	}
}

// narrow leaves of what a proposition and its parts may come to only what is possible.
func (l *linter) narrow(p *proposition, domain bits, found map[*proposition]truth) {
	ps := l.possible(domain, p)
	if ps == nil {
		return
	}
	seen := map[*proposition]truth{}
	ps.each(func(ask func(*leaf) truth) bool {
		p.parts(ask, seen)
		return true
	})
	for part, t := range seen {
		found[part] &= t
	}
}

// parts is holds, and adds to what is known of each part of the proposition.
func (p *proposition) parts(ask func(*leaf) truth, seen map[*proposition]truth) truth {
	t := truth(0)
	if p.op == "" {
		t = ask(p.leaf)
	} else {
		kids := make([]truth, len(p.kids))
		for i, k := range p.kids {
			kids[i] = k.parts(ask, seen)
		}
		t = combine(p.op, kids)
	}
	seen[p] |= t
	return t
}

// implies reports whether a condition surely holds in every case in which another may.
func (l *linter) implies(p, then *proposition, domain bits) bool {
	ps := l.possible(domain, p, then)
	if ps == nil {
		return false
	}
	implied := true
	ps.each(func(ask func(*leaf) truth) bool {
		implied = p.holds(ask)&mayHold == 0 || then.holds(ask) == mayHold
		return implied
	})
	return implied
}
