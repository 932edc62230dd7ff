package policy

import (
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/bentabol/mcp-retry/schema"
)

// What the static estimate takes for the size of what it does not know: a large call, but one that occurs.
const (
	usualItems = 100
	usualChars = 10_000
)

// costs reports expressions that exceed the limit of cost on a large call, at which they fail.
func (l *linter) costs() {
	for i := range l.rules {
		r := &l.rules[i]
		if r.builtin {
			continue
		}
		if r.when != nil {
			l.cost("when", r.src.When, r.when)
		}
		for j := range r.settings {
			if s := &r.settings[j]; s.expr != nil {
				l.cost(string(s.decision()), s.text, s.expr)
			}
		}
	}
}

func (l *linter) cost(what string, x *schema.Expr, e *expression) {
	if !analyse(e.tree, e.text).costly {
		return // it is not counted
	}
	estimate, err := checker.Cost(e.tree, sizes{words: loopedWords(e.tree.Expr())})
	if err != nil || estimate.Max <= costLimit {
		return
	}
	l.report(schema.Warning, LintCost, whole(x), "an expression that exceeds the limit fails; loop over less, or do not nest loops",
		"%s may cost too much: %s units with lists of %d items and texts of %d characters, and the limit is %d", what, rounded(estimate.Max), usualItems, usualChars, costLimit)
}

// rounded is a number of units for a message.
func rounded(n uint64) string {
	switch {
	case n >= 1e15:
		return "beyond measure"
	case n >= 1e9:
		return "billions of"
	case n >= 1e6:
		return "millions of"
	}
	return uintText(n)
}

func uintText(n uint64) string {
	return string(types.Uint(n).ConvertToType(types.StringType).(types.String))
}

// sizes estimates what CEL's own estimator does not know.
type sizes struct {
	words map[string]uint64 // the longest that a loop's variable can be, by its name
}

// loopedWords are the variables of loops over texts that stand in the expression, with the length of the longest.
func loopedWords(e ast.Expr) map[string]uint64 {
	words, others := map[string]uint64{}, map[string]bool{}
	visit(e, func(e ast.Expr) bool {
		if e.Kind() != ast.ComprehensionKind {
			return true
		}
		loop := e.AsComprehension()
		name, list := loop.IterVar(), loop.IterRange()
		if loop.HasIterVar2() || list.Kind() != ast.ListKind {
			others[name] = true
			return true
		}
		for _, item := range list.AsList().Elements() {
			text, ok := stringLiteral(item)
			if !ok {
				others[name] = true
				break
			}
			words[name] = max(words[name], uint64(len(text)))
		}
		return true
	})
	for name := range others {
		delete(words, name)
	}
	return words
}

// EstimateSize implements checker.CostEstimator.
func (s sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if e := element.Expr(); e != nil && e.Kind() == ast.IdentKind {
		if longest, ok := s.words[e.AsIdent()]; ok {
			return &checker.SizeEstimate{Min: 0, Max: longest}
		}
	}
	limit := uint64(usualItems)
	if t := element.Type(); t != nil && (t.Kind() == types.StringKind || t.Kind() == types.BytesKind) {
		limit = usualChars
	}
	return &checker.SizeEstimate{Min: 0, Max: limit}
}

// EstimateCallCost implements checker.CostEstimator.
func (sizes) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch function {
	case "hash", "text", "omit", "pick", "json.encode":
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + usualChars/10}}
	case "regex.extract", "regex.extractAll", "regex.replace":
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + usualChars/20*4}}
	case "glob":
		return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 10}}
	}
	return nil
}
