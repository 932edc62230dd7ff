package policytest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/bentabol/mcp-retry/policy"
	"github.com/bentabol/mcp-retry/schema"
)

// Coverage is what tests have reached of the configs that they are about. What is built in does not count.
type Coverage struct {
	Configs []*ConfigCoverage
	mu      sync.Mutex
}

// ConfigCoverage is what tests have reached of a config.
type ConfigCoverage struct {
	File   string
	Text   []byte
	Points []*Point // in the order of the file
	byKey  map[pointKey]*Point
}

// Point is one thing in a config that a test can reach.
type Point struct {
	Kind PointKind
	Pos  schema.Pos
	Rule string
	What string // the decision, or the text of the condition
	Want bool   // of an outcome: which one
	Hits int
}

// PointKind is the kind of a point.
type PointKind uint8

const (
	RuleMatched   PointKind = iota // a rule applied to a call, and was asked
	DecisionTaken                  // what a rule states for a decision decided a call
	OutcomeSeen                    // a condition, or a part of one, came to true or to false
)

// Missed says what was not reached, for people.
func (p *Point) Missed() string {
	switch p.Kind {
	case RuleMatched:
		return fmt.Sprintf("rule %s never applied", p.Rule)
	case DecisionTaken:
		return fmt.Sprintf("rule %s never decided %s", p.Rule, p.What)
	}
	return fmt.Sprintf("never %v: %s", p.Want, p.What)
}

type pointKey struct {
	kind PointKind
	pos  schema.Pos
	what string
	want bool
}

// newCoverage lists what there is to reach in the configs of the suites.
func newCoverage(suites []*Suite) *Coverage {
	c := &Coverage{}
	for _, s := range suites {
		if slices.ContainsFunc(c.Configs, func(o *ConfigCoverage) bool { return o.File == s.config.path }) {
			continue
		}
		config := &ConfigCoverage{File: s.config.path, Text: s.config.text, byKey: map[pointKey]*Point{}}
		for _, p := range s.config.policies {
			for _, r := range p.Stated() {
				if !r.Builtin && r.Pos.Line > 0 {
					config.list(&r)
				}
			}
		}
		slices.SortStableFunc(config.Points, func(a, b *Point) int {
			return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pos.Col, b.Pos.Col))
		})
		c.Configs = append(c.Configs, config)
	}
	return c
}

// list adds the points of a rule. One in the defaults, which is a rule of every server, counts once.
func (c *ConfigCoverage) list(r *policy.Stated) {
	c.point(Point{Kind: RuleMatched, Pos: r.Pos, Rule: r.Rule})
	for _, d := range r.Decisions {
		c.point(Point{Kind: DecisionTaken, Pos: r.Pos, Rule: r.Rule, What: string(d)})
	}
	if r.When != nil {
		c.listConditions(r.Rule, r.When)
	}
	for _, v := range r.Values {
		c.listConditions(r.Rule, v)
	}
}

func (c *ConfigCoverage) listConditions(rule string, e *policy.Evaluated) {
	for _, part := range e.Parts {
		if part.Boolean {
			for _, want := range []bool{true, false} {
				c.point(Point{Kind: OutcomeSeen, Pos: e.Expr.Place(part.Offset), Rule: rule, What: part.Text, Want: want})
			}
		}
	}
}

func (p *Point) key() pointKey { return pointKey{p.Kind, p.Pos, p.What, p.Want} }

func (c *ConfigCoverage) point(p Point) {
	if c.byKey[p.key()] == nil {
		c.byKey[p.key()] = &p
		c.Points = append(c.Points, &p)
	}
}

func (c *ConfigCoverage) hit(k pointKey) {
	if p := c.byKey[k]; p != nil {
		p.Hits++
	}
}

// add counts what a decision has reached.
func (c *Coverage) add(s *Suite, d *Decision) {
	if c == nil {
		return
	}
	i := slices.IndexFunc(c.Configs, func(o *ConfigCoverage) bool { return o.File == s.config.path })
	c.mu.Lock()
	defer c.mu.Unlock()
	config := c.Configs[i]
	for _, r := range d.Considered {
		switch r.Fate {
		case policy.Took:
			config.hit(pointKey{kind: DecisionTaken, pos: r.Pos, what: string(d.Decision)})
			config.hit(pointKey{kind: RuleMatched, pos: r.Pos})
		case policy.ValueFailed, policy.NoOpinion:
			config.hit(pointKey{kind: RuleMatched, pos: r.Pos})
		}
		if r.When != nil {
			config.hitConditions(r.When)
		}
		for _, v := range r.Values {
			config.hitConditions(v)
		}
	}
}

func (c *ConfigCoverage) hitConditions(e *policy.Evaluated) {
	for _, part := range e.Parts {
		if part.Boolean && (part.Outcome == policy.True || part.Outcome == policy.False) {
			c.hit(pointKey{kind: OutcomeSeen, pos: e.Expr.Place(part.Offset), what: part.Text, want: part.Outcome == policy.True})
		}
	}
}

// Count returns how many points of a kind were reached, and how many there are.
func (c *ConfigCoverage) Count(kind PointKind) (reached, all int) {
	for _, p := range c.Points {
		if p.Kind == kind {
			all++
			if p.Hits > 0 {
				reached++
			}
		}
	}
	return reached, all
}

// Percent is how much of all points was reached, 100 if there is none. It is rounded down, so that 100 means all.
func (c *Coverage) Percent() float64 {
	reached, all := 0, 0
	for _, config := range c.Configs {
		for _, p := range config.Points {
			all++
			if p.Hits > 0 {
				reached++
			}
		}
	}
	return percent(reached, all)
}

func percent(reached, all int) float64 {
	if all == 0 {
		return 100
	}
	return float64(reached*1000/all) / 10
}
