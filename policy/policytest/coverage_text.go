package policytest

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes what was reached of each config, and each point that was not.
func (c *Coverage) WriteText(w io.Writer, style Style) error {
	p := &pretty{w: w, style: style}
	p.printf("\n%s\n", p.paint("1", "coverage"))
	some := false
	for _, config := range c.Configs {
		p.printf("  %s: %s\n", config.File, strings.Join(config.counts(), ", "))
		some = some || len(config.Points) > 0
		missed := map[string]bool{} // rules of which nothing was reached: that says it all
		for _, point := range config.Points {
			if point.Hits > 0 || missed[point.Rule] && point.Kind != RuleMatched {
				continue
			}
			missed[point.Rule] = missed[point.Rule] || point.Kind == RuleMatched
			p.printf("    %s  %s\n", p.paint("2", point.Pos.String()), p.paint("33", clip(point.Missed(), 120)))
		}
	}
	if some {
		p.printf("  in all %g %%\n", c.Percent())
	}
	return p.err
}

// counts says for each kind of point how many were reached.
func (c *ConfigCoverage) counts() []string {
	if len(c.Points) == 0 {
		return []string{"no rules to cover"}
	}
	var counts []string
	for kind, name := range kindNames {
		if reached, all := c.Count(PointKind(kind)); all > 0 {
			counts = append(counts, fmt.Sprintf("%s %d of %d (%g %%)", name, reached, all, percent(reached, all)))
		}
	}
	return counts
}

var kindNames = [...]string{RuleMatched: "rules", DecisionTaken: "decisions", OutcomeSeen: "outcomes"}
